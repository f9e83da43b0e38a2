"""floor, ceil, rint, trunc, floor_divide and mod in the float32 arithmetic of the engines."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from nki_dtypes import int32
from nkigen_lite.passes.expression import Expr, choose, expr, result
from nkigen_lite.passes.rule import Match

_INTEGERS_FROM = 2.0**23
"""float32 numbers of this magnitude and above are integers; below, adding it rounds to one."""


def rounded_magnitude(size: Expr) -> Expr:
    """rint of numbers ≥ 0: adding 2²³ leaves no room for a fraction, ties go to even."""
    near = (size + _INTEGERS_FROM) - _INTEGERS_FROM
    return choose(size < _INTEGERS_FROM, near, size)


def rint_expr(x: Expr) -> Expr:
    """The nearest integer, ties to even; -0 and NaN stay."""
    return rounded_magnitude(x.call("abs")) * x.call("sign")


def trunc_expr(x: Expr) -> Expr:
    """Towards zero."""
    size = x.call("abs")
    near = rounded_magnitude(size)
    return (near - (near > size).to(x.dtype)) * x.call("sign")


def floor_expr(x: Expr) -> Expr:
    """Down."""
    near = rint_expr(x)
    return near - (near > x).to(x.dtype)


def ceil_expr(x: Expr) -> Expr:
    """Up."""
    near = rint_expr(x)
    return near + (near < x).to(x.dtype)


def whole(function: Callable[[Expr], Expr]) -> Callable[[Match], str]:
    """A replacement that rounds x."""
    return lambda m: result(m, function(expr(m, "x")))


# ------------------------------------------------------------------ division

_HIGH_HALF = -(1 << 12)
"""A mask that keeps 12 of the 24 bits of a significand: products of two such are exact."""
_STEPS = 4


def _high(x: Expr) -> Expr:
    return (x.bits(int32) & _HIGH_HALF).bits("f32")


def _divided(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Quotient and remainder of floor division, for |a / b| < 2⁴⁴ and 2⁻¹⁰⁰ < |b| < 2¹⁰⁰.

    Each step takes 12 bits of the quotient, whose products with both halves of b are exact, so
    that the remainder never rounds; the last leaves it within ±b, then its sign is made b's.
    The quotient is exact below 2²⁴, above it is rounded once.
    """
    inverse = b.call("reciprocal")
    high = _high(b)
    low = b - high
    rest, digits = a, []
    for _ in range(_STEPS):
        digits.append(rint_expr(_high(rest * inverse)))
        rest = (rest - digits[-1] * high) - digits[-1] * low
    fix = _differ(rest, b).to(a.dtype)
    quotient = (digits[0] + digits[1]) + (digits[2] + (digits[3] - fix))
    return quotient, rest + fix * b


def _differ(a: Expr, b: Expr) -> Expr:
    """Whether one is negative and the other positive."""
    return ((a < 0.0) & (b > 0.0)) | ((a > 0.0) & (b < 0.0))


def _special(a: Expr, b: Expr, finite: Expr, endless: Expr) -> Expr:
    """`endless` where b is ±∞ and a is finite."""
    is_endless = (b.call("abs") == inf) & (a.call("abs") < inf)
    return choose(is_endless, endless, finite)


def floor_divide(m: Match) -> str:
    """⌊a / b⌋: ±∞ or NaN for b = 0, 0 or -1 for b = ±∞."""
    a, b = expr(m, "a"), expr(m, "b")
    quotient, _ = _divided(a, b)
    quotient = choose(b == 0.0, a * b.call("reciprocal"), quotient)
    return result(m, _special(a, b, quotient, -_differ(a, b).to(a.dtype)))


def mod(m: Match) -> str:
    """a - b ⌊a / b⌋, with the sign of b; NaN for b = 0; a or b for b = ±∞."""
    a, b = expr(m, "a"), expr(m, "b")
    _, rest = _divided(a, b)
    return result(m, _special(a, b, rest, choose(_differ(a, b), b, a)))
