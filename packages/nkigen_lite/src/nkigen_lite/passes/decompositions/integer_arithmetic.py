"""Integer arithmetic: in float32 up to 2²⁴, beyond that in the 32-bit integers of GpSimdE.

No document says what GpSimdE makes of a result beyond 32 bits: none is asked of it. Sums and
products wrap as NumPy's do. Bits are moved as uint32, whose right shift is the engines'.
"""

from __future__ import annotations

from collections.abc import Callable

from nki_dtypes import DType, bool_, float32, int32, uint32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.passes.rewriting import Match, RewriteRule, has_wide_integers, is_integer, of

_HALF = 0xFFFF
_TOP, _BELOW_TOP = 1 << 31, (1 << 31) - 1


def bits_of(x: Expr) -> Expr:
    """As uint32, signs extended."""
    wide = x if x.dtype.bits == 32 else x.to(int32)
    return wide.bits(uint32)


def wrapped(bits: Expr, dtype: DType) -> Expr:
    """The low bits of a 32-bit integer as an integer type."""
    return bits.bits(dtype) if dtype.bits == 32 else bits.call("low_bits", dtype=dtype)


def _halves(x: Expr) -> tuple[Expr, Expr]:
    """High and low 16 bits."""
    return x.call("right_shift", 16), x & _HALF


def add(a: Expr, b: Expr) -> Expr:
    """Without the top bits no sum has more than 32 bits; theirs is that of three bits."""
    low = (a & _BELOW_TOP).call("exact_add", b & _BELOW_TOP)
    return low.call("bitwise_xor", a.call("bitwise_xor", b) & _TOP)


def subtract(a: Expr, b: Expr) -> Expr:
    """With a's top bit and without b's no difference is negative."""
    low = (a | _TOP).call("exact_subtract", b & _BELOW_TOP)
    return low.call("bitwise_xor", a.call("bitwise_xor", b).call("bitwise_xor", _TOP) & _TOP)


def multiply(a: Expr, b: Expr) -> Expr:
    """Products of halves have 32 bits; of the two that cross only the low half counts."""
    if a.number is not None:
        a, b = b, a
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    cross = ah.call("exact_multiply", bl) & _HALF
    if b.number is None or b.number > _HALF:
        cross = cross.call("exact_add", al.call("exact_multiply", bh) & _HALF)
    return raised(al.call("exact_multiply", bl), cross)


def squared(x: Expr) -> Expr:
    """The two products that cross are one, twice."""
    high, low = _halves(x)
    cross = (high.call("exact_multiply", low) & (_HALF >> 1)).call("left_shift", 1)
    return raised(low.call("exact_multiply", low), cross)


def raised(bits: Expr, high: Expr) -> Expr:
    """bits + high · 2¹⁶ for a `high` of 17 bits: the low half stays."""
    above = bits.call("right_shift", 16).call("exact_add", high)
    return above.call("left_shift", 16) | (bits & _HALF)


_IN_FLOAT32: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": Expr.__add__, "subtract": Expr.__sub__, "multiply": Expr.__mul__,
}  # fmt: skip
_IN_PIECES = {"add": add, "subtract": subtract, "multiply": multiply}


def arithmetic(op: str) -> Callable[[Match], str]:
    """x op y modulo the type's range; in one piece where float32 holds every result."""

    def replacement(m: Match) -> str:
        a, b = m.expr("a"), m.expr("b")
        if m.dtype.bits == 32:
            return m.result(wrapped(_IN_PIECES[op](bits_of(a), bits_of(b)), m.dtype))
        if m.dtype.bits == 16 and op == "multiply":
            wide = int32 if m.dtype.min < 0 else uint32
            product = a.to(wide).call("exact_multiply", b.to(wide))
            return m.result(wrapped(product, m.dtype))
        number = _IN_FLOAT32[op](a.to(float32), b.to(float32))
        return m.result(wrapped(number.to(int32), m.dtype))

    return replacement


def negative(m: Match) -> str:
    """0 - x."""
    return m.shaped(m.emit("subtract", m.fill(0, m.dtype), m["x"]))


def magnitude(x: Expr) -> Expr:
    """x or 0 - x; the least number stays, as in NumPy."""
    if x.dtype.min == 0:
        return x
    if x.dtype.bits < 32:
        return wrapped(x.to(float32).call("abs").to(int32), x.dtype)
    zero = Expr(x.match, x.match.fill(0, uint32))
    return choose(x < 0, wrapped(subtract(zero, bits_of(x)), x.dtype), x)


def absolute(m: Match) -> str:
    """|x|."""
    return m.shaped(magnitude(m.expr("x")).value)


def square(m: Match) -> str:
    """x · x."""
    return m.emit("multiply", m["x"], m["x"])


def sign(m: Match) -> str:
    """float32 keeps the sign of every integer."""
    return m.result(m.expr("x").to(float32).call("sign"))


def right_shift(m: Match) -> str:
    """The engines shift zeros in: below zero ones are put in their place."""
    x, count = m.expr("a"), m.expr("b")
    places = bits_of(count)
    ones = m.constant(0xFFFFFFFF, uint32)
    filled = ones.call("bitwise_xor", ones.call("right_shift", places))
    shifted = bits_of(x).call("right_shift", places)
    return m.result(wrapped(choose(x < 0, shifted | filled, shifted), m.dtype))


def is_signed(m: Match) -> bool:
    """Whether the result is a signed integer."""
    return m.dtype.is_integer and m.dtype.min < 0


# ------------------------------------------------------------------- reductions


def _ordered(x: Expr) -> Expr:
    """Bits whose unsigned order is that of the numbers, and back."""
    bits = bits_of(x)
    return bits.call("bitwise_xor", _TOP) if x.dtype.min < 0 else bits


def extreme(op: str) -> Callable[[Match], str]:
    """The extreme of the high halves, then of the low halves beside it."""

    def replacement(m: Match) -> str:
        x = m.expr("x")
        high, low = (half.to(float32) for half in _halves(_ordered(x)))
        top = high.call(op, **m.root.attrs)
        never = -1.0 if op == "max" else _HALF + 1.0
        rest = choose(high == top, low, never).call(op, **m.root.attrs)
        bits = top.to(uint32).call("left_shift", 16) | rest.to(uint32)
        ordered = bits.call("bitwise_xor", _TOP) if m.dtype.min < 0 else bits
        return m.result(wrapped(ordered, m.dtype))

    return replacement


# ----------------------------------------------------------------------- powers
# Exponents count as NumPy's: none is negative.

_SQUARINGS = 6
"""x^(2⁶) is 1 + 2⁸ s for odd x, and 0 modulo 2³² for even x."""
_THIRD = 171
"""1 / 3 modulo 2⁸."""


def _is_narrow(m: Match) -> bool:
    """Whether powers of integers of up to 16 bits are asked for."""
    return m.dtype.is_integer and m.dtype.bits <= 16


def _is_wide_power(m: Match) -> bool:
    """Whether powers of 32-bit integers are asked for."""
    return m.dtype.is_integer and m.dtype.bits == 32


def narrow_power(m: Match) -> str:
    """x squared again and again, multiplied where y has the bit."""
    x, y = m.expr("x"), m.expr("y")
    found = m.constant(1, m.dtype)
    for place in range(m.dtype.bits - (m.dtype.min < 0)):
        has = (y & (1 << place)) != 0
        found = choose(has, found * x, found)
        x = x * x
    return m.result(found)


def wide_power(m: Match) -> str:
    """xʸ = x^(y mod 2⁶) · (x^(2⁶))ᶻ for z = y div 2⁶: the first by squaring, the second, modulo
    2³², a sum of four terms for odd x, and 0ᶻ for even x."""
    x, y = bits_of(m.expr("x")), bits_of(m.expr("y"))
    one, zero = (m.constant(n, uint32) for n in (1, 0))
    is_odd = (x & 1).to(bool_)
    found = choose((y & 1).to(bool_), x, one)
    for place in range(1, _SQUARINGS):
        x = squared(x)
        found = choose((y & (1 << place)) != 0, multiply(found, x), found)
    high = y.call("right_shift", _SQUARINGS)
    of_odd = _by_binomials(squared(x).call("right_shift", 8), high)
    factor = choose(is_odd, of_odd, choose(high == 0, one, zero))
    return m.result(wrapped(multiply(found, factor), m.dtype))


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


def power_of_two(m: Match) -> str:
    """2ʸ."""
    return m.shaped(m.emit("left_shift", m.fill(1, m.dtype), m["y"]))


RULES = (
    *(
        RewriteRule(f"integer_{op}", of(op, "a", "b"), arithmetic(op), is_integer)
        for op in ("add", "subtract", "multiply")
    ),
    *(
        RewriteRule(f"wide_{op}", of(op, "x"), extreme(op), has_wide_integers)
        for op in ("max", "min")
    ),
    RewriteRule("integer_negative", of("negative", "x"), negative, is_integer),
    RewriteRule("integer_abs", of("abs", "x"), absolute, is_integer),
    RewriteRule("integer_square", of("square", "x"), square, is_integer),
    RewriteRule("integer_sign", of("sign", "x"), sign, is_integer),
    RewriteRule("signed_right_shift", of("right_shift", "a", "b"), right_shift, is_signed),
    RewriteRule("power_of_two", of("power", 2, "y"), power_of_two, is_integer),
    RewriteRule("narrow_power", of("power", "x", "y"), narrow_power, _is_narrow),
    RewriteRule("wide_power", of("power", "x", "y"), wide_power, _is_wide_power),
)
