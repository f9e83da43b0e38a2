"""Roots, logarithms and powers of floats in float32, from what the engines have."""

from __future__ import annotations

from math import inf, log, nan

from neuroncore.activations import ACTIVATIONS
from nki_dtypes import float32, int32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.ops.rounding import nearest, rint_formula
from nkigen_lite.passes.bounds import is_never_zero, least
from nkigen_lite.passes.rewriting import Constant_, Match, RewriteRule, is_float, of

_LEAST_EXPONENT, _MOST_EXPONENT = -252.0, 254.0
"""Twice the exponents of the least and the largest normal number: beyond, 2ˣ is 0 or infinite."""


def power_of_two(m: Match) -> str:
    """2ˣ = 2ⁿ · exp((x - n) log 2) for the integer n nearest to x: exact where x is one.

    2ⁿ is two factors made of bits, so that it may be subnormal or infinite.
    """
    x = m.expr("y", float32)
    inside = x.call("maximum", _LEAST_EXPONENT).call("minimum", _MOST_EXPONENT)
    n = nearest(inside)
    half = nearest(n * 0.5)
    fraction = ((inside - n) * log(2)).call("exp")
    found = fraction * _two_to(half) * _two_to(n - half)
    return m.result(choose(x == x, found, x))


def _two_to(n: Expr) -> Expr:
    """2ⁿ for an integer n from -126 to 127: the exponent of a float32, biased."""
    return ((n + 127.0) * 2.0**23).to(int32).bits("f32")


_MOST_FACTORS = 64
"""The largest whole exponent that is multiplied out."""


def is_whole_power(m: Match) -> bool:
    """Whether the exponent is a small whole number, known here."""
    exponent = float(m.number("n"))
    return abs(exponent) <= _MOST_FACTORS and exponent == int(exponent)


def whole_power(m: Match) -> str:
    """xⁿ by squaring; x⁻ⁿ is the reciprocal of xⁿ."""
    exponent = int(m.number("n"))
    x = m.expr("x", float32) if m.dtype.is_float else m.expr("x")
    if exponent == 0:
        return m.shaped(m.fill(1, m.dtype))
    found: Expr | None = None
    for bit in bin(abs(exponent))[2:]:
        found = x if found is None else found.call("square") if m.dtype.is_float else found * found
        if bit == "1" and found is not x:
            found = found * x
    assert found is not None
    return m.result(found.call("reciprocal") if exponent < 0 else found)


def inverse_root(m: Match) -> str:
    """1 / √x; ∞ for -0 and 0 for -∞, as powers have no sign there."""
    x = m.expr("x", float32)
    found = x.call("rsqrt").call("abs")
    may_be_less = least(m.build, x.value) < 0
    return m.result(choose(x == -inf, 0.0, found) if may_be_less else found)


def power(m: Match) -> str:
    """|x|ʸ = exp(y log |x|), 1 for y = 0 or |x| = 1; for x < 0 (-0 included) negated where y is
    odd, NaN where y is not an integer.

    Relative error up to about (2 + |y log x|) · 2⁻²³.
    """
    x, y = m.expr("x", float32), m.expr("y", float32)
    size = x.call("abs")
    grown = (y * size.call("log")).call("exp")
    grown = choose((y == 0.0) | (x == 1.0) | ((size == 1.0) & (y == y)), 1.0, grown)
    half = rint_formula(y * 0.5) * 2.0
    is_whole = rint_formula(y) == y
    is_odd = is_whole & (half != y)
    is_negative = x.bits(int32).to("f32") < 0.0
    signed = choose(is_negative & is_odd, -grown, grown)
    undefined = (x < 0.0) & (size < inf) & ~is_whole & (y == y)
    return m.result(choose(undefined, nan, signed))


# ------------------------------------------------------- ranges of ScalarE's functions
# The engine is asked for f(1) at zero, which is outside the range that documents promise, and what
# NumPy gives for zero is put in its place. No guard is made where a bound proves that no element
# is zero (`bounds`).

_STEEP = 2.0**75
"""x times this is 0 for x = 0, and for every other float32 x > 0 no less than √x."""


def may_be_zero(m: Match) -> bool:
    """Whether nothing proves that the engine's function is never asked for zero."""
    return not is_never_zero(m.build, m["x"])


def leaves_range(m: Match) -> bool:
    """Whether nothing proves that all elements are in the range of the engine's function."""
    return least(m.build, m["x"]) < ACTIVATIONS[m.root.op].valid[0]


def _ones_for_zeros(x: Expr) -> Expr:
    return (x == 0.0).to(float32) + x


def sqrt_at_zero(m: Match) -> str:
    """√x; ±0 for ±0."""
    x = m.expr("x", float32)
    return m.result((x * _STEEP).call("minimum", _ones_for_zeros(x).call("sqrt")))


def rsqrt_at_zero(m: Match) -> str:
    """1 / √x; ±∞ for ±0."""
    return m.result(m.expr("x", float32).call("sqrt").call("reciprocal"))


def log_at_zero(m: Match) -> str:
    """log x; -∞ for ±0."""
    x = m.expr("x", float32)
    return m.result(choose(x == 0.0, -inf, _ones_for_zeros(x).call("log")))


RULES = (
    RewriteRule("sqrt_at_zero", of("sqrt", "x"), sqrt_at_zero, may_be_zero),
    RewriteRule("rsqrt_at_zero", of("rsqrt", "x"), rsqrt_at_zero, leaves_range),
    RewriteRule("log_at_zero", of("log", "x"), log_at_zero, may_be_zero),
    RewriteRule("whole_power", of("power", "x", Constant_("n")), whole_power, is_whole_power),
    RewriteRule("inverse_root", of("power", "x", -0.5), inverse_root, is_float),
    RewriteRule("float_power_of_two", of("power", 2.0, "y"), power_of_two, is_float),
    RewriteRule("power", of("power", "x", "y"), power, is_float),
)
