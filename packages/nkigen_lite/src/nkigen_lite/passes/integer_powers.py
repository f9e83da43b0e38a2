"""Powers of integers, modulo the range; exponents count as NumPy's: none is negative."""

from __future__ import annotations

from nki_dtypes import bool_, uint32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.passes.expression import result
from nkigen_lite.passes.integer_arithmetic import (
    bits_of,
    is_integer,
    multiply,
    raised,
    squared,
    wrapped,
)
from nkigen_lite.passes.rewriting import Match, RewriteRule, of

_SQUARINGS = 6
"""x^(2⁶) is 1 + 2⁸ s for odd x, and 0 modulo 2³² for even x."""
_THIRD = 171
"""1 / 3 modulo 2⁸."""


def is_narrow(m: Match) -> bool:
    """Whether powers of integers of up to 16 bits are asked for."""
    return m.dtype.is_integer and m.dtype.bits <= 16


def is_wide(m: Match) -> bool:
    """Whether powers of 32-bit integers are asked for."""
    return m.dtype.is_integer and m.dtype.bits == 32


def narrow(m: Match) -> str:
    """x squared again and again, multiplied where y has the bit."""
    x, y = Expr(m, m["x"]), Expr(m, m["y"])
    found = Expr(m, m.fill(1, m.dtype))
    for place in range(m.dtype.bits - (m.dtype.min < 0)):
        has = (y & (1 << place)) != 0
        found = choose(has, found * x, found)
        x = x * x
    return result(m, found)


def wide(m: Match) -> str:
    """xʸ = x^(y mod 2⁶) · (x^(2⁶))ᶻ for z = y div 2⁶: the first by squaring, the second, modulo
    2³², a sum of four terms for odd x, and 0ᶻ for even x."""
    x, y = bits_of(Expr(m, m["x"])), bits_of(Expr(m, m["y"]))
    one, zero = (Expr(m, m.fill(n, uint32)) for n in (1, 0))
    is_odd = (x & 1).to(bool_)
    found = choose((y & 1).to(bool_), x, one)
    for place in range(1, _SQUARINGS):
        x = squared(x)
        found = choose((y & (1 << place)) != 0, multiply(found, x), found)
    high = y.call("right_shift", _SQUARINGS)
    of_odd = _by_binomials(squared(x).call("right_shift", 8), high)
    factor = choose(is_odd, of_odd, choose(high == 0, one, zero))
    return result(m, wrapped(multiply(found, factor), m.dtype))


def _by_binomials(s: Expr, z: Expr) -> Expr:
    """(1 + 2⁸ s)ᶻ = 1 + 2⁸ z s + 2¹⁶ C(z, 2) s² + 2²⁴ C(z, 3) s³ modulo 2³², of 24 bits of s and
    26 of z. C(z, 2) is z div 2 times the odd one of z - 1 and z; 3 C(z, 3) is C(z, 2) (z - 2)."""
    odd = (z & 0xFFFF).call("exact_add", 0xFFFF) | 1
    pairs = _times(z.call("right_shift", 1), odd, 0xFFFF)
    triples = _times(_times(pairs, (z & 0xFF).call("exact_add", 0xFE), 0xFF), _THIRD, 0xFF)
    square = _times(s, s, 0xFFFF)
    second = _times(square, pairs, 0xFFFF)
    third = _times(_times(square, s, 0xFF), triples, 0xFF)
    first = multiply(s, z).call("left_shift", 8) | 1
    return raised(first, second.call("exact_add", third.call("left_shift", 8)))


def _times(a: Expr, b: Expr | int, mask: int) -> Expr:
    """a · b modulo mask + 1, of at most 16 bits."""
    return (a & mask).call("exact_multiply", b & mask) & mask


def of_two(m: Match) -> str:
    """2ʸ."""
    return m.shaped(m.emit("left_shift", m.fill(1, m.dtype), m["y"]))


RULES = (
    RewriteRule("power_of_two", of("power", 2, "y"), of_two, is_integer),
    RewriteRule("narrow_power", of("power", "x", "y"), narrow, is_narrow),
    RewriteRule("wide_power", of("power", "x", "y"), wide, is_wide),
)
