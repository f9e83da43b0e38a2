"""The order in which operations are put into groups."""

from __future__ import annotations

from heapq import heappop, heappush

from nkigen_lite.ir import Graph, Node, users
from nkigen_lite.ops import Kind

_EARLY = (Kind.constant, Kind.view, Kind.matmul)

SMALLER = 16
"""Times that values are smaller than the largest array to be computed before it is read."""


def small_values(graph: Graph) -> set[str]:
    """Small values made of small arrays and matrices alone: scales, shifts, angles."""
    sizes = {name: spec.size for name, spec in graph.specs.items()}
    most = max(sizes.values(), default=0) // SMALLER
    arguments = {v.name for v in graph.inputs}
    found = {name for name in arguments if sizes[name] <= most}
    for node in graph.nodes:
        given = found | arguments if node.op == "matmul" else found
        if sizes[node.name] <= most and given.issuperset(node.operands):
            found.add(node.name)
    return found


def products_first(graph: Graph) -> list[Node]:
    """The nodes in an order in which products, views of arrays and small values come as early as
    possible: operations on the results of several products, or of the same rows, are then one
    group. Nodes without arguments come before all others."""
    known: set[str] = set()
    found = [n for n in graph.nodes if known.issuperset(n.operands) and not known.add(n.name)]
    made = {v.name for v in graph.inputs} | known
    waiting = {n.name: {*n.operands} - made for n in graph.nodes if n.name not in known}
    used, place = users(graph), {n.name: number for number, n in enumerate(graph.nodes)}
    small, early, late = small_values(graph), list[int](), list[int]()

    def queue(name: str) -> None:
        number = place[name]
        is_early = name in small or graph.nodes[number].record.kind in _EARLY
        heappush(early if is_early else late, number)

    for name in [n for n, missing in waiting.items() if not missing]:
        queue(name)
    while early or late:
        first = graph.nodes[heappop(early or late)]
        found.append(first)
        for user in dict.fromkeys(n.name for n in used[first.name]):
            waiting[user].discard(first.name)
            if not waiting[user]:
                queue(user)
    return found
