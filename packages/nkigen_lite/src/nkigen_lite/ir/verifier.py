"""Whether a graph keeps the rules of its operations."""

from __future__ import annotations

from collections.abc import Iterator

from nkigen_lite.ir.graph import Graph
from nkigen_lite.ir.nodes import Node
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.errors import GraphError
from nkigen_lite.tensors.spec import Spec


def verify_graph(graph: Graph) -> Graph:
    """The graph itself. Raises GraphError, placed at the user's line, with all that is wrong."""
    wrong = list(_violations(graph))
    if wrong:
        first, *rest = wrong
        first.hint = "\n    ".join(f"also: {w.what}" for w in rest) or None
        raise first
    return graph


def _violations(graph: Graph) -> Iterator[GraphError]:
    specs: dict[str, Spec] = {}
    for value in graph.inputs:
        if value.name in specs:
            yield GraphError(f"{value.name} is made twice")
        specs[value.name] = value.spec
    for node in graph.nodes:
        yield from _of_node(node, specs)
        specs[node.name] = node.spec
    for name in graph.results:
        if name not in specs:
            yield GraphError(f"the graph returns {name}, which nothing makes")
    inputs = {v.name for v in graph.inputs}
    for name, value in graph.writes:
        if name not in inputs:
            yield GraphError(f"the graph writes to {name}, which is not an input")
        elif value in specs and specs[value] != specs[name]:
            yield GraphError(f"{value} is written to {name}", expected=str(specs[name]))


def _of_node(node: Node, specs: dict[str, Spec]) -> Iterator[GraphError]:
    if node.name in specs:
        yield GraphError(f"{node.name} is made twice", place=node.origin)
    if node.op not in OPS:
        yield GraphError(f"{node.op} is not an operation", place=node.origin)
        return
    missing = [o for o in node.operands if o not in specs]
    if missing:
        yield GraphError(f"{node.name} uses {missing[0]} before it is made", place=node.origin)
        return
    try:
        attrs = node.record.converted(node.attrs)
        spec = node.record.result(tuple(specs[o] for o in node.operands), attrs)
    except GraphError as wrong:
        wrong.place = node.origin
        yield wrong
        return
    if spec != node.spec:
        yield GraphError(
            f"{node.name} is not what {node.op} makes", expected=str(spec), got=str(node.spec),
            place=node.origin,
        )  # fmt: skip
