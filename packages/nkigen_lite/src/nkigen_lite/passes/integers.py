"""Integer arithmetic on engines that compute in float32: exact up to 2²⁴, so in pieces beyond.

Sums and products wrap as NumPy's do. Bits are moved as uint32, whose right shift is the engines'.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from nki_dtypes import DType, float32, int32, uint32
from nkigen_lite.passes.expression import Expr, choose, result
from nkigen_lite.passes.rule import Match

_HALF = 0xFFFF
MOST_SUMMED = 1 << 16
"""Elements whose bytes add up to less than 2²⁴."""


def _operand(m: Match, name: str) -> Expr:
    return Expr(m, m[name])


def _bits(x: Expr) -> Expr:
    """As uint32, signs extended."""
    wide = x if x.dtype.bits == 32 else x.to(int32)
    return wide.bits(uint32)


def wrapped(bits: Expr, dtype: DType) -> Expr:
    """The low bits of a uint32 as an integer type."""
    if dtype.bits == 32:
        return bits.bits(dtype)
    low = bits & ((1 << dtype.bits) - 1)
    if dtype.min == 0:
        return low.to(dtype)
    sign = (low & (1 << (dtype.bits - 1))).to(float32)
    return (low.to(float32) - sign * 2.0).to(dtype)


def _halves(x: Expr) -> tuple[Expr, Expr]:
    """High and low 16 bits as float32."""
    return x.call("right_shift", 16).to(float32), (x & _HALF).to(float32)


def _joined(high: Expr, low: Expr) -> Expr:
    """high · 2¹⁶ + low modulo 2³², of whole float32 numbers from 0 to 2²⁴."""
    low_bits = low.to(uint32)
    carried = (high + low_bits.call("right_shift", 16).to(float32)).to(uint32)
    return (carried & _HALF).call("left_shift", 16) | (low_bits & _HALF)


def _add(a: Expr, b: Expr) -> Expr:
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return _joined(ah + bh, al + bl)


def _subtract(a: Expr, b: Expr) -> Expr:
    """a + 2³² - b, each half kept positive by what it borrows."""
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return _joined((ah - bh) + float(_HALF), (al - bl) + float(_HALF + 1))


def _times_half(x: Expr, half: Expr) -> Expr:
    """Two whole numbers below 2¹⁶, modulo 2³²: by the bytes of the second, each product exact."""
    bits = half.to(uint32)
    high = (x * bits.call("right_shift", 8).to(float32)).to(uint32).call("left_shift", 8)
    low = (x * (bits & 0xFF).to(float32)).to(uint32)
    return _add(high, low)


def _multiply(a: Expr, b: Expr) -> Expr:
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    cross = _add(_times_half(ah, bl), _times_half(al, bh)).call("left_shift", 16)
    return _add(_times_half(al, bl), cross)


_IN_FLOAT32: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": Expr.__add__, "subtract": Expr.__sub__, "multiply": Expr.__mul__,
}  # fmt: skip
_IN_PIECES = {"add": _add, "subtract": _subtract, "multiply": _multiply}


def is_integer(m: Match) -> bool:
    """Whether the result is an integer (bool is none)."""
    return m.dtype.is_integer


def is_wide(m: Match) -> bool:
    """Whether the operands are 32-bit integers."""
    dtype = m.spec(m.root.operands[0]).dtype
    return dtype.is_integer and dtype.bits == 32


def arithmetic(op: str) -> Callable[[Match], str]:
    """x op y modulo the type's range; in one piece where float32 holds every result."""

    def replacement(m: Match) -> str:
        a, b = _operand(m, "a"), _operand(m, "b")
        fits = 2 * m.dtype.bits <= 16 or (m.dtype.bits <= 16 and op != "multiply")
        if not fits:
            return result(m, wrapped(_IN_PIECES[op](_bits(a), _bits(b)), m.dtype))
        number = _IN_FLOAT32[op](a.to(float32), b.to(float32))
        return result(m, wrapped(number.to(int32).bits(uint32), m.dtype))

    return replacement


def negative(m: Match) -> str:
    """0 - x."""
    return m.shaped(m.emit("subtract", m.fill(0, m.dtype), m["x"]))


def absolute(m: Match) -> str:
    """x or 0 - x; the least number stays, as in NumPy."""
    x = _operand(m, "x")
    if m.dtype.min == 0:
        return m["x"]
    return result(m, choose(x.to(float32) < 0.0, Expr(m, negative(m)), x))


def square(m: Match) -> str:
    """x · x."""
    return m.emit("multiply", m["x"], m["x"])


def sign(m: Match) -> str:
    """float32 keeps the sign of every integer."""
    return result(m, _operand(m, "x").to(float32).call("sign"))


def right_shift(m: Match) -> str:
    """The engines shift zeros in: below zero ones are put in their place."""
    x, count = _operand(m, "a"), _operand(m, "b")
    places = _bits(count)
    ones = Expr(m, m.fill(0xFFFFFFFF, uint32))
    filled = ones.call("bitwise_xor", ones.call("right_shift", places))
    shifted = _bits(x).call("right_shift", places)
    return result(m, wrapped(choose(x.to(float32) < 0.0, shifted | filled, shifted), m.dtype))


def is_signed(m: Match) -> bool:
    """Whether the result is a signed integer."""
    return m.dtype.is_integer and m.dtype.min < 0


# ------------------------------------------------------------------ comparisons


def _ordered(x: Expr) -> Expr:
    """Bits whose unsigned order is that of the numbers."""
    bits = _bits(x)
    return bits.call("bitwise_xor", 1 << 31) if x.dtype.min < 0 else bits


def _less(a: Expr, b: Expr) -> Expr:
    (ah, al), (bh, bl) = _halves(_ordered(a)), _halves(_ordered(b))
    return (ah < bh) | ((ah == bh) & (al < bl))


def _equal(a: Expr, b: Expr) -> Expr:
    return _bits(a).call("bitwise_xor", _bits(b)).to(float32) == 0.0


COMPARISONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "equal": _equal,
    "not_equal": lambda a, b: ~_equal(a, b),
    "less": _less,
    "less_equal": lambda a, b: ~_less(b, a),
    "greater": lambda a, b: _less(b, a),
    "greater_equal": lambda a, b: ~_less(a, b),
}
"""Of 32-bit integers, which float32 does not tell apart."""


def comparison(op: str) -> Callable[[Match], str]:
    """x op y."""
    return lambda m: m.shaped(COMPARISONS[op](_operand(m, "a"), _operand(m, "b")).value)


def extreme(op: str) -> Callable[[Match], str]:
    """The larger or the smaller."""

    def replacement(m: Match) -> str:
        a, b = _operand(m, "a"), _operand(m, "b")
        chosen = (b, a) if op == "maximum" else (a, b)
        return result(m, choose(_less(a, b), *chosen))

    return replacement


# ------------------------------------------------------------------------- sums


def is_summable(m: Match) -> bool:
    """Whether the sums of bytes stay exact."""
    shape = m.spec(m["x"]).shape
    return m.dtype.is_integer and prod(shape[a] for a in m.root.attrs["axes"]) <= MOST_SUMMED


def summed(m: Match) -> str:
    """The sums of each byte, put together modulo the range."""
    bits = _bits(_operand(m, "x"))
    total: Expr | None = None
    for place in range(0, m.dtype.bits, 8):
        byte = (bits.call("right_shift", place) & 0xFF).to(float32)
        part = byte.call("sum", **m.root.attrs).to(uint32).call("left_shift", place)
        total = part if total is None else _add(total, part)
    assert total is not None
    return result(m, wrapped(total, m.dtype))
