"""Timelines as an SVG picture: a row per engine and DMA queue, a bar per micro-op."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import floor, log10
from pathlib import Path

from neuroncore.timeline import Bar, Timeline
from nki_runtime.trace.tracks import by_track, rows_of

WIDTH, LABELS, MARGIN = 960, 150, 12
ROW, GAP, HEAD, AXIS = 18, 4, 30, 26
SHORTEST = 0.5  # px; shorter bars of a row with the same instruction are drawn as one
COLORS = {
    "tensor": "#4e79a7", "vector": "#f28e2b", "scalar": "#59a14f", "gpsimd": "#b07aa1",
    "sync": "#9c755f", "dma": "#76b7b2",
}  # fmt: skip
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.m{fill:#57606a}"
    "line{stroke:#d0d7de}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#8b949e}"
    "line{stroke:#30363d}}"
)


def write_svg(timelines: Sequence[Timeline], file: Path) -> None:
    """Write the picture of timelines. Raises OSError."""
    file.write_text(picture(timelines), "utf-8")


def picture(timelines: Sequence[Timeline]) -> str:
    """An SVG document with a picture for each timeline, one below the other."""
    parts: list[str] = []
    top = MARGIN
    for timeline in timelines:
        drawn = _Kernel(timeline, top)
        parts += drawn.lines()
        top = drawn.bottom + MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


class _Kernel:
    """One timeline, its upper edge at `top`."""

    def __init__(self, timeline: Timeline, top: int) -> None:
        self.timeline, self.top = timeline, top
        self.rows = [
            (name if number == 0 else "", row)
            for (name, _), bars in by_track(timeline.bars).items()
            for number, row in enumerate(rows_of(bars))
        ]
        self.scale = (WIDTH - LABELS - MARGIN) / max(timeline.total_ns, 1.0)
        self.axis = top + HEAD + len(self.rows) * (ROW + GAP)
        self.bottom = self.axis + AXIS

    def x(self, nanoseconds: float) -> float:
        return LABELS + nanoseconds * self.scale

    def lines(self) -> Iterator[str]:
        found = self.timeline
        name, total = escape(found.program.name), found.total_ns / 1e3
        name += f" on {found.target}" + ("" if found.core is None else f", core {found.core}")
        yield f'<text class="t" x="{MARGIN}" y="{self.top + 14}">{name}</text>'
        yield _text(WIDTH - MARGIN, self.top + 14, f"{total:.2f} µs, modelled", "end")
        yield from self._ticks()
        for number, (label, row) in enumerate(self.rows):
            y = self.top + HEAD + number * (ROW + GAP)
            yield _text(LABELS - 8, y + 13, label, "end")
            yield from (self._bar(bars, y) for bars in self._drawn(row))

    def _ticks(self) -> Iterator[str]:
        step = _round_step(self.timeline.total_ns / 8)
        for number in range(floor(self.timeline.total_ns / step) + 1):
            x = self.x(number * step)
            yield f'<line x1="{x:.1f}" y1="{self.top + HEAD - 4}" x2="{x:.1f}" y2="{self.axis}"/>'
            yield _text(x, self.axis + 14, f"{number * step / 1e3:g} µs", "middle")

    def _drawn(self, row: Sequence[Bar]) -> Iterator[list[Bar]]:
        """The bars of a row; neighbours that are too short to see are one group."""
        group: list[Bar] = []
        for bar in row:
            if group and not self._continues(group[-1], bar):
                yield group
                group = []
            group.append(bar)
        if group:
            yield group

    def _continues(self, last: Bar, bar: Bar) -> bool:
        gap = (bar.start_ns - last.start_ns - last.busy_ns) * self.scale
        is_short = last.busy_ns * self.scale < SHORTEST
        return is_short and gap < SHORTEST and last.instruction == bar.instruction

    def _bar(self, bars: Sequence[Bar], y: int) -> str:
        first, last = bars[0], bars[-1]
        start, end = first.start_ns, last.start_ns + last.busy_ns
        color = COLORS["dma" if first.queue is not None else first.lane]
        times = f" ({len(bars)} times)" if len(bars) > 1 else ""
        place = f", {Path(str(first.place)).name}" if first.place is not None else ""
        title = f"{first.name or first.instruction}{times}: {start:.0f} to {end:.0f} ns{place}"
        return (
            f'<rect x="{self.x(start):.2f}" y="{y}" rx="1" height="{ROW}" fill="{color}" '
            f'width="{max((end - start) * self.scale, SHORTEST):.2f}">'
            f"<title>{escape(title)}</title></rect>"
        )


def _text(x: float, y: int, text: str, anchor: str) -> str:
    return f'<text class="m" x="{x:g}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _round_step(least: float) -> float:
    """The least of 1, 2, 5, 10, 20, … that is not below `least`."""
    unit = 10.0 ** floor(log10(max(least, 1e-9)))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= least)
