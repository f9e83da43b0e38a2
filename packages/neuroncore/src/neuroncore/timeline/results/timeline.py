"""Timelines: the latency of a program, its causes, and the activity of every engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neuroncore.findings.notebook_html import ShownAsHtml
from neuroncore.program import Buffer, Call, Program, calls
from neuroncore.source_location import Place
from neuroncore.timeline.compilation.toolchain import Transformation
from neuroncore.timeline.model.bars import CAUSES, KINDS, MULTIPLY, NO_BAR
from neuroncore.timeline.model.lanes import DMA, ENGINES, FIRST_QUEUE, lane_name
from neuroncore.timeline.playing.sites import Site
from neuroncore.timeline.playing.state import State
from neuroncore.timeline.results.critical_path import (
    Stretch,
    critical_path,
    is_out_of_order,
    stays,
)
from neuroncore.timeline.results.occupancy import Life, lives, occupancy
from neuroncore.timeline.results.uncertainty import MEASURED, Uncertainty, uncertainty
from neuroncore.work import MultiplyMoving

_FIELDS = ("site", "lane", "kind", "start", "free", "end", "cause", "why")
"""Of a bar in `State.bars`."""
LAUNCH = "launch"
"""The bottleneck of a kernel that executes nothing."""
LINES = 6
"""Lines of the critical path that are shown."""
STALLS = 3
"""Causes of stalls that are shown for a lane."""


class Bar(NamedTuple):
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
        changes: Collection[str] = (), cores: int = 1,
    ) -> None:  # fmt: skip
        self.program, self.mode = program, mode
        self.core: int | None = None
        """Of a launch on several cores: which one."""
        self.source = source or program
        """The program before the transformations that are assumed."""
        self._state, self._sites, self._clock = state, sites, state.clock
        self.values, self._peaks = values, peaks
        self.target, self.assumed = program.target, assumed
        self._changes, self.cores = changes, cores
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

    @cached_property
    def changes(self) -> tuple[Transformation, ...]:
        """Of the transformations that are assumed, the ones that changed this kernel."""
        state, names = self._state, set(self._changes)
        if state.reorders and is_out_of_order(state):
            names.add("scheduling")
        return tuple(each for each in self.assumed if each.name in names)

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
        """The lane that is busy longest; LAUNCH for a kernel without an instruction."""
        name = max(self.lanes, key=lambda name: self.lanes[name].busy_ns)
        return name if self.num_ops else LAUNCH

    @property
    def busiest_ns(self) -> float:
        """How long the bottleneck is busy, which the total cannot be below."""
        return max(use.busy_ns for use in self.lanes.values())

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
        site_number, lane, kind, start, free, end, cause, why = self._state.bars[number]
        site, per_ns = self._sites[site_number], self._clock.ticks_per_ns
        call = site.call
        return Bar(
            number, lane_name(lane), lane - FIRST_QUEUE if lane >= FIRST_QUEUE else None,
            call.instruction, call.name, KINDS[kind],
            start / per_ns, (free - start) / per_ns, end / per_ns, call.origin,
            None if cause == NO_BAR else self._state.skips.place(cause), CAUSES[why], call,
            site.hbm_bytes, _flops(site) if kind == MULTIPLY else 0,
        )  # fmt: skip

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The bars as integers: call (its place among the program's), lane (engines by number,
        DMA queues behind them), kind and why (places in KINDS and CAUSES), start, busy, end
        (ticks), cause (the number of the bar that it waited for, or -1), bytes to or from HBM.
        """
        rows = np.array(self._state.bars, np.int64).reshape(-1, len(_FIELDS)).T
        found = dict(zip(_FIELDS, rows, strict=True))
        site, free, skips = found.pop("site"), found.pop("free"), self._state.skips
        if skips.all:
            found["cause"] = np.array(
                [n if n == NO_BAR else skips.place(n) for n in found["cause"].tolist()], np.int64
            )
        places = {id(call): place for place, call in enumerate(calls(self.program.body))}
        call = np.array([places[id(each.call)] for each in self._sites], np.int64)
        hbm_bytes = np.array([each.hbm_bytes for each in self._sites], np.int64)
        busy = free - found["start"]
        return {**found, "call": call[site], "busy": busy, "bytes": hbm_bytes[site]}

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
        return critical_path(self._state)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The 80 % interval of `launch_ns`, what was measured, the constants that matter."""
        path = stays(self._state, self._path)
        return uncertainty(path, self._sites, self._clock, self.launch_ns, self.program, self.cores)

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
        found, per_ns = occupancy(self.program, self._lives), self._clock.ticks_per_ns
        return {s.name: [(ticks / per_ns, held) for ticks, held in found[s]] for s in found}

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


# -- as text --------------------------------------------------------------------------------------

LINKS = {"data": "from", "buffer": "held by", "engine": "of", "resource": "with"}


def table(timeline: Timeline) -> str:
    """Total, use and stalls of every lane, efficiency, the lines of the critical path."""
    where = [*_lanes(timeline), *_path(timeline)] if timeline.num_ops else []
    return "\n".join([*_head(timeline), *where])


def _head(timeline: Timeline) -> Iterator[str]:
    """Time with its interval, bottleneck, domain, what the toolchain is assumed to do."""
    found, busy = timeline.uncertainty, ""
    if timeline.num_ops:
        busy = f", busy {timeline.busiest_ns / (timeline.total_ns or 1.0):.1%}"
    mode = timeline.mode.replace("_", " ")
    yield (
        f"{timeline.program.name} on {timeline.target}, {mode}: {_us(timeline.total_ns)}, "
        f"{_us(timeline.launch_ns)} with the launch "
        f"(80 %: {found.low_ns / 1e3:.2f} to {_us(found.high_ns)})"
    )
    yield (
        f"bottleneck: {timeline.bottleneck}{busy}; "
        f"{timeline.num_ops} micro-ops, {timeline.hbm_bytes} HBM bytes; "
        f"MFU {timeline.mfu:.1%}, MBU {timeline.mbu:.1%}, DMA efficiency "
        f"{timeline.dma_efficiency:.1%}"
    )
    outside = [f"{v}: {', '.join(names)}" for v, names in found.domain.items() if v != MEASURED]
    verdict = MEASURED if found.domain else "no instruction"
    yield f"domain: {'; '.join(outside) or verdict}; most uncertain: {', '.join(found.dominant)}"
    does = ", ".join(each.name for each in timeline.changes) or "nothing is moved"
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
