"""Leading axes that only count rows become one: (batch, position, model) @ (model, hidden) is a
product of two matrices, and what is done row by row before and after it stays with it.

Without this, a matrix that all batches share would be read once for each, and tiles would end
where batches do.
"""

from __future__ import annotations

from math import prod

from nkigen_lite.ir import Builder, Graph, Node, users
from nkigen_lite.ir.builder import renumbered
from nkigen_lite.ops import Kind

_STRIDED = frozenset({"transpose", "slice", "broadcast_to", "bitcast"})
"""Views of arrays whose rows may not lie one after the other."""


def flatten(graph: Graph) -> Graph:
    """The graph with rows of one axis around every product with a matrix that all rows share.

    v0 = matmul(x0: f32[2, 64, 128], x1: f32[128, 32])   →   v0 = reshape(x0, (128, 128));
    v1 = matmul(v0, x1); v2 = reshape(v1, (2, 64, 32))
    """
    flat: set[str] = set()
    for node in graph.nodes:
        if node.name not in flat and _shares_right(node, graph):
            flat |= _region(node, graph)
    return _rewritten(graph, flat) if flat else graph


def _shares_right(node: Node, graph: Graph) -> bool:
    return (
        node.op == "matmul"
        and len(node.spec.shape) > 2
        and len(graph.specs[node.operands[1]].shape) == 2
        and node.spec.shape[:-1] == graph.specs[node.operands[0]].shape[:-1]
    )


def _region(start: Node, graph: Graph) -> set[str]:
    """The values that are worked on row by row together with the product; empty where one of
    them is not stored in rows."""
    lead = start.spec.shape[:-1]
    nodes, used, specs = graph.by_name, users(graph), graph.specs
    found: set[str] = set()
    waiting = [start.name]
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        node = nodes.get(value)
        if node is not None and node.op in _STRIDED:
            return set()
        found.add(value)
        near = [n for n in used[value] if _is_by_row(n, graph, lead)]
        if node is not None and _is_by_row(node, graph, lead):
            near.append(node)
        for other in near:
            waiting += [v for v in (other.name, *_full(other)) if specs[v].shape[:-1] == lead]
            if not all(_fits(specs[v].shape, lead) for v in _full(other)):
                return set()
    return found


def _full(node: Node) -> tuple[str, ...]:
    """The operands that have rows."""
    return node.operands[:1] if node.op == "matmul" else node.operands


def _fits(shape: tuple[int, ...], lead: tuple[int, ...]) -> bool:
    """Whether the value has these rows, or is the same for all rows."""
    return shape[:-1] == lead or prod(shape[:-1]) == 1


def _is_by_row(node: Node, graph: Graph, lead: tuple[int, ...]) -> bool:
    """Whether each row of the result comes from that row of the operands alone."""
    if node.spec.shape[:-1] != lead:
        return False
    if node.record.kind is Kind.reduce:
        attrs = node.attrs
        return tuple(attrs.get("axes", ())) == (len(lead),) and bool(attrs["keepdims"])
    elementwise = node.record.kind in (Kind.elementwise, Kind.select)
    return _shares_right(node, graph) or (elementwise and node.op not in ("tril", "triu"))


def _rewritten(graph: Graph, flat: set[str]) -> Graph:
    build = Builder(graph.name)
    whole = {v.name: build.input(v.spec, v.name) for v in graph.inputs}
    """Value → it in its own shape, where it was needed so."""
    rows: dict[str, str] = {}

    def in_rows(value: str, node: Node) -> str:
        """A value of the region as (rows, columns); others without the axes of one element."""
        shape = graph.specs[value].shape
        if value not in rows:
            wanted = (prod(shape[:-1]), shape[-1]) if value in flat else shape[-1:]
            made = in_shape(value)
            rows[value] = made if wanted == shape else (
                build.emit("reshape", made, shape=wanted, origin=node.origin)
            )  # fmt: skip
        return rows[value]

    def in_shape(value: str) -> str:
        if value not in whole:
            node, shape = graph.by_name[value], graph.specs[value].shape
            whole[value] = build.emit("reshape", rows[value], shape=shape, origin=node.origin)
        return whole[value]

    for node in graph.nodes:
        lead = node.spec.shape[:-1]
        if node.name in flat and _is_by_row(node, graph, lead):
            full = _full(node)
            operands = [in_rows(o, node) if o in full else in_shape(o) for o in node.operands]
            attrs = dict(node.attrs) | ({"axes": (1,)} if "axes" in node.attrs else {})
            rows[node.name] = build.emit(node.op, *operands, origin=node.origin, **attrs)
        else:
            operands = [in_shape(o) for o in node.operands]
            whole[node.name] = build.emit(node.op, *operands, origin=node.origin, **node.attrs)
    writes = tuple((name, in_shape(v)) for name, v in graph.writes)
    return renumbered(build.finish(tuple(in_shape(o) for o in graph.outputs), writes))
