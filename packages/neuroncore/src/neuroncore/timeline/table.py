"""A timeline as a short text: where the time goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuroncore.timeline.result import Timeline

LINES = 6
"""Lines of the critical path that are shown."""
STALLS = 3
"""Causes of stalls that are shown for a lane."""


def table(timeline: Timeline) -> str:
    """Total, use and stalls of every lane, efficiency, the lines of the critical path."""
    return "\n".join([*_head(timeline), *_lanes(timeline), *_path(timeline)])


def _head(timeline: Timeline) -> Iterator[str]:
    mode = timeline.mode.replace("_", " ")
    yield (
        f"{timeline.program.name} on {timeline.target}, {mode}: {_us(timeline.total_ns)}, "
        f"{_us(timeline.launch_ns)} with the launch"
    )
    yield (
        f"{timeline.num_ops} micro-ops, {timeline.hbm_bytes} HBM bytes; "
        f"MFU {timeline.mfu:.1%}, MBU {timeline.mbu:.1%}, DMA efficiency "
        f"{timeline.dma_efficiency:.1%}"
    )


def _lanes(timeline: Timeline) -> Iterator[str]:
    total = timeline.total_ns or 1.0
    yield f"{'':8}{'busy':>13}{'':>8}  stalls"
    for name, use in timeline.lanes.items():
        if not use.busy_ns:
            continue
        stalls = [f"{cause} {_us(ns)}" for cause, ns in list(use.stalls.items())[:STALLS]]
        more = len(use.stalls) - STALLS
        stalls += [f"{more} more"] if more > 0 else []
        line = f"{name:8}{_us(use.busy_ns):>13}{use.busy_ns / total:8.1%}  {', '.join(stalls)}"
        yield line.rstrip()


def _path(timeline: Timeline) -> Iterator[str]:
    """By source line; what has none goes by its instruction."""
    lines = list(timeline.by_line().items())
    names: dict[str, set[str]] = {}
    for bar in (step.bar for step in timeline.critical_path()):
        where = f"{bar.place.file}:{bar.place.line}" if bar.place else bar.instruction
        names.setdefault(where, set()).add(bar.instruction)
    yield "critical path"
    for where, share in lines[:LINES]:
        file, colon, line = where.rpartition(":")
        shown = f"{Path(file).name}:{line}  " if colon else ""
        yield f"{share:8.1%}  {shown}{', '.join(sorted(names[where]))}"
    if len(lines) > LINES:
        rest = sum(share for _, share in lines[LINES:])
        yield f"{rest:8.1%}  {len(lines) - LINES} more lines"


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.2f} µs"
