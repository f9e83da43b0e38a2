"""Forms of a graph that instructions say at once: a table of (operation, what it becomes).

Each rule looks at one node and the nodes that made its operands, and may write others instead;
intermediate values that only it uses disappear. Rounding: `divide` becomes a product with a
reciprocal (engines have no division), which may differ from the quotient in the last two bits; a
reciprocal square root and a sigmoid are tables of ScalarE.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np

from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.ir import Builder, Graph, Node, users
from nkigen_lite.ir.build import renumbered


class _Around:
    """What a rule sees: the new graph so far, and who made what in the old one."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, graph.by_name
        self.users = users(graph)
        self.results = set(graph.results)
        self.build = Builder(graph.name)
        self.new: dict[str, str] = {}

    def only(self, value: str, op: str) -> Node | None:
        """The node that made `value`, if it is this float32 operation and has one user."""
        node = self.nodes.get(value)
        alone = len(self.users[value]) == 1 and value not in self.results
        fits = node is not None and node.op == op and node.spec.dtype is float32
        return node if fits and alone else None

    def number(self, value: str) -> float | None:
        """The constant that is everywhere in `value`."""
        node = self.nodes.get(value)
        if node is None or node.op != "constant" or node.attrs["value"].uniform is None:
            return None
        return float(node.attrs["value"].uniform)


def _divide(node: Node, at: _Around) -> str | None:
    x, y = node.operands
    emit, origin = at.build.emit, node.origin
    sigmoid = _sigmoid_of(y, at) if node.spec.dtype is float32 else None
    if sigmoid is not None:
        if x == sigmoid:
            return emit("silu", at.new[x], origin=origin)
        found = emit("sigmoid", at.new[sigmoid], origin=origin)
        return found if at.number(x) == 1 else emit("multiply", at.new[x], found, origin=origin)
    number = at.number(y)
    if number is not None and number and isfinite(1 / np.float32(number)):
        one_over = at.build.fill(1 / number, node.spec.dtype, at.nodes[y].spec.shape, origin)
        return emit("multiply", at.new[x], one_over, origin=origin)
    root = at.only(y, "sqrt")
    one_over = (
        emit("rsqrt", at.new[root.operands[0]], origin=origin)
        if root
        else emit("reciprocal", at.new[y], origin=origin)
    )
    return one_over if at.number(x) == 1 else emit("multiply", at.new[x], one_over, origin=origin)


def _sigmoid_of(value: str, at: _Around) -> str | None:
    """x where `value` is 1 + exp(-x)."""
    total = at.only(value, "add")
    if total is None or not total.spec.shape:
        return None
    for one, other in (total.operands, total.operands[::-1]):
        power = at.only(other, "exp") if at.number(one) == 1 else None
        negated = at.only(power.operands[0], "negative") if power else None
        if negated is not None and negated.spec.shape == total.spec.shape:
            return negated.operands[0]
    return None


def _multiply(node: Node, at: _Around) -> str | None:
    x, y = node.operands
    return at.build.emit("square", at.new[x], origin=node.origin) if x == y else None


def _mean(node: Node, at: _Around) -> str | None:
    """Σ x · 1/n, both in float32."""
    if node.spec.dtype is not float32:
        return None
    count = at.graph.specs[node.operands[0]].size // max(1, node.spec.size)
    total = at.build.emit(
        "sum", at.new[node.operands[0]], axes=node.attrs["axes"],
        keepdims=node.attrs["keepdims"], origin=node.origin,
    )  # fmt: skip
    one_over = at.build.fill(1 / count, float32, origin=node.origin)
    return at.build.emit("multiply", total, one_over, origin=node.origin)


def _matmul(node: Node, at: _Around) -> str | None:
    """A product of matrices that were widened for it: TensorE takes them narrow and sums in
    float32, where products of 16-bit floats are exact."""
    wide = [at.nodes.get(o) for o in node.operands]
    narrow = [n.operands[0] for n in wide if n is not None and n.op in ("cast", "convert")]
    kinds = {at.graph.specs[o].dtype for o in narrow}
    if len(narrow) != 2 or kinds not in ({bfloat16}, {float16}) or node.spec.dtype is not float32:
        return None
    operands = (at.new[o] for o in narrow)
    return at.build.emit("matmul", *operands, dtype=float32, origin=node.origin)


_RULES: dict[str, Callable[[Node, _Around], str | None]] = {
    "divide": _divide,
    "multiply": _multiply,
    "mean": _mean,
    "matmul": _matmul,
}


def in_machine_terms(graph: Graph) -> Graph:
    """The graph with every rule applied once, operands first."""
    at = _Around(graph)
    for value in graph.inputs:
        at.new[value.name] = at.build.input(value.spec, value.name)
    for node in graph.nodes:
        rule = _RULES.get(node.op)
        made = rule(node, at) if rule and node.spec.dtype.is_float else None
        if made is None:
            operands = (at.new[o] for o in node.operands)
            made = at.build.emit(node.op, *operands, origin=node.origin, **node.attrs)
        at.new[node.name] = made
    outputs = tuple(at.new[o] for o in graph.outputs)
    writes = tuple((name, at.new[v]) for name, v in graph.writes)
    return renumbered(at.build.finish(outputs, writes))
