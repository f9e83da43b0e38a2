"""Powers of integers, modulo the range; exponents count as NumPy's: none is negative."""

from __future__ import annotations

from nki_dtypes import bool_, uint32
from nkigen_lite.passes.expression import Expr, choose, result
from nkigen_lite.passes.integers import add, bits_of, multiply, squared, wrapped
from nkigen_lite.passes.rule import Match

_SQUARINGS = 14
"""x^(2¹⁴) is 1 + 2¹⁶ s modulo 2³² for odd x, and 0 for even x."""


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
    """xʸ = x^(y mod 2¹⁴) · (x^(2¹⁴))ᶻ for z = y div 2¹⁴: the first by squaring, the second, modulo
    2³², is 1 + 2¹⁶ s z for odd x, and 0ᶻ for even x."""
    x, y = bits_of(Expr(m, m["x"])), bits_of(Expr(m, m["y"]))
    one, zero = (Expr(m, m.fill(n, uint32)) for n in (1, 0))
    is_odd = (x & 1).to(bool_)
    found = choose((y & 1).to(bool_), x, one)
    for place in range(1, _SQUARINGS):
        x = squared(x)
        found = choose((y & (1 << place)) != 0, multiply(found, x), found)
    high = y.call("right_shift", _SQUARINGS)
    rest = squared(x).call("right_shift", 16).call("exact_multiply", high & 0xFFFF)
    of_odd = add(one, rest.call("left_shift", 16))
    factor = choose(is_odd, of_odd, choose(high == 0, one, zero))
    return result(m, wrapped(multiply(found, factor), m.dtype))


def of_two(m: Match) -> str:
    """2ʸ."""
    return m.shaped(m.emit("left_shift", m.fill(1, m.dtype), m["y"]))
