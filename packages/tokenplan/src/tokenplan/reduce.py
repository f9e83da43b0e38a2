"""The minimal graph: edges that follow from others are implied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tokenplan.graph import IMPLIED, KEPT, Edge
from tokenplan.iterations import Point, moved, representatives
from tokenplan.model import Kernel, Op, shared_loops

WORK = 400_000
"""Steps along edges, all questions together; beyond it an edge that might be implied is kept."""


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


def reduce(kernel: Kernel, edges: Iterable[Edge], work: int = WORK) -> tuple[Edge, ...]:
    """The edges, those that follow from other kept ones as implied."""
    edges = tuple(edges)
    reduction = _Reduction(kernel, work)
    numbers = {op.id: n for n, op in enumerate(reduction.ops)}
    arcs = [
        Arc(at, numbers[edge.source], numbers[edge.sink], edge.distance)
        for at, edge in enumerate(edges)
        if edge.status == KEPT
    ]
    needed = {arc.at for arc in reduction.minimal(arcs)}
    implied = {arc.at for arc in arcs} - needed
    return tuple(
        replace(edge, status=IMPLIED) if at in implied else edge for at, edge in enumerate(edges)
    )


@dataclass(slots=True)
class _Reduction:
    kernel: Kernel
    work: int
    ops: list[Op] = field(init=False)
    trips: list[tuple[int, ...]] = field(init=False)
    reach: list[int] = field(init=False)
    """Bit v of reach[u]: without a later iteration, v follows u (or is u)."""
    out: dict[int, list[Arc]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        loops = self.kernel.loops()
        self.ops = list(self.kernel.ops())
        self.trips = [tuple(loops[name].trips for name in op.loops) for op in self.ops]
        self.reach = [1 << n for n in range(len(self.ops))]

    def minimal(self, arcs: list[Arc]) -> list[Arc]:
        """Those that no others imply."""
        nearest: dict[tuple[int, int], Arc] = {}
        for arc in arcs:
            known = nearest.get((arc.source, arc.sink))
            if known is None or arc.distance < known.distance:
                nearest[arc.source, arc.sink] = arc
        within = self._within([arc for arc in nearest.values() if not arc.is_carried])
        for arc in within:
            self.out[arc.source].append(arc)
        carried = [arc for arc in nearest.values() if arc.is_carried]
        carried.sort(key=lambda arc: (len(arc.distance), arc.distance, arc.at))
        for arc in carried:
            self.out[arc.source].append(arc)
        return within + self._carried(carried)

    # -- one iteration ----------------------------------------------------------------------------

    def _within(self, arcs: list[Arc]) -> list[Arc]:
        """Transitive reduction of the acyclic graph of program order."""
        out: dict[int, list[Arc]] = defaultdict(list)
        for arc in arcs:
            out[arc.source].append(arc)
        kept = []
        for source in sorted(out, reverse=True):
            reached = 0
            for arc in sorted(out[source], key=lambda arc: arc.sink):
                if not reached >> arc.sink & 1:
                    kept.append(arc)
                    reached |= self.reach[arc.sink]
            self.reach[source] |= reached
        return kept

    # -- several iterations -----------------------------------------------------------------------

    def _carried(self, arcs: list[Arc]) -> list[Arc]:
        """Those that the rest of the graph does not imply, far ones left out first."""
        kept = list(arcs)
        for arc in reversed(arcs):
            kept.remove(arc)
            self.out[arc.source].remove(arc)
            if not (self._follows_one(arc, kept) or self._follows_path(arc)):
                kept.append(arc)
                self.out[arc.source].append(arc)
        return kept

    def _follows_one(self, arc: Arc, others: list[Arc]) -> bool:
        """Whether one other carried edge, with program order before and after it, implies it."""
        for other in others:
            depth = len(other.distance)
            if (
                depth <= len(arc.distance)
                and other.distance <= arc.distance[:depth]
                and self.reach[arc.source] >> other.source & 1
                and self.reach[other.sink] >> arc.sink & 1
                and self._share(arc.source, other.source) >= depth
                and self._share(other.sink, arc.sink) >= depth
            ):
                return True
        return False

    def _share(self, one: int, other: int) -> int:
        a, b = self.ops[one], self.ops[other]
        return len(a.loops) if one == other else len(shared_loops(a, b))

    def _follows_path(self, arc: Arc) -> bool:
        """Whether, from every iteration of its source, a path arrives in time.

        Loops with many iterations are looked at where they begin and end and once in between:
        a path that moves by `far` at most sees no difference there.
        """
        trips = self.trips[arc.source]
        far = 2 * _shift(arc) + 2
        for start in representatives(trips, 2 * far, far):
            goal = self._first_instance(arc, start)
            if goal is not None and not self._arrives(arc, start, goal, far):
                return False
        return True

    def _arrives(self, arc: Arc, start: Point, goal: Point, far: int) -> bool:
        """Whether a path from `start` of the source is at the sink no later than `goal`."""
        first: dict[int, Point] = {}
        waiting = [(arc.source, start, 0)]
        while waiting:
            at, point, shift = waiting.pop()
            for step in self.out[at]:
                self.work -= 1
                if self.work < 0:
                    return False
                further = shift + (_shift(step) if step.is_carried else 0)
                arrived = self._step(step, point, arc.sink, goal)
                if arrived is None or further > far:
                    continue
                if step.sink == arc.sink and arrived <= goal:
                    return True
                if step.sink not in first or arrived < first[step.sink]:
                    first[step.sink] = arrived
                    waiting.append((step.sink, arrived, further))
        return False

    def _step(self, step: Arc, point: Point, sink: int, goal: Point) -> Point | None:
        """The same for a step on the way to `goal` of `sink`; None beyond it."""
        arrived = self._first_instance(step, point)
        depth = self._share(step.sink, sink)
        return None if arrived is None or arrived[:depth] > goal[:depth] else arrived

    def _first_instance(self, arc: Arc, point: Point) -> Point | None:
        """The first instance of the arc's sink that waits for `point` of its source."""
        trips = self.trips[arc.sink]
        prefix = moved(point, arc.distance, trips)
        return None if prefix is None else prefix + (0,) * (len(trips) - len(prefix))


def _shift(arc: Arc) -> int:
    """By how much an edge can move an iteration of any loop, a carry included."""
    return 1 + max(map(abs, arc.distance), default=0)
