"""The minimal graph: edges that follow from others are implied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from tokenplan.graph.iteration_vectors import representatives
from tokenplan.graph.paths import Arc, Graph
from tokenplan.graph.token_graph import ALIAS, IMPLIED, JOIN, KEPT, Edge
from tokenplan.kernel.model import Kernel
from tokenplan.reduction.necessity import LOOKS, unneeded

WORK = 400_000
"""Steps along edges, all questions together; beyond it an edge that might be implied is kept."""


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
    implied = {arc.at for arc in arcs} - {arc.at for arc in kept}
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
