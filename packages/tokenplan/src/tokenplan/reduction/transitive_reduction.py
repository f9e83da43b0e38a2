"""The minimal graph: edges that follow from others are implied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf, prod

import numpy as np

from tokenplan.graph.token_graph import ALIAS, IMPLIED, JOIN, KEPT, Edge
from tokenplan.kernel.model import Kernel, commute, shared_loops
from tokenplan.rules.byte_enumeration import bytes_at, num_bytes
from tokenplan.rules.candidate_orders import Place, places

Point = tuple[int, ...]

WORK = 400_000
"""Steps along edges, all questions together; beyond it an edge that might be implied is kept."""
LOOKS = 300_000
"""Steps along edges, pairs of iterations and swizzled bytes, all questions together."""


def reduce(
    kernel: Kernel, edges: Iterable[Edge], work: int = WORK, looks: int = LOOKS
) -> tuple[Edge, ...]:
    """The edges, with edges that follow from other kept ones marked as implied.

    limit: the number of pairs of iterations tested to find edges whose conflicts are in order
    without them; with 0, the kept edges order exactly what all needed ones do.
    """
    edges = tuple(edges)
    reduction = _Reduction(kernel, work)
    numbers = {op.id: n for n, op in enumerate(reduction.graph.ops)}
    arcs = [
        Arc(at, numbers[edge.source], numbers[edge.sink], edge.distance)
        for at, edge in enumerate(edges)
        if edge.status == KEPT
    ]
    kept = reduction.minimal(arcs)
    if not any(edge.rule in (JOIN, ALIAS) for edge in edges):  # those order all iterations
        gone = {arc.at for arc in unneeded(kernel, reduction.graph, kept, arcs, edges, looks)}
        kept = [arc for arc in kept if arc.at not in gone]
    implied = {arc.at for arc in set(arcs).difference(kept)}
    return tuple(
        replace(edge, status=IMPLIED) if at in implied else edge for at, edge in enumerate(edges)
    )


class _Reduction:
    def __init__(self, kernel: Kernel, work: int) -> None:
        self.graph = Graph(kernel)
        self.work = work
        self.reach = [1 << n for n in range(len(self.graph.ops))]
        """Bit v of reach[u]: without a later iteration, v follows u (or is u)."""

    def minimal(self, arcs: list[Arc]) -> list[Arc]:
        """The edges that no others imply; the graph contains them."""
        nearest: dict[tuple[int, int], Arc] = {}
        for arc in arcs:
            known = nearest.get((arc.source, arc.sink))
            if known is None or arc.distance < known.distance:
                nearest[arc.source, arc.sink] = arc
        within = self._within([arc for arc in nearest.values() if not arc.is_carried])
        carried = [arc for arc in nearest.values() if arc.is_carried]
        carried.sort(key=lambda arc: (len(arc.distance), arc.distance, arc.at))
        for arc in within + carried:
            self.graph.add(arc)
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
        """The edges that the rest of the graph does not imply, far ones left out first."""
        kept = list(arcs)
        for arc in reversed(arcs):
            kept.remove(arc)
            self.graph.remove(arc)
            if not (self._follows_one(arc, kept) or self._follows_path(arc)):
                kept.append(arc)
                self.graph.add(arc)
        return kept

    def _follows_one(self, arc: Arc, others: list[Arc]) -> bool:
        """Whether one other carried edge, with program order before and after it, implies it."""
        share = self.graph.share
        for other in others:
            depth = len(other.distance)
            if (
                depth <= len(arc.distance)
                and other.distance <= arc.distance[:depth]
                and self.reach[arc.source] >> other.source & 1
                and self.reach[other.sink] >> arc.sink & 1
                and share(arc.source, other.source) >= depth  # so do the sinks
            ):
                return True
        return False

    def _follows_path(self, arc: Arc) -> bool:
        """Whether, from every iteration of its source, a path arrives in time.

        Loops with many iterations are looked at where they begin and end and once in between:
        a path that moves by `far` at most sees no difference there.
        """
        graph, far = self.graph, 2 * arc.shift + 2
        for start in representatives(graph.trips[arc.source], 2 * far, far):
            if graph.work > self.work:
                return False
            goal = graph.first_instance(arc, start)
            if goal is not None and not graph.arrives(arc.source, start, arc.sink, goal, far):
                return False
        return True


# -- edges that no conflict needs ------------------------------------------------------------------


class _TooMuchError(Exception):
    """The kernel has too many iterations to look at each."""


def unneeded(
    kernel: Kernel,
    graph: Graph,
    kept: list[Arc],
    needed: list[Arc],
    edges: Sequence[Edge],
    looks: int,
) -> list[Arc]:
    """The edges of `kept` that can be removed together; `needed` has every conflict, `graph` has
    `kept`.

    The graph is left without them.
    """
    if not looks or not any(op.loops for op in graph.ops):
        return []
    search = _Search(kernel, graph, needed, looks)
    if sum(prod(graph.trips[source]) for source in search.by_source) > looks:
        return []  # no edge could be tested in all iterations
    gone = []
    with suppress(_TooMuchError):  # edges that were not tested any more are kept
        for arc in kept:
            if search.might_go(arc, edges[arc.at]) and search.can_go(arc):
                gone.append(arc)
    return gone


@dataclass(slots=True)
class _Search:
    kernel: Kernel
    graph: Graph
    needed: list[Arc]
    work: int
    by_source: dict[int, list[Arc]] = field(default_factory=lambda: defaultdict(list))
    places_of: dict[int, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for arc in self.needed:
            self.by_source[arc.source].append(arc)
        for place in places(self.kernel):
            self.places_of[place.at].append(place)

    def might_go(self, arc: Arc, edge: Edge) -> bool:
        """Whether the others order the two instances that show the conflict."""
        if edge.witness is None:
            return False
        source, sink = (self.graph.ops[n] for n in (arc.source, arc.sink))
        start = tuple(edge.witness.source[name] for name in source.loops)
        goal = tuple(edge.witness.sink[name] for name in sink.loops)
        self.graph.remove(arc)
        found = self.graph.arrives(arc.source, start, arc.sink, goal)
        self.graph.add(arc)
        return found

    def can_go(self, arc: Arc) -> bool:
        """Whether every conflict is in order without it; then it is gone."""
        self.graph.remove(arc)
        if all(self._in_order(source) for source in self.by_source):
            return True
        self.graph.add(arc)
        return False

    def _in_order(self, source: int) -> bool:
        """Whether all that conflicts with any instance of an operation waits for it."""
        arcs = self.by_source[source]
        for start in product(*map(range, self.graph.trips[source])):
            first = self.graph.first_instances(source, start)
            self._spend(1 + len(first))
            for arc in arcs:
                if any(self._meet(arc, start, at) for at in self._between(arc, start, first)):
                    return False
        return True

    def _between(self, arc: Arc, start: Point, first: Mapping[int, Point]) -> Iterator[Point]:
        """Instances of the sink that the edge would order and the graph does not."""
        begin, end = self.graph.first_instance(arc, start), first.get(arc.sink)
        if begin is None or (end is not None and end <= begin):
            return
        for at in product(*map(range, self.graph.trips[arc.sink])):
            self._spend(1)
            if begin <= at and (end is None or at < end):
                yield at

    def _spend(self, steps: int) -> None:
        self.work -= steps
        if self.work < 0:
            raise _TooMuchError

    def _meet(self, arc: Arc, start: Point, at: Point) -> bool:
        """Whether these two instances access a byte in ways that do not commute."""
        before = dict(zip(self.graph.ops[arc.source].loops, start, strict=True))
        after = dict(zip(self.graph.ops[arc.sink].loops, at, strict=True))
        pairs = product(self.places_of[arc.source], self.places_of[arc.sink])
        return any(self._overlap(a, before, b, after) for a, b in pairs)

    def _overlap(
        self, a: Place, before: Mapping[str, int], b: Place, after: Mapping[str, int]
    ) -> bool:
        if a.buffer.id != b.buffer.id or commute(a.access.mode, b.access.mode):
            return False
        if any(before[name] != after[name] for name in a.buffer.scope):
            return False
        if a.access.swizzle == b.access.swizzle:
            return a.at_iteration(before).overlaps(b.at_iteration(after))
        self._spend(num_bytes(a.access) + num_bytes(b.access))
        both = bytes_at(a.access, before), bytes_at(b.access, after)
        return bool(np.isin(*both).any())


# -- paths of edges --------------------------------------------------------------------------------


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

    def arrives(self, source: int, start: Point, sink: int, goal: Point, far: float = inf) -> bool:
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
                if arrived is None or further > far:
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


# -- iteration vectors, which loops execute in lexicographic order ---------------------------------


def next_point(at: Sequence[int], trips: Sequence[int]) -> Point | None:
    """The first iteration of loops with these trip counts that is not before `at`; None: none is.

    >>> next_point((0, 5), (2, 4)), next_point((1, -3), (2, 4)), next_point((1, 4), (2, 4))
    ((1, 0), (1, 0), None)
    """
    for level, value in enumerate(at):
        if value < 0:
            return (*at[:level], *(0,) * (len(at) - level))
        if value >= trips[level]:
            for outer in reversed(range(level)):
                if at[outer] + 1 < trips[outer]:
                    return (*at[:outer], at[outer] + 1, *(0,) * (len(at) - outer - 1))
            return None
    return tuple(at)


def moved(at: Sequence[int], distance: Point, trips: Sequence[int]) -> Point | None:
    """The first iteration that is `distance` or more after `at`, over the loops it counts."""
    return next_point([i + d for i, d in zip(at, distance, strict=False)], trips[: len(distance)])


def representatives(trips: Iterable[int], low: int, high: int) -> Iterator[Point]:
    """Iterations that represent all, as long as no test goes further than `low` from the first or
    `high` from the last iteration of a loop."""
    ranges = [
        range(count) if count <= low + high + 1 else [*range(low + 1), *range(count - high, count)]
        for count in trips
    ]
    return product(*ranges)
