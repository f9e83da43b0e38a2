"""Sums, and running sums, products and extremes.

Float32 holds every integer up to 2²⁴: n numbers of b bits are added in one piece where n · 2ᵇ does
not exceed it. Wider integers are cut into pieces of so few bits, put together in 32-bit integers;
more of them are added in stretches, whose sums, integers again, are added in turn. For every count,
the result is NumPy's modulo the range. Scans are along last axes in float32, of rows of a length
that fits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod

from nki_dtypes import bool_, float32, int32, uint32
from nkigen_lite.ops import Expr
from nkigen_lite.passes.decompositions.integer_arithmetic import add, bits_of, wrapped
from nkigen_lite.passes.rewriting import Match, RewriteRule, is_integer, of

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
    count = _count(m)
    if not _is_in_one_piece(m, count):
        return _in_pieces(m, count)
    total = m.expr("x", float32).call("sum", **m.root.attrs).to(int32)
    return m.result(wrapped(total, m.dtype))


def _in_pieces(m: Match, count: int) -> str:
    """The operation on pieces of so few bits that float32 adds `count` of them exactly."""
    bits, width = bits_of(m.expr("x")), min(16, _EXACT_BITS - max(0, count - 1).bit_length())

    def of_piece(place: int) -> Expr:
        piece = (bits.call("right_shift", place) & ((1 << width) - 1)).to(float32)
        return piece.call(m.root.op, **m.root.attrs).to(uint32).call("left_shift", place)

    return m.result(wrapped(reduce(add, map(of_piece, range(0, m.dtype.bits, width))), m.dtype))


def _narrower(m: Match) -> str:
    """The operand before it was widened for the sum; else the operand."""
    node = m.build.by_name.get(m["x"])
    return node.operands[0] if node is not None and node.op == "convert" else m["x"]


def _bits_of_narrower(m: Match) -> int:
    """How many bits the summed numbers have, in the narrower type where it was widened."""
    dtype = m.spec(_narrower(m)).dtype
    return 1 if dtype is bool_ else dtype.bits


# -------------------------------------------------------------------- in stretches


def is_long_sum(m: Match) -> bool:
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
        return m.result(_cut(m, axes[-1], most, axes[:-1]))
    inner = m.expr("x").call("sum", axes=together, keepdims=True)
    return m.result(inner.call("sum", axes=axes[: -len(together)], keepdims=True))


def _cut(m: Match, axis: int, most: int, others: tuple[int, ...]) -> Expr:
    """An axis of N as (N / most, most), what is left of it added at the end."""
    x = Expr(m, _narrower(m))
    shape = x.shape
    count, rest = divmod(shape[axis], most)
    whole = x.part(axis, 0, count * most)
    lot = whole.call("reshape", shape=(*shape[:axis], count, most, *shape[axis + 1 :]))
    of_stretches = lot.to(m.dtype).call("sum", axes=(axis + 1,), keepdims=True)
    total = of_stretches.call("sum", axes=(*others, axis), keepdims=True)
    total = total.call("reshape", shape=m.root.spec.shape)
    if not rest:
        return total
    left = x.part(axis, count * most, rest).to(m.dtype)
    return total + left.call("sum", axes=(*others, axis), keepdims=True)


# -------------------------------------------------------------------------- scans

LONGEST = 4096
"""Elements of a row that is scanned at once; of longer ones each part starts where the one before
ended."""

_COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "cumsum": lambda a, b: a + b, "cumprod": lambda a, b: a * b,
    "cummax": lambda a, b: a.call("maximum", b), "cummin": lambda a, b: a.call("minimum", b),
}  # fmt: skip


def is_one(m: Match) -> bool:
    """Whether there is nothing to add up."""
    return m.root.spec.shape[m.root.attrs["axis"]] == 1


def is_inside(m: Match) -> bool:
    """Whether axes lie behind the scanned one."""
    return any(n != 1 for n in m.root.spec.shape[m.root.attrs["axis"] + 1 :])


def on_last_axis(m: Match) -> str:
    """Transposed, scanned, transposed back."""
    ndim, axis = len(m.root.spec.shape), m.root.attrs["axis"]
    order = (*(d for d in range(ndim) if d != axis), axis)
    back = tuple(sorted(range(ndim), key=order.__getitem__))
    transposed = m.expr("x").call("transpose", axes=order)
    return transposed.call(m.root.op, axis=ndim - 1).call("transpose", axes=back).value


def is_narrow_float(m: Match) -> bool:
    """Whether floats are rounded once, at the end."""
    return m.dtype.is_float and m.dtype is not float32


def in_float32(m: Match) -> str:
    """Each running result rounded once."""
    return m.result(m.expr("x").to(float32).call(m.root.op, **m.root.attrs))


def is_long(m: Match) -> bool:
    """Whether rows are longer than is scanned at once."""
    return m.dtype is float32 and m.root.spec.shape[m.root.attrs["axis"]] > LONGEST


def in_parts(m: Match) -> str:
    """Rows of LONGEST elements, to which the running result of their last ones is added."""
    x, axis, op = m.expr("x"), m.root.attrs["axis"], m.root.op
    shape, combine = x.shape, _COMBINE[op]
    count, rest = divmod(shape[axis], LONGEST)
    before, after = shape[:axis], shape[axis + 1 :]
    first = {"starts": [0] * len(shape), "sizes": (*before, count * LONGEST, *after)}
    lot = x.call("slice", **first, steps=[1] * len(shape))
    lot = lot.call("reshape", shape=(*before, count, LONGEST, *after))
    rows = lot.call(op, axis=axis + 1)
    if count > 1:
        ends = rows.part(axis + 1, LONGEST - 1, 1).call(op, axis=axis)
        later = combine(rows.part(axis, 1, count - 1), ends.part(axis, 0, count - 1))
        rows = rows.part(axis, 0, 1).call("concatenate", later, axis=axis)
    whole = rows.call("reshape", shape=(*before, count * LONGEST, *after))
    if rest:
        left = x.part(axis, count * LONGEST, rest).call(op, axis=axis)
        last = whole.part(axis, count * LONGEST - 1, 1)
        whole = whole.call("concatenate", combine(left, last), axis=axis)
    return whole.value


# ----------------------------------------------------------------------- integers


def is_sum_of_integers(m: Match) -> bool:
    """Whether running sums of pieces stay exact in float32."""
    return m.dtype.is_integer and m.root.spec.shape[m.root.attrs["axis"]] <= MOST_SUMMED


def of_pieces(m: Match) -> str:
    """The running sums of pieces that float32 adds exactly, put together modulo the range."""
    return _in_pieces(m, m.root.spec.shape[m.root.attrs["axis"]])


def by_doubling(m: Match) -> str:
    """Each element combined with the one 1, 2, 4, … places before it."""
    x, axis, combine = m.expr("x"), m.root.attrs["axis"], _COMBINE[m.root.op]
    n, step = x.shape[axis], 1
    while step < n:
        later = combine(x.part(axis, step, n - step), x.part(axis, 0, n - step))
        x = x.part(axis, 0, step).call("concatenate", later, axis=axis)
        step *= 2
    return m.result(x)


RULES = (
    RewriteRule("integer_sum", of("sum", "x"), summed, is_summable),
    RewriteRule("long_integer_sum", of("sum", "x"), in_stretches, is_long_sum),
    *(
        rule
        for op in _COMBINE
        for rule in (
            RewriteRule(f"{op}_of_one", of(op, "x"), lambda m: m["x"], is_one),
            RewriteRule(f"{op}_on_last_axis", of(op, "x"), on_last_axis, is_inside),
            RewriteRule(f"{op}_of_narrow", of(op, "x"), in_float32, is_narrow_float),
            RewriteRule(f"long_{op}", of(op, "x"), in_parts, is_long),
        )
    ),
    RewriteRule("integer_cumsum", of("cumsum", "x"), of_pieces, is_sum_of_integers),
    *(RewriteRule(f"integer_{op}", of(op, "x"), by_doubling, is_integer) for op in _COMBINE),
)
