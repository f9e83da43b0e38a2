"""sin, cos, log1p, expm1 and power in float32, from what the engines have."""

from __future__ import annotations

from math import inf, log, nan, pi

import numpy as np

from nki_dtypes import int32
from nkigen_lite.passes.bounds import least
from nkigen_lite.passes.expression import Expr, choose, expr, result
from nkigen_lite.passes.rounding import rint_expr
from nkigen_lite.passes.rule import Match

_ROUNDER = 1.5 * 2.0**23
"""x + _ROUNDER - _ROUNDER is the integer nearest to x, for |x| ≤ 2²²."""
_COARSE = 1024.0
"""Half turns are counted in lots of 1024 and singly, so that each count has at most 11 bits."""


def _split(number: float, bits: tuple[int, ...]) -> tuple[float, ...]:
    """Parts that add up to the number, each of so many bits; the last is rounded to float32.

    Exact: Python's π has 53 bits, the parts hold 13 + 13 + 24 = 50 of them.
    """
    parts = []
    for count in bits:
        step = 2.0 ** (int(np.floor(np.log2(abs(number)))) + 1 - count)
        parts.append(float(np.trunc(number / step) * step))
        number -= parts[-1]
    return (*parts, float(np.float32(number)))


_PI = _split(pi, (13, 13))
"""π in two parts whose product with a count of 11 bits is exact in float32, and the rest."""
_LARGEST_ANGLE = float(np.nextafter(np.float32(pi), np.float32(0)))


def _nearest(x: Expr) -> Expr:
    return (x + _ROUNDER) - _ROUNDER


def _half_turns(x: Expr, offset: float) -> tuple[Expr, Expr]:
    """sin(x - (k + offset) π) for the k that leaves the least angle, and (-1)ᵏ.

    |x| ≤ 10⁶: absolute error below 3e-7, the engine's sine taken as exact. Beyond, k no longer
    fits its bits and the error grows; the result stays within [-1, 1].
    """
    first, second, third = _PI
    coarse = _nearest(x * (1.0 / (pi * _COARSE))) * _COARSE
    near = (x - coarse * first) - coarse * second
    turns = near * (1.0 / pi)
    fine = _nearest(turns - offset if offset else turns)
    count = fine + offset if offset else fine
    # All of these differences are exact but the last.
    left = (near - count * first) - (count * second + (coarse + count) * third)
    angle = left.call("minimum", _LARGEST_ANGLE).call("maximum", -_LARGEST_ANGLE)
    odd = fine - _nearest(fine * 0.5) * 2.0
    sign = 1.0 - (odd * odd).call("minimum", 1.0) * 2.0
    return angle.call("sin_reduced"), sign


def sine(m: Match) -> str:
    """sin x."""
    wave, sign = _half_turns(expr(m, "x"), 0.0)
    return result(m, wave * sign)


def cosine(m: Match) -> str:
    """cos x = -(-1)ᵏ sin(x - (k + ½) π)."""
    wave, sign = _half_turns(expr(m, "x"), 0.5)
    return result(m, -(wave * sign))


def log1p(m: Match) -> str:
    """log(1 + x): where 1 + x is rounded, the logarithm is stretched by x / ((1 + x) - 1)."""
    x = expr(m, "x")
    u = x + 1.0
    d = u - 1.0
    stretched = u.call("log") * (x * d.call("reciprocal"))
    return result(m, choose(d == 0.0, x, choose(d == x, u.call("log"), stretched)))


def expm1(m: Match) -> str:
    """eˣ - 1: near 0 stretched by x / log eˣ, where eˣ is the rounded one."""
    x = expr(m, "x")
    u = x.call("exp")
    d = u - 1.0
    inside = u.call("maximum", 0.5).call("minimum", 2.0)  # all that the choice below takes
    near = d * (x * inside.call("log").call("reciprocal"))
    far = choose(x.call("abs") < 0.5, near, d)
    return result(m, choose(u == 1.0, x, far))


# ------------------------------------------------------------------------ power

_LEAST_EXPONENT, _MOST_EXPONENT = -252.0, 254.0
"""Twice those of the least normal number and of the largest: beyond, 2ˣ is 0 or infinite."""


def power_of_two(m: Match) -> str:
    """2ˣ = 2ⁿ · exp((x - n) log 2) for the integer n nearest to x: exact where x is one.

    2ⁿ is two factors made of bits, so that it may be subnormal or infinite.
    """
    x = expr(m, "y")
    inside = x.call("maximum", _LEAST_EXPONENT).call("minimum", _MOST_EXPONENT)
    n = _nearest(inside)
    half = _nearest(n * 0.5)
    fraction = ((inside - n) * log(2)).call("exp")
    found = fraction * _two_to(half) * _two_to(n - half)
    return result(m, choose(x == x, found, x))


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
    x = expr(m, "x") if m.dtype.is_float else Expr(m, m["x"])
    if exponent == 0:
        return m.shaped(m.fill(1, m.dtype))
    found: Expr | None = None
    for bit in bin(abs(exponent))[2:]:
        found = x if found is None else found.call("square") if m.dtype.is_float else found * found
        if bit == "1" and found is not x:
            found = found * x
    assert found is not None
    return result(m, found.call("reciprocal") if exponent < 0 else found)


def inverse_root(m: Match) -> str:
    """1 / √x; ∞ for -0 and 0 for -∞, as powers have no sign there."""
    x = expr(m, "x")
    found = x.call("rsqrt").call("abs")
    may_be_less = least(m.build, x.value) < 0
    return result(m, choose(x == -inf, 0.0, found) if may_be_less else found)


def power(m: Match) -> str:
    """|x|ʸ = exp(y log |x|), 1 for y = 0 or |x| = 1; for x < 0 (-0 included) negated where y is
    odd, NaN where y is no integer.

    Relative error up to about (2 + |y log x|) · 2⁻²³.
    """
    x, y = expr(m, "x"), expr(m, "y")
    size = x.call("abs")
    grown = (y * size.call("log")).call("exp")
    grown = choose((y == 0.0) | (x == 1.0) | ((size == 1.0) & (y == y)), 1.0, grown)
    half = rint_expr(y * 0.5) * 2.0
    is_whole = rint_expr(y) == y
    is_odd = is_whole & (half != y)
    is_negative = x.bits(int32).to("f32") < 0.0
    signed = choose(is_negative & is_odd, -grown, grown)
    undefined = (x < 0.0) & (size < inf) & ~is_whole & (y == y)
    return result(m, choose(undefined, nan, signed))
