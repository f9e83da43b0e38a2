"""Integer division: quotients by float32, rests in the exact 32-bit integers of GpSimdE."""

from __future__ import annotations

from nki_dtypes import uint32
from nkigen_lite.passes.expression import Expr, choose, result
from nkigen_lite.passes.integers import bits_of, magnitude, subtract, wrapped
from nkigen_lite.passes.rule import Match

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


def _divided(a: Expr, b: Expr) -> tuple[Expr, Expr]:
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
    a, b = Expr(m, m["a"]), Expr(m, m["b"])
    size_a, size_b = (_in_32_bits(magnitude(x)) for x in (a, b))
    return a, b, size_a, size_b.call("maximum", 1)


def _in_32_bits(size: Expr) -> Expr:
    """A magnitude: the least number of a narrow signed type is its own, 2ⁿ⁻¹ as bits."""
    if size.dtype.bits == 32:
        return bits_of(size)
    return bits_of(size) & ((1 << size.dtype.bits) - 1)


def _differ(a: Expr, b: Expr) -> Expr:
    return (a < 0).call("logical_xor", b < 0)


def _opposite(x: Expr) -> Expr:
    return subtract(Expr(x.match, x.match.fill(0, uint32)), x)


def _unless_zero(m: Match, b: Expr, bits: Expr) -> str:
    """NumPy's result of a division by zero is 0."""
    number = wrapped(bits, m.dtype)
    return result(m, number if b.number else choose(b == 0, 0, number))


def floor_divide(m: Match) -> str:
    """⌊a / b⌋ modulo the range; 0 for b = 0."""
    a, b, size_a, size_b = _sizes(m)
    quotient, rest = _divided(size_a, size_b)
    if m.dtype.min < 0:
        down = quotient.call("exact_add", (rest != 0).to(uint32))
        quotient = choose(_differ(a, b), _opposite(down), quotient)
    return _unless_zero(m, b, quotient)


def mod(m: Match) -> str:
    """a - b ⌊a / b⌋, with the sign of b; 0 for b = 0."""
    a, b, size_a, size_b = _sizes(m)
    _, rest = _divided(size_a, size_b)
    if m.dtype.min < 0:
        up = choose(_differ(a, b) & (rest != 0), size_b.call("exact_subtract", rest), rest)
        rest = choose(b < 0, _opposite(up), up)
    return _unless_zero(m, b, rest)
