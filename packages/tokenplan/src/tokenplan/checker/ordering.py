"""Happens-before from edges: which instances are done before an instance starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tokenplan.checker.records import Edge, Op
from tokenplan.checker.unrolled import Unrolled

Visit = Callable[[int, int], bool]
"""Called with an instance and the bitset of what is done before it; False stops the walk."""


@dataclass(frozen=True, slots=True)
class Wave:
    """The requirement of one edge on the instances of its sink: per instance the last iteration of
    the shared loops that must be done, as a number; -1 for none.
    """

    edge: Edge
    source: int
    depth: int
    upto: list[int]


Waves = dict[int, list[Wave]]
"""By the number of the sink."""


def waves(unrolled: Unrolled, edges: Iterable[Edge]) -> Waves:
    """The edges by their sink's number."""
    index = {op.id: n for n, op in enumerate(unrolled.ops)}
    found: Waves = {}
    for edge in edges:
        source, sink = index[edge.source], index[edge.sink]
        depth = len(edge.distance)
        upto = last_iteration(unrolled, unrolled.ops[sink], sink, edge.distance)
        found.setdefault(sink, []).append(Wave(edge, source, depth, upto.tolist()))
    return found


def last_iteration(
    unrolled: Unrolled, op: Op, number: int, distance: tuple[int, ...]
) -> np.ndarray:
    """(instances,): the lexicographically last iteration at or before j - distance, -1 for none.

    j are the iterations of the outermost len(distance) loops of `op`; components of j - distance
    may be outside their loops.
    """
    at = unrolled.iterations[number][:, : len(distance)] - np.array(distance, np.int64)
    sizes = [unrolled.trips[loop] for loop in op.loops[: len(distance)]]
    found = np.zeros(len(at), np.int64)
    decided = np.zeros(len(at), bool)
    for column, size in enumerate(sizes):
        below, above = at[:, column] < 0, at[:, column] >= size
        rest = prod(sizes[column:])
        last = (found + above) * rest - 1  # of the whole nest: inner loops have run to their end
        within = found * size + at[:, column]
        found = np.where(decided, found, np.where(below | above, last, within))
        decided |= below | above
    return found


@dataclass(slots=True)
class Walk:
    """The instances in program order, each with the bitset of what is done before it.

    Every edge points forward in program order, so what an instance waits for is known by then.
    `requested` are waves that order nothing, but whose instances `required` gives.
    """

    unrolled: Unrolled
    by_sink: Waves
    requested: Waves = field(default_factory=dict)
    done: dict[tuple[int, int], list[int]] = field(init=False)
    """Per operation and depth: what is done once it has done iteration 0 … n of these loops."""

    def run(self, visit: Visit) -> None:
        each = [*self.by_sink.values(), *self.requested.values()]
        self.done = {(wave.source, wave.depth): [] for waves in each for wave in waves}
        depths: dict[int, list[tuple[int, list[int]]]] = {}
        for op, depth in self.done:
            linear = self.unrolled.linear(op, depth).tolist()
            depths.setdefault(op, []).append((depth, linear))
        ops, numbers = self.unrolled.op.tolist(), self.unrolled.number.tolist()
        for instance, (op, number) in enumerate(zip(ops, numbers, strict=True)):
            before = 0
            for wave in self.by_sink.get(op, ()):
                before |= self.required(wave, number)
            if not visit(instance, before):
                return
            for depth, iterations in depths.get(op, ()):
                finished, iteration = self.done[op, depth], iterations[number]
                last = finished[-1] if finished else 0
                finished.extend([last] * (iteration + 1 - len(finished)))
                finished[iteration] |= before | 1 << instance

    def required(self, wave: Wave, number: int) -> int:
        """The number of instances that must be done before instance `number` of the wave's sink."""
        upto, finished = wave.upto[number], self.done[wave.source, wave.depth]
        return finished[min(upto, len(finished) - 1)] if upto >= 0 and finished else 0


def unordered(
    unrolled: Unrolled, by_sink: Waves, needed: list[int], first_only: bool = False
) -> dict[int, int]:
    """Instance -> bitset of earlier instances that it needs done before and that may not be."""
    missing: dict[int, int] = {}

    def visit(instance: int, before: int) -> bool:
        if gap := needed[instance] & ~before:
            missing[instance] = gap
        return not (gap and first_only)

    Walk(unrolled, by_sink).run(visit)
    return missing
