"""Edges of which no single conflict needs the order that they give.

An edge orders all iterations that are its distance or more apart, and few of them may touch the
same bytes. Where the others already order those few, the edge is not needed. This is decided by
looking at iterations one by one, so it is tried on kernels with few of them alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from tokenplan.graph.iteration_vectors import Point
from tokenplan.graph.paths import Arc, Graph
from tokenplan.graph.token_graph import Edge
from tokenplan.kernel.model import Kernel, commute
from tokenplan.rules.byte_enumeration import bytes_at, num_bytes
from tokenplan.rules.candidate_orders import Place, places

LOOKS = 300_000
"""Steps along edges, pairs of iterations and swizzled bytes, all questions together."""


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
    touched: dict[int, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for arc in self.needed:
            self.by_source[arc.source].append(arc)
        for place in places(self.kernel):
            self.touched[place.at].append(place)

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
        """Whether these two instances touch a byte in ways that do not commute."""
        before = dict(zip(self.graph.ops[arc.source].loops, start, strict=True))
        after = dict(zip(self.graph.ops[arc.sink].loops, at, strict=True))
        pairs = product(self.touched[arc.source], self.touched[arc.sink])
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
