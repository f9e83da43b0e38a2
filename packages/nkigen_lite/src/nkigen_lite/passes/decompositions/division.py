"""floor_divide and mod: of floats in the float32 arithmetic of the engines; of integers with
quotients by float32 and remainders in the exact 32-bit integers of GpSimdE."""

from __future__ import annotations

from math import inf

from nki_dtypes import float32, int32, uint32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.ops.rounding import rint_formula
from nkigen_lite.passes.decompositions.integer_arithmetic import (
    bits_of,
    magnitude,
    subtract,
    wrapped,
)
from nkigen_lite.passes.rewriting import Constant_, Match, RewriteRule, is_float, is_integer, of

_HIGH_HALF = -(1 << 12)
"""A mask that keeps 12 of the 24 bits of a significand: products of two such are exact."""
_STEPS = 4


def _high(x: Expr) -> Expr:
    return (x.bits(int32) & _HIGH_HALF).bits("f32")


def _float_divided(a: Expr, b: Expr) -> tuple[Expr, Expr]:
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
        digits.append(rint_formula(_high(rest * inverse)))
        rest = (rest - digits[-1] * high) - digits[-1] * low
    fix = _signs_differ(rest, b).to(a.dtype)
    quotient = (digits[0] + digits[1]) + (digits[2] + (digits[3] - fix))
    return quotient, rest + fix * b


def _signs_differ(a: Expr, b: Expr) -> Expr:
    """Whether one is negative and the other positive."""
    return ((a < 0.0) & (b > 0.0)) | ((a > 0.0) & (b < 0.0))


def _special(a: Expr, b: Expr, finite: Expr, endless: Expr) -> Expr:
    """`endless` where b is ±∞ and a is finite."""
    is_endless = (b.call("abs") == inf) & (a.call("abs") < inf)
    return choose(is_endless, endless, finite)


def float_floor_divide(m: Match) -> str:
    """⌊a / b⌋: ±∞ or NaN for b = 0, 0 or -1 for b = ±∞."""
    a, b = m.expr("a", float32), m.expr("b", float32)
    quotient, _ = _float_divided(a, b)
    quotient = choose(b == 0.0, a * b.call("reciprocal"), quotient)
    return m.result(_special(a, b, quotient, -_signs_differ(a, b).to(a.dtype)))


def float_mod(m: Match) -> str:
    """a - b ⌊a / b⌋, with the sign of b; NaN for b = 0; a or b for b = ±∞."""
    a, b = m.expr("a", float32), m.expr("b", float32)
    _, rest = _float_divided(a, b)
    return m.result(_special(a, b, rest, choose(_signs_differ(a, b), b, a)))


# ------------------------------------------------------------------------ integers

_UNDER = 1.0 - 2.0**-20
"""Below 1 by more than a reciprocal, a product and the conversions of both may be too large."""


def is_by_power_of_two(m: Match) -> bool:
    """Whether integers are divided by 1, 2, 4, …"""
    n = int(m.number("n")) if m.dtype.is_integer else 0
    return n > 0 and not n & (n - 1)


def shifted_quotient(m: Match) -> str:
    """⌊x / 2ᵏ⌋."""
    places = int(m.number("n")).bit_length() - 1
    return m.shaped(m.emit("right_shift", m["x"], m.fill(places, m.dtype)))


def masked_rest(m: Match) -> str:
    """x modulo 2ᵏ."""
    return m.shaped(m.emit("bitwise_and", m["x"], m.fill(int(m.number("n")) - 1, m.dtype)))


def _integer_divided(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Quotient and rest of uint32 numbers, b > 0.

    Each step takes from the rest a multiple of b that float32 finds and that is never too large,
    whichever way its fraction is rounded: of 32 bits the first step finds 19, so that a rest below
    2¹⁴ b is left; the second leaves less than 2 b.
    """
    inverse = b.to("f32").call("reciprocal") * _UNDER
    quotient, rest = None, a
    for _ in range(2):
        digit = (rest.to("f32") * inverse - 0.5).call("maximum", 0.0).to(uint32)
        rest = rest.call("exact_subtract", digit.call("exact_multiply", b))
        quotient = digit if quotient is None else quotient.call("exact_add", digit)
    assert quotient is not None
    more = (rest >= b).to(uint32)
    rest = rest.call("exact_subtract", more.call("exact_multiply", b))
    return quotient.call("exact_add", more), rest


def _sizes(m: Match) -> tuple[Expr, Expr, Expr, Expr]:
    """a and b, and their magnitudes in 32 bits; b = 0 counts as 1."""
    a, b = m.expr("a"), m.expr("b")
    size_a, size_b = (_in_32_bits(magnitude(x)) for x in (a, b))
    return a, b, size_a, size_b.call("maximum", 1)


def _in_32_bits(size: Expr) -> Expr:
    """A magnitude: the least number of a narrow signed type is its own, 2ⁿ⁻¹ as bits."""
    if size.dtype.bits == 32:
        return bits_of(size)
    return bits_of(size) & ((1 << size.dtype.bits) - 1)


def _opposite_signs(a: Expr, b: Expr) -> Expr:
    return (a < 0).call("logical_xor", b < 0)


def _opposite(x: Expr) -> Expr:
    return subtract(Expr(x.match, x.match.fill(0, uint32)), x)


def _unless_zero(m: Match, b: Expr, bits: Expr) -> str:
    """NumPy's result of a division by zero is 0."""
    number = wrapped(bits, m.dtype)
    return m.result(number if b.number else choose(b == 0, 0, number))


def integer_floor_divide(m: Match) -> str:
    """⌊a / b⌋ modulo the range; 0 for b = 0."""
    a, b, size_a, size_b = _sizes(m)
    quotient, rest = _integer_divided(size_a, size_b)
    if m.dtype.min < 0:
        down = quotient.call("exact_add", (rest != 0).to(uint32))
        quotient = choose(_opposite_signs(a, b), _opposite(down), quotient)
    return _unless_zero(m, b, quotient)


def integer_mod(m: Match) -> str:
    """a - b ⌊a / b⌋, with the sign of b; 0 for b = 0."""
    a, b, size_a, size_b = _sizes(m)
    _, rest = _integer_divided(size_a, size_b)
    if m.dtype.min < 0:
        up = choose(_opposite_signs(a, b) & (rest != 0), size_b.call("exact_subtract", rest), rest)
        rest = choose(b < 0, _opposite(up), up)
    return _unless_zero(m, b, rest)


_BY_NUMBER = ("x", Constant_("n"))

RULES = (
    RewriteRule("floor_divide", of("floor_divide", "a", "b"), float_floor_divide, is_float),
    RewriteRule("mod", of("mod", "a", "b"), float_mod, is_float),
    RewriteRule(
        "quotient_by_shift", of("floor_divide", *_BY_NUMBER), shifted_quotient, is_by_power_of_two
    ),
    RewriteRule("rest_by_mask", of("mod", *_BY_NUMBER), masked_rest, is_by_power_of_two),
    RewriteRule(
        "integer_floor_divide", of("floor_divide", "a", "b"), integer_floor_divide, is_integer
    ),
    RewriteRule("integer_mod", of("mod", "a", "b"), integer_mod, is_integer),
)
