"""A plan as an order of the timeline: instructions wait for counters and for nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuroncore.timeline import CAUSES, ticks_per_ns
from neuroncore.timeline import machine as machine_of
from tokenplan.graph.token_graph import IMPLIED, KEPT, TokenGraph
from tokenplan.neuroncore.counters import values_of
from tokenplan.neuroncore.machine import DMA, machine
from tokenplan.neuroncore.needs import of_edges
from tokenplan.neuroncore.nests import Nests
from tokenplan.neuroncore.plan import AsyncPlan

NO_INSTRUCTION = -1
_DATA, _BUFFER, _ENGINE = (CAUSES.index(cause) for cause in ("data", "buffer", "engine"))


@dataclass(slots=True)
class Stream:
    """What a queue has completed: releases in ticks, never falling, and whose bars they are."""

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
        waits: dict[str, list[tuple[Stream, list[int], int]]] = {op.id: [] for op in self.ops}
        counts = dict.fromkeys(waits, 0)
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
