"""Into operations that engines have: one rule per operation that they lack."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod

import numpy as np

from nki_dtypes import DType, bool_, float32, int32, uint32
from nkigen_lite.ir import Graph, Node
from nkigen_lite.ops import Kind
from nkigen_lite.ops.create import Constant
from nkigen_lite.passes import (
    division,
    guards,
    integers,
    powers,
    products,
    rounding,
    scans,
    short_axes,
    sums,
    transcendental,
    triangles,
)
from nkigen_lite.passes.expression import Expr, choose, expr, result
from nkigen_lite.passes.rule import Constant_, Match, Rule, of, rewrite


def decompose(graph: Graph) -> Graph:
    """The graph in operations of the engines: float32 arithmetic, their functions in the ranges
    where they are valid, machine conversions, reductions that keep their axes.

        v0 = sin(x0)   →   x0 reduced by multiples of π; sin_reduced
    """
    return rewrite(graph, RULES)


_LACKING = frozenset(rule_op for rule_op in (
    "sin", "cos", "log1p", "expm1", "power", "divide", "floor_divide", "mod", "floor", "ceil",
    "rint", "trunc", "mean", "any", "all", "argmax", "argmin", "cast", "logical_not", "softmax",
    "rms_norm", "tril", "triu",
))  # fmt: skip


def is_engine_op(node: Node) -> bool:
    """Whether `decompose` leaves this operation: no rule is about it."""
    return node.op not in _LACKING and not (
        node.record.kind is Kind.reduce and not node.attrs["keepdims"]
    )


def _is_float(m: Match) -> bool:
    return m.dtype.is_float


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


def _mean(m: Match) -> str:
    total = expr(m, "x").call("sum", **m.root.attrs)
    return result(m, total * (1.0 / _count(m)))


def _truth(op: str) -> Callable[[Match], str]:
    def replacement(m: Match) -> str:
        extreme = expr(m, "x").call(op, **m.root.attrs)
        return (extreme > 0.0).value

    return replacement


def _place(op: str) -> Callable[[Match], str]:
    """The least index of those that hold the extreme, or NaN."""

    def replacement(m: Match) -> str:
        axis, x = m.root.attrs["axis"], Expr(m, m["x"])
        x = x if integers.is_wide(m) else x.to(float32)
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


# ---------------------------------------------------------------------- composites


def _softmax(m: Match) -> str:
    x, axes = expr(m, "x"), {"axes": (m.root.attrs["axis"],), "keepdims": True}
    e = (x - x.call("max", **axes)).call("exp")
    return result(m, e * e.call("sum", **axes).call("reciprocal"))


def _rms_norm(m: Match) -> str:
    x, axis = expr(m, "x"), m.root.attrs["axis"]
    squares = x.call("square").call("sum", axes=(axis,), keepdims=True)
    mean = squares * (1.0 / m.root.spec.shape[axis])
    return result(m, x * (mean + m.root.attrs["epsilon"]).call("rsqrt"))


# -------------------------------------------------------------------------- divide


def _divide(m: Match) -> str:
    return result(m, expr(m, "a") * expr(m, "b").call("reciprocal"))


def _one_over(m: Match) -> str:
    return m.shaped(m.emit("reciprocal", m["b"]))


# ---------------------------------------------------------------------------- cast


def _cut(whole: Expr, target: DType) -> Expr:
    """Whole float32 numbers as integers; those of 32 bits that the target has not wrap, as they do
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
        return _cut(rounding.trunc_expr(x.to(float32)), target).value
    if target.min <= source.min and source.max <= target.max:
        return x.to(target).value
    if target.bits < source.bits:
        return x.call("low_bits", dtype=target).value
    if target.bits == source.bits:
        return x.bits(target).value
    return x.to(int32).bits(target).value if target.bits == 32 else (
        x.to(int32).call("low_bits", dtype=target).value
    )  # fmt: skip


def _not(m: Match) -> str:
    return (~Expr(m, m["x"])).value


RULES: tuple[Rule, ...] = (
    Rule("reduce_nothing", of("*", "x"), _of_nothing, _is_nothing),
    Rule("reduce_keeps_axes", of("*", "x"), _drop_axes, _drops_axes),
    Rule("short_axis", of("*", "x"), short_axes.one_by_one, short_axes.is_short),
    Rule("mean", of("mean", "x"), _mean),
    Rule("any", of("any", "x"), _truth("max")),
    Rule("all", of("all", "x"), _truth("min")),
    Rule("argmax", of("argmax", "x"), _place("max")),
    Rule("argmin", of("argmin", "x"), _place("min")),
    Rule("tril", of("tril", "x"), triangles.half(upper=False)),
    Rule("triu", of("triu", "x"), triangles.half(upper=True)),
    Rule("triangle", of("constant"), triangles.of_numbers, triangles.is_triangle),
    Rule("softmax", of("softmax", "x"), _softmax),
    Rule("rms_norm", of("rms_norm", "x"), _rms_norm),
    Rule("one_over", of("divide", 1.0, "b"), _one_over),
    Rule("divide", of("divide", "a", "b"), _divide),
    Rule("floor_divide", of("floor_divide", "a", "b"), rounding.floor_divide, _is_float),
    Rule("mod", of("mod", "a", "b"), rounding.mod, _is_float),
    Rule(
        "quotient_by_shift",
        of("floor_divide", "x", Constant_("n")), division.shifted_quotient,
        division.is_by_power_of_two,
    ),
    Rule(
        "rest_by_mask",
        of("mod", "x", Constant_("n")), division.masked_rest, division.is_by_power_of_two,
    ),
    Rule(
        "integer_floor_divide",
        of("floor_divide", "a", "b"), division.floor_divide, integers.is_integer,
    ),
    Rule("integer_mod", of("mod", "a", "b"), division.mod, integers.is_integer),
    Rule("rint", of("rint", "x"), rounding.whole(rounding.rint_expr)),
    Rule("floor", of("floor", "x"), rounding.whole(rounding.floor_expr)),
    Rule("ceil", of("ceil", "x"), rounding.whole(rounding.ceil_expr)),
    Rule("trunc", of("trunc", "x"), rounding.whole(rounding.trunc_expr)),
    Rule("sqrt_at_zero", of("sqrt", "x"), guards.sqrt, guards.may_be_zero),
    Rule("rsqrt_at_zero", of("rsqrt", "x"), guards.rsqrt, guards.leaves_range),
    Rule("log_at_zero", of("log", "x"), guards.log, guards.may_be_zero),
    Rule("sin", of("sin", "x"), transcendental.sine),
    Rule("cos", of("cos", "x"), transcendental.cosine),
    Rule("log1p", of("log1p", "x"), transcendental.log1p),
    Rule("expm1", of("expm1", "x"), transcendental.expm1),
    Rule(
        "whole_power",
        of("power", "x", Constant_("n")),
        transcendental.whole_power,
        transcendental.is_whole_power,
    ),
    Rule("inverse_root", of("power", "x", -0.5), transcendental.inverse_root, _is_float),
    Rule("float_power_of_two", of("power", 2.0, "y"), transcendental.power_of_two, _is_float),
    Rule("power", of("power", "x", "y"), transcendental.power, _is_float),
    Rule("cast", of("cast", "x"), _cast),
    Rule("logical_not", of("logical_not", "x"), _not),
    *(
        Rule(f"integer_{op}", of(op, "a", "b"), integers.arithmetic(op), integers.is_integer)
        for op in ("add", "subtract", "multiply")
    ),
    *(
        Rule(f"wide_{op}", of(op, "x"), integers.extreme(op), integers.is_wide)
        for op in ("max", "min")
    ),
    Rule("matmul_of_nothing", of("matmul", "a", "b"), products.of_nothing,
         products.has_no_terms),
    Rule("matmul_of_narrow", of("matmul", "a", "b"), products.of_narrow_floats,
         products.is_narrow_float),
    Rule("matmul_of_vectors", of("matmul", "a", "b"), products.of_vectors,
         products.has_vectors),
    Rule("thin_matmul", of("matmul", "a", "b"), products.by_columns, products.is_thin),
    Rule("integer_matmul_with_vector", of("matmul", "a", "b"), products.with_vector,
         products.has_vector),
    Rule("integer_matmul", of("matmul", "a", "b"), products.of_integers, products.is_of_integers),
    Rule("integer_prod", of("prod", "x"), products.product, integers.is_integer),
    Rule("power_of_two", of("power", 2, "y"), powers.of_two, integers.is_integer),
    Rule("narrow_power", of("power", "x", "y"), powers.narrow, powers.is_narrow),
    Rule("wide_power", of("power", "x", "y"), powers.wide, powers.is_wide),
    Rule("integer_negative", of("negative", "x"), integers.negative, integers.is_integer),
    Rule("integer_abs", of("abs", "x"), integers.absolute, integers.is_integer),
    Rule("integer_square", of("square", "x"), integers.square, integers.is_integer),
    Rule("integer_sign", of("sign", "x"), integers.sign, integers.is_integer),
    Rule(
        "signed_right_shift",
        of("right_shift", "a", "b"), integers.right_shift, integers.is_signed,
    ),
    Rule("integer_sum", of("sum", "x"), sums.summed, sums.is_summable),
    *(
        rule
        for op in ("cumsum", "cumprod", "cummax", "cummin")
        for rule in (
            Rule(f"{op}_of_one", of(op, "x"), lambda m: m["x"], scans.is_one),
            Rule(f"{op}_on_last_axis", of(op, "x"), scans.on_last_axis, scans.is_inside),
            Rule(f"{op}_of_narrow", of(op, "x"), scans.in_float32, scans.is_narrow_float),
            Rule(f"long_{op}", of(op, "x"), scans.in_parts, scans.is_long),
        )
    ),
    Rule("integer_cumsum", of("cumsum", "x"), scans.of_pieces, scans.is_sum_of_integers),
    *(
        Rule(f"integer_{op}", of(op, "x"), scans.by_doubling, scans.is_of_integers)
        for op in ("cumsum", "cumprod", "cummax", "cummin")
    ),
    Rule("long_integer_sum", of("sum", "x"), sums.in_stretches, sums.is_long),
)  # fmt: skip
