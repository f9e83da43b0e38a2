"""Edges between operations as a graph whose paths say which iteration waits for which."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tokenplan.graph.iteration_vectors import Point, moved
from tokenplan.kernel.model import Kernel, shared_loops


@dataclass(frozen=True, slots=True)
class Arc:
    """An edge between operations by number, with the number of its place in the list."""

    at: int
    source: int
    sink: int
    distance: Point

    @property
    def is_carried(self) -> bool:
        return any(self.distance)

    @property
    def shift(self) -> int:
        """By how much it can move an iteration of any loop, a carry included."""
        return 1 + max(map(abs, self.distance), default=0)


class Graph:
    """Arcs out of each operation; `work` counts steps along them."""

    def __init__(self, kernel: Kernel) -> None:
        loops = kernel.loops()
        self.ops = list(kernel.ops())
        self.trips = [tuple(loops[name].trips for name in op.loops) for op in self.ops]
        self.out: dict[int, list[Arc]] = defaultdict(list)
        self.work = 0

    def add(self, arc: Arc) -> None:
        self.out[arc.source].append(arc)

    def remove(self, arc: Arc) -> None:
        self.out[arc.source].remove(arc)

    def share(self, one: int, other: int) -> int:
        """How many loops are around both."""
        a, b = self.ops[one], self.ops[other]
        return len(a.loops) if one == other else len(shared_loops(a, b))

    def first_instance(self, arc: Arc, point: Point) -> Point | None:
        """The first instance of the arc's sink that waits for `point` of its source."""
        trips = self.trips[arc.sink]
        prefix = moved(point, arc.distance, trips)
        return None if prefix is None else prefix + (0,) * (len(trips) - len(prefix))

    def arrives(
        self, source: int, start: Point, sink: int, goal: Point, far: int | None = None
    ) -> bool:
        """Whether a path from `start` of `source` is at `sink` no later than `goal`.

        Paths that move by more than `far` do not count.
        """
        first: dict[int, Point] = {}
        waiting = [(source, start, 0)]
        while waiting:
            at, point, shift = waiting.pop()
            for step in self.out[at]:
                self.work += 1
                arrived = self._towards(step, point, sink, goal)
                further = shift + (step.shift if step.is_carried else 0)
                if arrived is None or (far is not None and further > far):
                    continue
                if step.sink == sink and arrived <= goal:
                    return True
                if step.sink not in first or arrived < first[step.sink]:
                    first[step.sink] = arrived
                    waiting.append((step.sink, arrived, further))
        return False

    def _towards(self, step: Arc, point: Point, sink: int, goal: Point) -> Point | None:
        """Where a step arrives on the way to `goal` of `sink`; None beyond it."""
        arrived = self.first_instance(step, point)
        depth = self.share(step.sink, sink)
        return None if arrived is None or arrived[:depth] > goal[:depth] else arrived

    def first_instances(self, source: int, start: Point) -> dict[int, Point]:
        """Of each operation, the first instance that waits for `start` of `source`."""
        first: dict[int, Point] = {}
        waiting = [(source, start)]
        while waiting:
            at, point = waiting.pop()
            for step in self.out[at]:
                self.work += 1
                arrived = self.first_instance(step, point)
                if arrived is None or (step.sink in first and first[step.sink] <= arrived):
                    continue
                first[step.sink] = arrived
                waiting.append((step.sink, arrived))
        return first
