"""Rewrites before instruction selection: constants are folded, narrow matrices stay narrow, scales
are moved to smaller arrays, and leading axes that only count rows become one.

`canonicalize` and `decompose` have rewritten the graph to operations of the engines; these rules
use further properties of the machine.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.ir import Builder, Graph, Node, users
from nkigen_lite.ir.builder import renumbered
from nkigen_lite.ir.interpreter import FLOAT32, run_node
from nkigen_lite.ops import Kind
from nkigen_lite.passes.rewriting import Constant_, Match, RewriteRule, of, rewrite


def in_machine_terms(graph: Graph) -> Graph:
    """The graph where no rule fits any more.

    v2 = multiply(x0, 0.125); v3 = max(v2)   →   v2 = max(x0); v3 = multiply(v2, 0.125)
    v1 = matmul(…); where(m, multiply(v1, 0.125), -1e9)   →   multiply(where(m, v1, -8e9), 0.125)
    """
    rewritten = renumbered(rewrite(graph, RULES))
    flat = flatten(rewritten)
    return flat if flat is rewritten else rewrite(flat, RULES[:1])  # views of constants


# ----------------------------------------------------------------------- constants


def _is_of_numbers(m: Match) -> bool:
    nodes = [m.build.by_name.get(o) for o in m.root.operands]
    numbers = [n.attrs["value"].uniform for n in nodes if n is not None and n.op == "constant"]
    kinds = (Kind.elementwise, Kind.select, Kind.view, Kind.reduce)
    computed = m.root.record.kind in kinds and m.root.spec.size > 0
    known = 0 < len(numbers) == len(nodes) and all(n is not None for n in numbers)
    return computed and known


def _number(m: Match) -> str:
    numbers = [np.asarray(m.build.by_name[o].attrs["value"].uniform) for o in m.root.operands]
    if m.root.record.kind is Kind.view and m.root.op != "bitcast":
        return m.fill(numbers[0], m.dtype, m.root.spec.shape)
    if m.root.record.kind is Kind.reduce:
        return _reduced_number(m, numbers[0])
    return m.fill(run_node(m.root, tuple(numbers), FLOAT32), m.dtype, m.root.spec.shape)


def _reduced_number(m: Match, number: np.ndarray) -> str:
    attrs, shape = m.root.attrs, m.spec(m.root.operands[0]).shape
    axes = attrs.get("axes") or (attrs["axis"],)
    many = np.full([n if d in axes else 1 for d, n in enumerate(shape)], number)
    result = run_node(m.root, (many,), FLOAT32)
    return m.fill(np.asarray(result).reshape(()), m.dtype, m.root.spec.shape)


# ------------------------------------------------------------------------ products


def _narrow(m: Match) -> str:
    return m.emit("matmul", m["a"], m["b"], dtype=float32)


def _is_narrow(m: Match) -> bool:
    """TensorE takes 16-bit floats as they are and sums in float32, where their products are
    exact."""
    kinds = {m.spec(m[v]).dtype for v in ("a", "b")}
    return kinds in ({bfloat16}, {float16}) and m.dtype is float32


# -------------------------------------------------------------------------- scales


def _is_positive(m: Match) -> bool:
    return m.dtype.is_float and float(m.number("c")) > 0


def _is_max_of_scaled(m: Match) -> bool:
    """The axes belong to what is scaled, not to a larger constant."""
    return _is_positive(m) and m.spec(m["x"]).shape == m.spec(m.root.operands[0]).shape


def _scale_after_max(m: Match) -> str:
    """By the number: an array of it may have the axes that are reduced."""
    scale = m.fill(m.number("c"), m.dtype)
    return m.emit("multiply", m.emit(m.root.op, m["x"], **m.root.attrs), scale)


def _unscaled(m: Match) -> np.float32 | None:
    """The number that scaled is the other choice, without a rounding; None where there is none:
    fused with an addition, one would show in rows of which all is masked."""
    wanted, scale = np.float64(m.number("n")), np.float64(m.number("c"))
    with np.errstate(all="ignore"):
        found = np.float32(wanted / scale)
    return found if np.float64(found) * scale == wanted else None


def _is_scaled_product(m: Match) -> bool:
    """The same values come of it, and TensorE made what is scaled: no instruction reads it before
    the choice."""
    made = m.build.by_name.get(m["x"])
    product = made is not None and made.op == "matmul" and made.spec.shape == m.root.spec.shape
    return product and m.dtype is float32 and _is_positive(m) and _unscaled(m) is not None


def _scale_after_choice(m: Match) -> str:
    number = m.fill(_unscaled(m), m.dtype)
    return m.emit("multiply", m.emit("where", m["m"], m["x"], number), m["c"])


def _scale_after_product(m: Match) -> str:
    return m.emit("multiply", m.emit("matmul", m["e"], m["v"], dtype=m.dtype), m["r"])


def _is_per_row(m: Match) -> bool:
    """One number for each row, of which the product has no more elements than its left side."""
    (*_, rows, terms), scale = m.spec(m["e"]).shape, m.spec(m["r"]).shape
    lies = len(scale) == len(m.root.spec.shape) and scale[-1] == 1 < terms
    return lies and m.root.spec.shape[-1] <= terms and m.dtype is float32 and rows > 0


_EXPONENTIALS = (
    of("exp", of("subtract", "x", of("max", "x")), name="e"),
    of(
        "exp",
        of("subtract", of("multiply", "x", Constant_("c")),
           of("multiply", of("max", "x"), Constant_("c"))), name="e",
    ),
)  # fmt: skip
"""At most 1, so that nothing overflows that did not before."""


def _bounded(m: Match) -> bool:
    m.values["e"] = m.nodes["e"].name
    return _is_per_row(m)


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("operation_on_numbers", of("*"), _number, _is_of_numbers),
    *(
        RewriteRule(f"matmul_of_{op}", of("matmul", of(op, "a"), of(op, "b")), _narrow, _is_narrow)
        for op in ("cast", "convert")
    ),
    RewriteRule(
        "max_of_scaled", of("max", of("multiply", "x", Constant_("c"))), _scale_after_max,
        _is_max_of_scaled,
    ),
    RewriteRule(
        "choice_of_scaled", of("where", "m", of("multiply", "x", Constant_("c")), Constant_("n")),
        _scale_after_choice, _is_scaled_product,
    ),
    *(
        RewriteRule(
            "matmul_of_scaled_rows", of("matmul", of("multiply", e, "r"), "v"),
            _scale_after_product, _bounded,
        )
        for e in _EXPONENTIALS
    ),
)  # fmt: skip


# ---------------------------------------------------------------------------- rows
# (batch, position, model) @ (model, hidden) is a product of two matrices, and what is done row by
# row before and after it stays with it. Otherwise a matrix that all batches share would be read
# once for each, and tiles would end where batches do.

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
