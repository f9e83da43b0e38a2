"""Into operations that engines have: one rule per operation that they lack."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod

import numpy as np

from nki_dtypes import DType, bool_, float32, int32, uint32
from nkigen_lite.ir import Graph
from nkigen_lite.ops import OPS, Expr, Kind, choose
from nkigen_lite.ops.rounding import trunc_formula
from nkigen_lite.passes import (
    division,
    domain_guards,
    float_powers,
    integer_arithmetic,
    integer_powers,
    integer_sums,
    matrix_products,
    reduction_unrolling,
    scans,
    triangular_masks,
)
from nkigen_lite.passes.expression import result
from nkigen_lite.passes.rewriting import Match, RewriteRule, of, rewrite
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


def _count(m: Match) -> int:
    shape = m.spec(m["x"]).shape
    return prod(shape[a] for a in m.root.attrs["axes"])


def _is_nothing(m: Match) -> bool:
    return m.spec(m["x"]).size == 0 and m.root.op in _OF_NOTHING


_OF_NOTHING = {"sum": 0, "prod": 1, "any": False, "all": True, "mean": float("nan")}
"""What reductions give when there is nothing to reduce."""


def _of_nothing(m: Match) -> str:
    return m.fill(_OF_NOTHING[m.root.op], m.dtype, m.root.spec.shape)


def _place(op: str) -> Callable[[Match], str]:
    """The least index of the extreme or of NaN."""

    def replacement(m: Match) -> str:
        axis, x = m.root.attrs["axis"], Expr(m, m["x"])
        x = x if integer_arithmetic.is_wide(m) else x.to(float32)
        shape = m.spec(x.value).shape
        extreme = x.call(op, axes=(axis,), keepdims=True)
        is_found = x == extreme
        if m.spec(m["x"]).dtype.is_float:  # of NaN neither holds, of all others the latter
            is_found = is_found.call("equal", x.call("less_equal", inf))
        along = tuple(n if d == axis else 1 for d, n in enumerate(shape))
        to_end = np.arange(shape[axis], 0, -1, dtype=np.float32).reshape(along)
        left = Expr(m, m.emit("constant", value=Constant(to_end, float32)))
        most = choose(is_found, left, 0.0).call("max", axes=(axis,), keepdims=True)
        return result(m, float(shape[axis]) - most)

    return replacement


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
    x = Expr(m, m["x"])
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
    return result(m, decomposition(*operands, **m.root.attrs))


def _not(m: Match) -> str:
    return (~Expr(m, m["x"])).value


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("reduce_nothing", of("*", "x"), _of_nothing, _is_nothing),
    RewriteRule("reduce_keeps_axes", of("*", "x"), _drop_axes, _drops_axes),
    *reduction_unrolling.RULES,
    RewriteRule("argmax", of("argmax", "x"), _place("max")),
    RewriteRule("argmin", of("argmin", "x"), _place("min")),
    *triangular_masks.RULES,
    RewriteRule("one_over", of("divide", 1.0, "b"), _one_over),
    *division.RULES,
    *domain_guards.RULES,
    *float_powers.RULES,
    RewriteRule("cast", of("cast", "x"), _cast),
    RewriteRule("logical_not", of("logical_not", "x"), _not),
    *integer_arithmetic.RULES,
    *matrix_products.RULES,
    *integer_powers.RULES,
    *integer_sums.RULES,
    *scans.RULES,
    *(RewriteRule(op.name, of(op.name), _decomposed) for op in OPS.values() if op.decomposition),
)
"""Rules of one operation are tried in this order; rules of every operation (`*`) first."""
