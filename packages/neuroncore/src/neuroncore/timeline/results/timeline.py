"""Timelines: the latency of a program, its causes, and the activity of every engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from neuroncore.findings.notebook_html import ShownAsHtml
from neuroncore.program import Buffer, Call, Program
from neuroncore.source_location import Place
from neuroncore.timeline.compilation.toolchain import Transformation
from neuroncore.timeline.model.bars import CAUSES, KINDS, MULTIPLY, NO_BAR, TRANSFER, Played
from neuroncore.timeline.model.lanes import DMA, ENGINES, FIRST_QUEUE, lane_name
from neuroncore.timeline.playing.sites import Site
from neuroncore.timeline.playing.skipped_periods import Twin
from neuroncore.timeline.playing.state import State
from neuroncore.timeline.results.occupancy import Life, lives, occupancy
from neuroncore.timeline.results.uncertainty import MEASURED, PathKey, Uncertainty, uncertainty
from neuroncore.work import MultiplyMoving

LINES = 6
"""Lines of the critical path that are shown."""
STALLS = 3
"""Causes of stalls that are shown for a lane."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One micro-op. Its engine is occupied from start to start + busy, its result there at end."""

    number: int
    lane: str
    queue: int | None
    instruction: str
    name: str | None
    kind: str
    start_ns: float
    busy_ns: float
    end_ns: float
    place: Place | None
    waited_for: int | None
    """The number of the bar that it could not start before."""
    why: str
    """data, buffer, engine or resource."""
    call: Call
    hbm_bytes: int = 0
    """What a DMA moves to or from HBM."""
    flops: int = 0
    """Of a matmul, what this multiply computes."""


@dataclass(frozen=True, slots=True)
class LaneUse:
    """How long a lane was occupied, and how long it stalled, by cause (ns)."""

    busy_ns: float
    stalls: dict[str, float]
    """"data from dma", "buffer held by vector", … → ns between its first and last instruction."""


@dataclass(frozen=True, slots=True)
class CriticalPathStep:
    """A stretch of the critical path: the micro-op, how long the path stays with it."""

    bar: Bar
    path_ns: float


class Timeline(ShownAsHtml):
    """A program played on one core of `target`.

    Times are ns from the first instruction. `repeats` are periods of loops that were carried
    forward: (first bar, bar behind the last, times, ns of one period).
    """

    def __init__(
        self, program: Program, mode: str, state: State, sites: list[Site],
        values: dict[str, float], peaks: dict[str, float],
        assumed: tuple[Transformation, ...] = (), source: Program | None = None,
    ) -> None:  # fmt: skip
        self.program, self.mode = program, mode
        self.core: int | None = None
        """Of a launch on several cores: which one."""
        self.source = source or program
        """The program before the transformations that are assumed."""
        self._state, self._sites, self._clock = state, sites, state.clock
        self.values, self._peaks = values, peaks
        self.target, self.assumed = program.target, assumed
        self.total_ns = self._ns(state.end)
        """From the first instruction to the last completion."""
        self.launch_ns = self.total_ns + values["LAUNCH"]
        """With the fixed start and end of a launch: latency on the device."""
        self.num_ops = state.next_bar
        """The micro-ops that were played, repeats counted: weights that stay are not loaded."""
        self.hbm_bytes, self.flops = state.hbm_bytes, state.flops
        self.repeats = [(a, b, n, self._ns(t)) for a, b, n, t in state.repeats]

    def of_core(self, core: int | None) -> Timeline:
        """The same timeline on another core of its launch."""
        if core == self.core:
            return self
        other = copy(self)
        other.core = core
        return other

    @property
    def num_bars(self) -> int:
        """The micro-ops that were played; repeats are not counted again."""
        return len(self._state.bars)

    def _ns(self, ticks: float) -> float:
        return self._clock.ns(ticks)

    # -- totals -----------------------------------------------------------------------------------

    @cached_property
    def lanes(self) -> dict[str, LaneUse]:
        """Use of tensor, vector, scalar, gpsimd, sync and dma."""
        state, found = self._state, {}
        for number, engine in enumerate(ENGINES):
            lane = state.lanes[number]
            found[engine.name] = LaneUse(self._ns(lane.busy), self._stalls(lane.stalls))
        queues = state.lanes[FIRST_QUEUE:]
        waiting: dict[tuple[int, int], int] = {}
        for queue in queues:
            for key, ticks in queue.stalls.items():
                waiting[key] = waiting.get(key, 0) + ticks
        shared = [state.bandwidth.busy, *(g.busy for g in state.generators.values())]
        found[DMA] = LaneUse(self._ns(max(shared)), self._stalls(waiting))
        return found

    def _stalls(self, found: dict[tuple[int, int], int]) -> dict[str, float]:
        named: dict[str, float] = {}
        for (why, behind), ticks in found.items():
            if not ticks:
                continue
            who = "" if behind == NO_BAR else f" {LINKS[CAUSES[why]]} {lane_name(behind)}"
            key = CAUSES[why] + who
            named[key] = named.get(key, 0.0) + self._ns(ticks)
        return dict(sorted(named.items(), key=lambda item: -item[1]))

    @property
    def bottleneck(self) -> str:
        """The lane that is busy longest."""
        return max(self.lanes, key=lambda name: self.lanes[name].busy_ns)

    @property
    def mfu(self) -> float:
        """Floating-point operations of matmuls against TensorE's bf16 peak, over the total."""
        return self.flops / (self.total_ns * self._peaks["tflops"] * 1e3) if self.total_ns else 0.0

    @property
    def mbu(self) -> float:
        """HBM bytes against the HBM bandwidth that profilers divide by, over the total."""
        return self.hbm_bytes / (self.total_ns * self._peaks["hbm"]) if self.total_ns else 0.0

    @property
    def dma_efficiency(self) -> float:
        """Bytes that DMAs moved against what their engines could have while they were busy."""
        moved = self._state.moved_bytes
        could = self._ns(self._state.transfer_work) * self._peaks["dma"]
        return moved / could if could else 0.0

    # -- one by one -------------------------------------------------------------------------------

    @cached_property
    def bars(self) -> list[Bar]:
        """Every micro-op that was played, in program order; repeats are not unrolled."""
        return [self._bar(number) for number in range(len(self._state.bars))]

    def _bar(self, number: int) -> Bar:
        played = Played(*self._state.bars[number])
        site, call = self._sites[played.site], self._sites[played.site].call
        queue = played.lane - FIRST_QUEUE if played.lane >= FIRST_QUEUE else None
        return Bar(
            number, lane_name(played.lane), queue, call.instruction, call.name,
            KINDS[played.kind], self._ns(played.start), self._ns(played.free - played.start),
            self._ns(played.end), call.origin,
            None if played.cause == NO_BAR else self._state.skips.place(played.cause),
            CAUSES[played.why], call,
            site.hbm_bytes, _flops(site) if played.kind == MULTIPLY else 0,
        )  # fmt: skip

    def critical_path(self) -> list[CriticalPathStep]:
        """The chain that determines the total: each micro-op could not start before the one ahead.

        The path runs once through a period that was carried forward; its stretches there
        represent all of its repetitions, so that all stretches add up to the total.
        """
        return list(self._steps)

    @cached_property
    def _steps(self) -> list[CriticalPathStep]:
        bars = self.__dict__.get("bars")  # where they are made already
        bar = self._bar if bars is None else bars.__getitem__
        return [CriticalPathStep(bar(n), self._ns(ticks)) for n, ticks, _ in self._path]

    @cached_property
    def _path(self) -> list[Stretch]:
        return _critical_path(self._state)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The 80 % interval of `launch_ns`, what was measured, the constants that matter."""
        bars, path = self._state.bars, dict[PathKey, int]()
        for place, ticks, times in self._path:
            bar = bars[place]
            key = bar[0], bar[2], ticks / times
            path[key] = path.get(key, 0) + times
        return uncertainty(path, self._sites, self._clock, self.launch_ns, self.program)

    def by_line(self) -> dict[str, float]:
        """Source line → share of the critical path, the largest first."""
        found: dict[str, float] = {}
        for step in self.critical_path():
            place = step.bar.place
            where = f"{place.file}:{place.line}" if place else step.bar.instruction
            found[where] = found.get(where, 0.0) + step.path_ns
        total = sum(found.values()) or 1.0
        return {k: v / total for k, v in sorted(found.items(), key=lambda item: -item[1])}

    def occupancy(self) -> dict[str, list[tuple[float, int]]]:
        """Bytes per partition of "sbuf" and banks of "psum" that are held: (ns, from there on).

        A buffer is held from the first micro-op that touches it after its allocation to the end of
        the last. Periods that were carried forward are unfolded.
        """
        found = occupancy(self.program, self._lives)
        return {s.name: [(self._ns(t), held) for t, held in found[s]] for s in found}

    def lives(self) -> list[tuple[Buffer, float, float]]:
        """Every allocation on chip that is used, and from when to when (ns) it is held."""
        return [(life.buffer, self._ns(life.start), self._ns(life.end)) for life in self._lives]

    @cached_property
    def _lives(self) -> list[Life]:
        return lives(self.program, self._state, self._sites)

    def __str__(self) -> str:
        return table(self)

    def __iter__(self) -> Iterator[Bar]:
        return iter(self.bars)

    def __repr__(self) -> str:
        return f"<timeline of {self.program.name} on {self.target}: {self.total_ns / 1e3:.2f} µs>"


def _flops(site: Site) -> int:
    """Of one of its multiplies: all are alike."""
    multiply = site.work[-1]
    return multiply.flops if isinstance(multiply, MultiplyMoving) else 0


def launch_starts(timelines: Sequence[Timeline]) -> Iterator[tuple[Timeline, float]]:
    """Every timeline with its begin (ns): launches in turn, the cores of each at once."""
    begin = behind = 0.0
    for timeline in timelines:
        begin = begin if timeline.core else behind
        behind = max(behind, begin + timeline.launch_ns)
        yield timeline, begin


# -- critical path --------------------------------------------------------------------------------

Stretch = list[int]
"""The place of a bar in `state.bars`, the ticks that the path stays with it and with the bars it
represents, and how many these are, itself included.
"""


def _critical_path(state: State) -> list[Stretch]:
    """The path in order of time.

    Going back from the last completion, bars that were not played are copies of the played period,
    later by whole periods, and wait for bars as many numbers before them. Where the path is for the
    second time at a bar of a period, it has gone round; further rounds are alike, and one
    represents all of them. The ticks add up to the total.
    """
    bars, twin_of = state.bars, state.skips.twin
    if not bars:
        return []
    number, until = _last(state)
    path: list[Stretch] = []
    rounds = _Rounds()
    while number != NO_BAR:
        twin = twin_of(number)
        _, _, _, start, _, _, cause, _ = bars[twin.place]
        start += twin.later
        path.append([twin.place, until - start if until > start else 0, 1])
        skipped, ticks = rounds.go(path, number, twin) if twin.rounds else (0, 0)
        number, until = number - skipped, start - ticks
        number = NO_BAR if cause == NO_BAR else cause + number - twin.number
    path[-1][1] += max(0, until)
    return path[::-1]


class _Rounds:
    """Where the path has been in the periods that it runs through."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
        """First bar behind a played period → place in it → (bar, stretches with its own)."""

    def go(self, path: list[Stretch], number: int, twin: Twin) -> tuple[int, int]:
        """Skip the rounds that are like the one to bar `number`: how many bars and ticks."""
        for skip, start in reversed(twin.rounds):
            seen = self.seen.setdefault((start, skip.size), {})
            place = (number - start) % skip.size
            before, at = seen.get(place, (number, len(path)))
            seen[place] = number, len(path)
            each = before - number
            if each and (count := (number - start) // each):
                path += [[n, ticks * count, times * count] for n, ticks, times in path[at:]]
                seen.clear()
                return count * each, count * each // skip.size * skip.ticks
        return 0, 0


def _last(state: State) -> tuple[int, int]:
    """The bar that ends last, the first of several, and when; the last repetition counts."""
    bars = state.bars
    later, drifts, numbers = [0] * (len(bars) + 1), [0] * (len(bars) + 1), [1] * (len(bars) + 1)
    numbers[0] = 0
    for (first, behind, times, ticks), skip in zip(state.repeats, state.skips.all, strict=True):
        numbers[first] += times * skip.size
        for found, by in (later, ticks), (drifts, skip.drift):
            found[first] += times * by
            found[behind] -= times * by
    later, drifts, numbers = map(accumulate, (later, drifts, numbers))
    ends = [
        (bar[5] + more + drift * (bar[2] == TRANSFER), -number)
        for bar, more, drift, number in zip(bars, later, drifts, numbers, strict=False)
    ]
    end, number = max(ends)
    return -number, end


# -- as text --------------------------------------------------------------------------------------

LINKS = {"data": "from", "buffer": "held by", "engine": "of", "resource": "with"}


def table(timeline: Timeline) -> str:
    """Total, use and stalls of every lane, efficiency, the lines of the critical path."""
    return "\n".join([*_head(timeline), *_lanes(timeline), *_path(timeline)])


def _head(timeline: Timeline) -> Iterator[str]:
    """Time with its interval, bottleneck, domain, what the toolchain is assumed to do."""
    found, use = timeline.uncertainty, timeline.lanes[timeline.bottleneck]
    mode = timeline.mode.replace("_", " ")
    yield (
        f"{timeline.program.name} on {timeline.target}, {mode}: {_us(timeline.total_ns)}, "
        f"{_us(timeline.launch_ns)} with the launch "
        f"(80 %: {found.low_ns / 1e3:.2f} to {_us(found.high_ns)})"
    )
    yield (
        f"bottleneck: {timeline.bottleneck}, busy {use.busy_ns / (timeline.total_ns or 1.0):.1%}; "
        f"{timeline.num_ops} micro-ops, {timeline.hbm_bytes} HBM bytes; "
        f"MFU {timeline.mfu:.1%}, MBU {timeline.mbu:.1%}, DMA efficiency "
        f"{timeline.dma_efficiency:.1%}"
    )
    outside = [f"{v}: {', '.join(names)}" for v, names in found.domain.items() if v != MEASURED]
    yield f"domain: {'; '.join(outside) or MEASURED}; most uncertain: {', '.join(found.dominant)}"
    does = ", ".join(each.name for each in timeline.assumed) or "nothing is moved"
    yield f"assumed of the toolchain: {does}"


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
