"""Into operations that engines have: one rule per operation that they lack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from math import inf, prod
from pathlib import Path
from pkgutil import iter_modules

import numpy as np

from nki_dtypes import DType, bool_, float32, int32, uint32
from nkigen_lite.ir import Graph, Node
from nkigen_lite.ops import OPS, Expr, Kind, choose
from nkigen_lite.ops.rounding import trunc_formula
from nkigen_lite.passes.rewriting import Match, RewriteRule, has_wide_integers, of, rewrite
from nkigen_lite.tensors.constant import Constant


def decompose(graph: Graph) -> Graph:
    """The graph in operations of the engines: float32 arithmetic, their functions in the ranges
    where they are valid, machine conversions, reductions that keep their axes.

        v0 = sin(x0)   →   x0 reduced by multiples of π; sin_reduced
    """
    return rewrite(graph, RULES)


# --------------------------------------------------------------------- reductions


def _drop_axes(m: Match) -> str:
    attrs = {**m.root.attrs, "keepdims": True}
    kept = m.emit(m.root.op, m["x"], **attrs)
    return m.emit("reshape", kept, shape=m.root.spec.shape)


def _drops_axes(m: Match) -> bool:
    return m.root.record.kind is Kind.reduce and not m.root.attrs["keepdims"]


def _is_nothing(m: Match) -> bool:
    return m.spec(m["x"]).size == 0 and m.root.op in _OF_NOTHING


_OF_NOTHING = {"sum": 0, "prod": 1, "any": False, "all": True, "mean": float("nan")}
"""What reductions give when there is nothing to reduce."""


def _of_nothing(m: Match) -> str:
    return m.fill(_OF_NOTHING[m.root.op], m.dtype, m.root.spec.shape)


def _place(op: str) -> Callable[[Match], str]:
    """The least index of the extreme or of NaN."""

    def replacement(m: Match) -> str:
        axis, x = m.root.attrs["axis"], m.expr("x")
        x = x if has_wide_integers(m) else x.to(float32)
        shape = x.shape
        extreme = x.call(op, axes=(axis,), keepdims=True)
        is_found = x == extreme
        if m.spec(m["x"]).dtype.is_float:  # of NaN neither holds, of all others the latter
            is_found = is_found.call("equal", x.call("less_equal", inf))
        along = tuple(n if d == axis else 1 for d, n in enumerate(shape))
        to_end = np.arange(shape[axis], 0, -1, dtype=np.float32).reshape(along)
        left = Expr(m, m.emit("constant", value=Constant(to_end, float32)))
        most = choose(is_found, left, 0.0).call("max", axes=(axis,), keepdims=True)
        return m.result(float(shape[axis]) - most)

    return replacement


# ------------------------------------------------------- reductions of short axes
# `((a[:, None] - b[None]) ** 2).sum(-1)` of points in the plane is the sum of two arrays, each made
# from a column of a and a column of b: rows of many elements instead of many rows of two.

_COMBINED = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}
_MOST_ELEMENTS = 16
_MOST_OPERATIONS = 12
_FEWER = 8
"""How many times fewer elements an operand has than what is reduced: most are read again."""
_MANY = 1024


def is_short(m: Match) -> bool:
    """Whether few elements of a formula are reduced, made from much smaller arrays or from
    arrays in which they are not adjacent."""
    (x,) = m.root.operands
    shape = m.spec(x).shape
    if m.root.op not in _COMBINED or m.dtype is not float32 or not shape:
        return False
    last = m.root.attrs["axes"] == (len(shape) - 1,)
    if not last or not 1 < shape[-1] <= _MOST_ELEMENTS or prod(shape[:-1]) < _MANY:
        return False
    nodes = list(_formula(m, x, set()))
    operations = sum(node is not None for _, node in nodes)
    large = (v for v, n in nodes if n is None and _FEWER * m.spec(v).size > prod(shape))
    return 0 < operations <= _MOST_OPERATIONS and all(_is_scattered(m, v) for v in large)


def _is_scattered(m: Match, value: str) -> bool:
    """Whether the elements along the last axis are far from each other in memory."""
    node = m.build.by_name.get(value)
    return node is not None and node.op == "transpose" and (
        node.attrs["axes"][-1] != len(node.spec.shape) - 1
    )  # fmt: skip


def _formula(m: Match, value: str, seen: set[str]) -> Iterator[tuple[str, Node | None]]:
    """(value, the operation that makes it or None for an operand of the formula), each once."""
    if value in seen or len(seen) > 4 * _MOST_OPERATIONS:
        return
    seen.add(value)
    node = m.build.by_name.get(value)
    if not _is_inside(node):
        yield value, None
        return
    assert node is not None
    yield value, node
    for operand in node.operands:
        yield from _formula(m, operand, seen)


def _is_inside(node: Node | None) -> bool:
    return node is not None and (
        node.record.kind is Kind.elementwise or node.op == "broadcast_to"
    )  # fmt: skip


def one_by_one(m: Match) -> str:
    """The formula for each element of the axis, combined two by two."""
    (x,) = m.root.operands
    count = m.spec(x).shape[-1]
    parts = [_at(m, x, k, count, {}) for k in range(count)]
    while len(parts) > 1:
        pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
        parts = [m.emit(_COMBINED[m.root.op], *p) if p[1:] else p[0] for p in pairs]
    whole = m.spec(x).shape[:-1]
    found = parts[0]
    if m.spec(found).shape != (*whole, 1):
        found = m.emit("broadcast_to", found, shape=(*whole, 1))
    if m.root.spec.shape != (*whole, 1):
        found = m.emit("reshape", found, shape=m.root.spec.shape)
    return found


def _at(m: Match, value: str, k: int, count: int, known: dict[str, str]) -> str:
    """The value where the last axis, of `count` elements or one, is at k."""
    if value not in known:
        node, shape = m.build.by_name.get(value), m.spec(value).shape
        if not _is_inside(node):
            known[value] = _column(m, value, k) if shape[-1:] == (count,) else value
        elif node is not None and node.op == "broadcast_to":
            known[value] = _at(m, node.operands[0], k, count, known)
        elif node is not None:
            operands = (_at(m, o, k, count, known) for o in node.operands)
            known[value] = m.emit(node.op, *operands, **node.attrs)
    return known[value]


def _column(m: Match, value: str, k: int) -> str:
    *others, _ = m.spec(value).shape
    starts, ones = (*(0 for _ in others), k), (1,) * (len(others) + 1)
    return m.emit("slice", value, starts=starts, sizes=(*others, 1), steps=ones)


# ----------------------------------------------------- triangles of matrices


def _is_below(m: Match, k: int, shape: tuple[int, ...]) -> Expr:
    """Whether column - row <= k, for a matrix of this shape."""
    *_, rows, columns = shape
    row, column = (
        Expr(m, m.emit("iota", shape=along, axis=axis, dtype=float32))
        for axis, along in enumerate(((rows, 1), (1, columns)))
    )
    return column.call("less_equal", row + float(k))


def half(upper: bool) -> Callable[[Match], str]:
    """tril or triu: zeros elsewhere, also where x is not finite."""

    def replacement(m: Match) -> str:
        x, zero = m.expr("x"), m.constant(0, m.dtype)
        below = _is_below(m, m.root.attrs["k"] - upper, m.root.spec.shape)
        return m.result(choose(below, *((zero, x) if upper else (x, zero))))

    return replacement


def _diagonal(array: np.ndarray) -> int | None:
    """The k of a matrix that is one number where column - row <= k and another elsewhere."""
    rows, columns = array.shape
    bits = array.view(f"u{array.dtype.itemsize}")
    lower = bits == bits[-1, 0]
    if (bits[~lower] != bits[0, -1]).any():
        return None
    for k in (int(lower[-1].sum()) - rows, int(lower[0].sum()) - 1):
        if (lower == np.tri(rows, columns, k, dtype=bool)).all():
            return k
    return None


def is_triangle(m: Match) -> bool:
    """Whether a constant is such a matrix."""
    constant = m.root.attrs["value"]
    is_matrix = constant.uniform is None and len(constant.spec.shape) == 2 and constant.spec.size
    return bool(is_matrix) and _diagonal(constant.array) is not None


def of_numbers(m: Match) -> str:
    """A constant triangle."""
    array = m.root.attrs["value"].array
    k = _diagonal(array)
    assert k is not None
    below = _is_below(m, k, array.shape)
    if m.dtype is bool_:
        return (below if array[-1, 0] else ~below).value
    low, high = (m.constant(array[at], m.dtype) for at in ((-1, 0), (0, -1)))
    return m.result(choose(below, low, high))


# -------------------------------------------------------------------------- divide


def _one_over(m: Match) -> str:
    return m.shaped(m.emit("reciprocal", m["b"]))


# ---------------------------------------------------------------------------- cast


def _cut(whole: Expr, target: DType) -> Expr:
    """Whole float32 numbers as integers. 32-bit numbers outside the target's range wrap, as they do
    where NumPy converts to a wider integer first."""
    if target is int32:
        return whole.to(int32)
    if target is uint32:
        return choose(whole < 0.0, whole.to(int32).bits(uint32), whole.to(uint32))
    return whole.to(int32).call("low_bits", dtype=target)


def _cast(m: Match) -> str:
    """NumPy's astype by the machine's conversions, which round and saturate."""
    source, target = m.spec(m["x"]).dtype, m.dtype
    x = m.expr("x")
    if target is bool_:
        return (x.to(float32) != 0.0).value
    if target.is_float or source is bool_:
        return x.to(target).value
    if source.is_float:
        return _cut(trunc_formula(x.to(float32)), target).value
    if target.min <= source.min and source.max <= target.max:
        return x.to(target).value
    if target.bits < source.bits:
        return x.call("low_bits", dtype=target).value
    if target.bits == source.bits:
        return x.bits(target).value
    return x.to(int32).bits(target).value if target.bits == 32 else (
        x.to(int32).call("low_bits", dtype=target).value
    )  # fmt: skip


def _decomposed(m: Match) -> str:
    """The formula of the operation's record, on float32."""
    decomposition = m.root.record.decomposition
    assert decomposition is not None
    operands = (Expr(m, operand).to(float32) for operand in m.root.operands)
    return m.result(decomposition(*operands, **m.root.attrs))


def _rules_of_folder() -> Iterator[RewriteRule]:
    """The RULES of every module of `decompositions`, in alphabetical order."""
    for module in sorted(m.name for m in iter_modules([Path(__file__).parent / _FOLDER])):
        yield from import_module(f"{__package__}.{_FOLDER}.{module}").RULES


_FOLDER = "decompositions"

RULES: tuple[RewriteRule, ...] = (
    RewriteRule("reduce_nothing", of("*", "x"), _of_nothing, _is_nothing),
    RewriteRule("reduce_keeps_axes", of("*", "x"), _drop_axes, _drops_axes),
    RewriteRule("short_axis", of("*", "x"), one_by_one, is_short),
    RewriteRule("argmax", of("argmax", "x"), _place("max")),
    RewriteRule("argmin", of("argmin", "x"), _place("min")),
    RewriteRule("tril", of("tril", "x"), half(upper=False)),
    RewriteRule("triu", of("triu", "x"), half(upper=True)),
    RewriteRule("triangle", of("constant"), of_numbers, is_triangle),
    RewriteRule("one_over", of("divide", 1.0, "b"), _one_over),
    RewriteRule("cast", of("cast", "x"), _cast),
    RewriteRule("logical_not", of("logical_not", "x"), lambda m: (~m.expr("x")).value),
    *_rules_of_folder(),
    *(RewriteRule(op.name, of(op.name), _decomposed) for op in OPS.values() if op.decomposition),
)
"""Rules of one operation are tried in this order; rules of every operation (`*`) first."""
