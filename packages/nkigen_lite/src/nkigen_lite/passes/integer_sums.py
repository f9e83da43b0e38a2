"""Sums of integers: of parts that float32 adds exactly, put together in 32-bit integers.

Float32 holds every integer up to 2²⁴: n numbers of b bits are added in one piece where n · 2ᵇ does
not exceed it. Wider ones are cut into pieces of so few bits; more of them are added in stretches,
whose sums, integers again, are added in turn. For every count, the result is NumPy's modulo the
range.
"""

from __future__ import annotations

from math import prod

from nki_dtypes import bool_, float32, int32, uint32
from nkigen_lite.ops import Expr
from nkigen_lite.passes.expression import result
from nkigen_lite.passes.integer_arithmetic import add, bits_of, wrapped
from nkigen_lite.passes.rewriting import Match, RewriteRule, of

_EXACT_BITS = 24
"""Of a float32."""
MOST_SUMMED = 1 << 16
"""Elements whose bytes add up to less than 2²⁴."""
_STRETCH = 1 << 12
"""Elements of a stretch of wide integers: three pieces of 12 bits."""
_NARROW_BITS = 16


def _count(m: Match) -> int:
    shape = m.spec(m["x"]).shape
    return prod(shape[a] for a in m.root.attrs["axes"])


def _is_in_one_piece(m: Match, count: int) -> bool:
    return _bits_of_narrower(m) + max(0, count - 1).bit_length() <= _EXACT_BITS


def is_summable(m: Match) -> bool:
    """Whether the sums of the numbers, or of their bytes, stay exact."""
    count = _count(m)
    return m.dtype.is_integer and (count <= MOST_SUMMED or _is_in_one_piece(m, count))


def summed(m: Match) -> str:
    """The sums of pieces that float32 adds exactly, put together modulo the range."""
    x, spare = Expr(m, m["x"]), max(0, _count(m) - 1).bit_length()
    if _is_in_one_piece(m, _count(m)):
        total = x.to(float32).call("sum", **m.root.attrs).to(int32)
        return result(m, wrapped(total, m.dtype))
    bits, width = bits_of(x), min(16, _EXACT_BITS - spare)
    found: Expr | None = None
    for place in range(0, m.dtype.bits, width):
        piece = (bits.call("right_shift", place) & ((1 << width) - 1)).to(float32)
        part = piece.call("sum", **m.root.attrs).to(uint32).call("left_shift", place)
        found = part if found is None else add(found, part)
    assert found is not None
    return result(m, wrapped(found, m.dtype))


def _narrower(m: Match) -> str:
    """What was widened for the sum; else what is summed."""
    node = m.build.by_name.get(m["x"])
    return node.operands[0] if node is not None and node.op == "convert" else m["x"]


def _bits_of_narrower(m: Match) -> int:
    """How many bits the summed numbers have, in the narrower type where it was widened."""
    dtype = m.spec(_narrower(m)).dtype
    return 1 if dtype is bool_ else dtype.bits


# -------------------------------------------------------------------- in stretches


def is_long(m: Match) -> bool:
    """Whether there are more integers than one sum adds exactly."""
    return m.dtype.is_integer and not is_summable(m)


def in_stretches(m: Match) -> str:
    """The last axes first, as many as one sum takes; an axis that is longer is cut."""
    shape, axes = m.spec(m["x"]).shape, m.root.attrs["axes"]
    bits = _bits_of_narrower(m)
    most = 1 << (_EXACT_BITS - bits) if bits <= _NARROW_BITS else _STRETCH
    together: tuple[int, ...] = ()
    for axis in reversed(axes):
        if prod(shape[a] for a in (axis, *together)) > most:
            break
        together = (axis, *together)
    if not together:
        return result(m, _cut(m, axes[-1], most, axes[:-1]))
    inner = Expr(m, m["x"]).call("sum", axes=together, keepdims=True)
    return result(m, inner.call("sum", axes=axes[: -len(together)], keepdims=True))


def _cut(m: Match, axis: int, most: int, others: tuple[int, ...]) -> Expr:
    """An axis of N as (N / most, most), what is left of it added at the end."""
    x = Expr(m, _narrower(m))
    shape = m.spec(x.value).shape
    count, rest = divmod(shape[axis], most)
    whole = _part(x, axis, 0, count * most)
    lot = whole.call("reshape", shape=(*shape[:axis], count, most, *shape[axis + 1 :]))
    of_stretches = lot.to(m.dtype).call("sum", axes=(axis + 1,), keepdims=True)
    total = of_stretches.call("sum", axes=(*others, axis), keepdims=True)
    total = total.call("reshape", shape=m.root.spec.shape)
    if not rest:
        return total
    left = _part(x, axis, count * most, rest).to(m.dtype)
    return total + left.call("sum", axes=(*others, axis), keepdims=True)


def _part(x: Expr, axis: int, start: int, count: int) -> Expr:
    """`count` elements along an axis."""
    shape = list(x.match.spec(x.value).shape)
    if shape[axis] == count:
        return x
    starts = [0] * len(shape)
    starts[axis], shape[axis] = start, count
    return x.call("slice", starts=starts, sizes=shape, steps=[1] * len(shape))


RULES = (
    RewriteRule("integer_sum", of("sum", "x"), summed, is_summable),
    RewriteRule("long_integer_sum", of("sum", "x"), in_stretches, is_long),
)
