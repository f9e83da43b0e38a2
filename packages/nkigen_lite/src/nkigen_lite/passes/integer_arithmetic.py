"""Integer arithmetic: in float32 up to 2²⁴, beyond that in the 32-bit integers of GpSimdE.

No document says what GpSimdE makes of a result beyond 32 bits: none is asked of it. Sums and
products wrap as NumPy's do. Bits are moved as uint32, whose right shift is the engines'.
"""

from __future__ import annotations

from collections.abc import Callable

from nki_dtypes import DType, float32, int32, uint32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.passes.expression import result
from nkigen_lite.passes.rewriting import Match, RewriteRule, of

_HALF = 0xFFFF
_TOP, _BELOW_TOP = 1 << 31, (1 << 31) - 1


def _operand(m: Match, name: str) -> Expr:
    return Expr(m, m[name])


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


def is_integer(m: Match) -> bool:
    """Whether the result is an integer (bool is none)."""
    return m.dtype.is_integer


def arithmetic(op: str) -> Callable[[Match], str]:
    """x op y modulo the type's range; in one piece where float32 holds every result."""

    def replacement(m: Match) -> str:
        a, b = _operand(m, "a"), _operand(m, "b")
        if m.dtype.bits == 32:
            return result(m, wrapped(_IN_PIECES[op](bits_of(a), bits_of(b)), m.dtype))
        if m.dtype.bits == 16 and op == "multiply":
            wide = int32 if m.dtype.min < 0 else uint32
            product = a.to(wide).call("exact_multiply", b.to(wide))
            return result(m, wrapped(product, m.dtype))
        number = _IN_FLOAT32[op](a.to(float32), b.to(float32))
        return result(m, wrapped(number.to(int32), m.dtype))

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
    return m.shaped(magnitude(_operand(m, "x")).value)


def square(m: Match) -> str:
    """x · x."""
    return m.emit("multiply", m["x"], m["x"])


def sign(m: Match) -> str:
    """float32 keeps the sign of every integer."""
    return result(m, _operand(m, "x").to(float32).call("sign"))


def right_shift(m: Match) -> str:
    """The engines shift zeros in: below zero ones are put in their place."""
    x, count = _operand(m, "a"), _operand(m, "b")
    places = bits_of(count)
    ones = Expr(m, m.fill(0xFFFFFFFF, uint32))
    filled = ones.call("bitwise_xor", ones.call("right_shift", places))
    shifted = bits_of(x).call("right_shift", places)
    return result(m, wrapped(choose(x < 0, shifted | filled, shifted), m.dtype))


def is_signed(m: Match) -> bool:
    """Whether the result is a signed integer."""
    return m.dtype.is_integer and m.dtype.min < 0


# ------------------------------------------------------------------- reductions


def _ordered(x: Expr) -> Expr:
    """Bits whose unsigned order is that of the numbers, and back."""
    bits = bits_of(x)
    return bits.call("bitwise_xor", _TOP) if x.dtype.min < 0 else bits


def is_wide(m: Match) -> bool:
    """Whether the operands are 32-bit integers."""
    dtype = m.spec(m.root.operands[0]).dtype
    return dtype.is_integer and dtype.bits == 32


def extreme(op: str) -> Callable[[Match], str]:
    """The extreme of the high halves, then of the low halves beside it."""

    def replacement(m: Match) -> str:
        x = _operand(m, "x")
        high, low = (half.to(float32) for half in _halves(_ordered(x)))
        top = high.call(op, **m.root.attrs)
        never = -1.0 if op == "max" else _HALF + 1.0
        rest = choose(high == top, low, never).call(op, **m.root.attrs)
        bits = top.to(uint32).call("left_shift", 16) | rest.to(uint32)
        ordered = bits.call("bitwise_xor", _TOP) if m.dtype.min < 0 else bits
        return result(m, wrapped(ordered, m.dtype))

    return replacement


RULES = (
    *(
        RewriteRule(f"integer_{op}", of(op, "a", "b"), arithmetic(op), is_integer)
        for op in ("add", "subtract", "multiply")
    ),
    *(RewriteRule(f"wide_{op}", of(op, "x"), extreme(op), is_wide) for op in ("max", "min")),
    RewriteRule("integer_negative", of("negative", "x"), negative, is_integer),
    RewriteRule("integer_abs", of("abs", "x"), absolute, is_integer),
    RewriteRule("integer_square", of("square", "x"), square, is_integer),
    RewriteRule("integer_sign", of("sign", "x"), sign, is_integer),
    RewriteRule("signed_right_shift", of("right_shift", "a", "b"), right_shift, is_signed),
)
