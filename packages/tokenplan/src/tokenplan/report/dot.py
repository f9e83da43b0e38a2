"""The token graph as a picture for Graphviz: kept solid, implied grey, removed dotted."""

from __future__ import annotations

from collections.abc import Iterator

from tokenplan.graph.token_graph import ALIAS, KEPT, REMOVED, Edge, TokenGraph
from tokenplan.graph.wording import line_of
from tokenplan.kernel.model import Loop, Node, Op

_STYLES = {
    "kept": 'style=solid, color="black"',
    "implied": 'style=solid, color="grey"',
    "removed": 'style=dotted, color="grey", constraint=false',
}


def dot(graph: TokenGraph, verbose: bool = False) -> str:
    """The graph in the DOT language; `verbose`: also every removed order of one tensor's parts.

    Without it, tensors that are allocated in each iteration have no dotted edges.
    """
    lines = [f"digraph {_quoted(graph.kernel.name)} {{", "  rankdir=TB;", "  node [shape=box];"]
    numbers = {op.id: f"n{n}" for n, op in enumerate(graph.kernel.ops())}
    lines += [f"  {line}" for node in graph.kernel.body for line in _node(node, numbers)]
    lines += [f"  {_edge(edge, numbers)}" for edge in graph.edges if verbose or _is_shown(edge)]
    return "\n".join([*lines, "}"]) + "\n"


def _is_shown(edge: Edge) -> bool:
    return edge.status != REMOVED or edge.rule != "instances"


def _node(node: Node, numbers: dict[str, str]) -> Iterator[str]:
    if isinstance(node, Loop):
        yield f"subgraph {_quoted(f'cluster_{node.id}')} {{"
        last = node.start + node.step * (node.trips - 1)
        values = f"{node.variable} = {node.start} … {last}" if node.trips else "never"
        yield f"  label={_quoted(values)}; style=rounded;"
        for inner in node.body:
            yield from (f"  {line}" for line in _node(inner, numbers))
        yield "}"
        return
    yield f"{numbers[node.id]} [label={_quoted(_label(node))}];"


def _label(op: Op) -> str:
    return "\n".join(part for part in (op.id, op.engine, line_of(op)) if part)


def _edge(edge: Edge, numbers: dict[str, str]) -> str:
    label = f"{edge.kind} {ALIAS if edge.rule == ALIAS else edge.buffer}".strip()
    if any(edge.distance):
        label += f" +{','.join(map(str, edge.distance))}"
    if edge.status != KEPT:
        label += f" ({edge.status}: {edge.rule})" if edge.status == REMOVED else ""
    ends = f"{numbers[edge.source]} -> {numbers[edge.sink]}"
    return f"{ends} [label={_quoted(label)}, {_STYLES[edge.status]}];"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
