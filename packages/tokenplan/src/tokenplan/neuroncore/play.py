"""A plan played on the timeline: how long it takes, what waits for what, beside other orders."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neuroncore.program import Program
from neuroncore.timeline import CAUSES, Timeline, estimate, ticks_per_ns
from neuroncore.timeline import machine as machine_of
from tokenplan.graph.token_graph import IMPLIED, KEPT, TokenGraph
from tokenplan.neuroncore.counters import values_of
from tokenplan.neuroncore.machine import DMA, machine
from tokenplan.neuroncore.needs import of_edges
from tokenplan.neuroncore.nests import Nests
from tokenplan.neuroncore.plan import AsyncPlan, all_pairs


@dataclass(frozen=True, slots=True)
class Played:
    """A plan that was played. Times are ns."""

    plan: AsyncPlan
    timeline: Timeline
    bars: Mapping[str, list[tuple[int, int]]]
    """Operation → first and last bar of each of its instances."""

    @property
    def makespan_ns(self) -> float:
        return self.timeline.total_ns

    @property
    def busiest(self) -> tuple[str, float]:
        """The lane that is busy longest, and for how long."""
        return self.timeline.bottleneck, self.timeline.busiest_ns

    @property
    def ratio(self) -> float:
        """The makespan over the busiest lane's own time."""
        return self.makespan_ns / self.busiest[1] if self.busiest[1] else 1.0

    @property
    def bandwidth_share(self) -> float:
        """For how much of the time the DMA engines were busy."""
        lanes = self.timeline.lanes
        return lanes["dma"].busy_ns / self.makespan_ns if self.makespan_ns else 0.0

    def exposed(self) -> dict[str, dict[str, float]]:
        """Engine → cause → the time it is idle between its first and last instruction."""
        lanes = self.timeline.lanes
        return {name: lanes[name].stalls for name in lanes if lanes[name].stalls and name != "dma"}


def play(graph: TokenGraph, plan: AsyncPlan, program: Program) -> Played:
    """The plan of `program`'s kernel with the times of the timeline, every instance."""
    order = PlannedOrder(graph, plan)
    timeline = estimate(program, mode="as_written", verified=True, order=order)
    bars = {op.id: gate.played for op, gate in zip(order.ops, order.gates, strict=True)}
    return Played(plan, timeline, bars)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A plan beside a kernel in one stream and beside one that waits for every conflict."""

    planned: Played
    all_pairs: Played
    serial_ns: float
    waits: int
    """Waits of the plan that are executed in one run, and those with every conflict."""
    all_waits: int


def compare(graph: TokenGraph, plan: AsyncPlan, program: Program) -> Comparison:
    """Play the plan, the same with all pairs waiting, and everything in one stream."""
    every = all_pairs(graph, plan)
    serial = estimate(program, mode="as_written", verified=True, order=SerialOrder(program.target))
    return Comparison(
        play(graph, plan, program), play(graph, every, program), serial.total_ns,
        executed(graph, plan), executed(graph, every),
    )  # fmt: skip


def executed(graph: TokenGraph, plan: AsyncPlan) -> int:
    """How many waits are made in one run; a counter that was waited for already is none."""
    nests = Nests(graph.kernel, plan.queues)
    found = 0
    for wait in plan.waits:
        values = values_of(nests, wait.op, wait.distance, wait.count)
        found += int((np.diff(values, prepend=0) > 0).sum())
    return found


# -- the order of a plan on the timeline -----------------------------------------------------------


NO_INSTRUCTION = -1
_DATA, _BUFFER, _ENGINE = (CAUSES.index(cause) for cause in ("data", "buffer", "engine"))


@dataclass(slots=True)
class Stream:
    """Completions of a queue: releases in ticks, never falling, and whose bars they are."""

    releases: list[int] = field(default_factory=list)
    bars: list[int] = field(default_factory=list)

    def completes(self, release: int, bar: int) -> None:
        """One more; nothing is complete before what stands ahead of it in the queue."""
        if self.releases and self.releases[-1] > release:
            release, bar = self.releases[-1], self.bars[-1]
        self.releases.append(release)
        self.bars.append(bar)


@dataclass(slots=True)
class PlannedGate:
    """Counters that an operation waits for: (stream, completions for each instance, cause)."""

    stream: Stream
    waits: list[tuple[Stream, list[int], int]]
    cost: int
    """Ticks that the waits take once the last of them holds."""
    passed: list[int]
    """The last bar of every instance so far, of all gates."""
    played: list[tuple[int, int]] = field(default_factory=list)
    """First and last bar of each instance."""
    bar: int = NO_INSTRUCTION
    why: int = _ENGINE

    def look(self) -> int:
        ready, number = 0, len(self.played)
        self.bar, self.why = NO_INSTRUCTION, _ENGINE
        for stream, values, why in self.waits:
            value = values[number]
            if value and stream.releases[value - 1] > ready:
                ready, self.bar, self.why = stream.releases[value - 1], stream.bars[value - 1], why
        return ready + self.cost if ready else 0

    def done(self, release: int, bar: int) -> None:
        self.stream.completes(release, bar)
        self.played.append((self.passed[-1] + 1, bar))
        self.passed.append(bar)


class PlannedOrder:
    """The order of a plan, for `neuroncore.timeline.estimate`.

    An engine still waits for its own results before it reads them, which takes no counter.
    """

    def __init__(self, graph: TokenGraph, plan: AsyncPlan) -> None:
        nests = Nests(graph.kernel, plan.queues)
        self.ops = list(graph.kernel.ops())
        self.queues = plan.queues
        self.streams = {name: Stream() for name in plan.queues.values()}
        runs = nests.by_id
        waits: dict[str, list[tuple[Stream, list[int], int]]] = defaultdict(list)
        counts: Counter[str] = Counter()
        for wait in plan.waits:
            values = values_of(nests, wait.op, wait.distance, wait.count).tolist()
            why = _DATA if wait.why[0].startswith("RAW") else _BUFFER
            waits[wait.op].append((self.streams[wait.queue], values, why))
            counts[wait.op] += 1
        for need in of_edges(graph.kernel, graph.edges, (KEPT, IMPLIED)):
            own = plan.queues[need.op] == plan.queues[need.after] and need.kind == "RAW"
            if own and need.op in runs and need.after in runs:
                affine = nests.completions(runs[need.after], len(need.distance))
                values = values_of(nests, need.op, need.distance, affine).tolist()
                waits[need.op].append((self.streams[plan.queues[need.op]], values, _DATA))
        cost = _wait_ticks(graph.kernel.target)
        passed = [NO_INSTRUCTION]
        self.gates = [
            PlannedGate(
                self.streams[plan.queues[op.id]], waits[op.id], round(cost * counts[op.id]), passed
            )
            for op in self.ops
        ]

    def gate(self, call: int) -> PlannedGate:
        return self.gates[call]

    def queue(self, call: int) -> int:
        return int(self.queues[self.ops[call].id].removeprefix(DMA))


def _wait_ticks(target: str) -> float:
    return machine().wait_ns * ticks_per_ns(machine_of(target))


@dataclass(slots=True)
class SerialGate:
    """Starts when the instruction before it has completed, wherever that ran."""

    stream: Stream
    cost: int
    """Ticks that a wait takes."""
    bar: int = NO_INSTRUCTION
    why: int = _ENGINE

    def look(self) -> int:
        if not self.stream.releases:
            return 0
        self.bar = self.stream.bars[-1]
        return self.stream.releases[-1] + self.cost

    def done(self, release: int, bar: int) -> None:
        self.stream.completes(release, bar)


class SerialOrder:
    """Everything in one stream: no instruction starts before the one before it has completed."""

    def __init__(self, target: str) -> None:
        self.one = SerialGate(Stream(), round(_wait_ticks(target)))

    def gate(self, call: int) -> SerialGate:
        del call
        return self.one

    def queue(self, call: int) -> int:
        del call
        return 0
