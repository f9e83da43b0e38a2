"""The order in which operations are put into groups."""

from __future__ import annotations

from heapq import heappop, heappush

from nkigen_lite.ir import Graph, Node, users
from nkigen_lite.ops import Kind

_EARLY = (Kind.constant, Kind.view, Kind.matmul)


def products_first(graph: Graph) -> list[Node]:
    """The nodes in an order in which products and views of arrays come as early as possible:
    operations on the results of several products are then one group. Nodes without arguments come
    before all others."""
    known: set[str] = set()
    found = [n for n in graph.nodes if known.issuperset(n.operands) and not known.add(n.name)]
    made = {v.name for v in graph.inputs} | known
    waiting = {n.name: {*n.operands} - made for n in graph.nodes if n.name not in known}
    used, place = users(graph), {n.name: number for number, n in enumerate(graph.nodes)}
    early, late = list[int](), list[int]()

    def queue(name: str) -> None:
        number = place[name]
        heappush(early if graph.nodes[number].record.kind in _EARLY else late, number)

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
