"""Running sums, products and extremes: along last axes in float32, rows of a length that fits."""

from __future__ import annotations

from collections.abc import Callable

from nki_dtypes import float32, uint32
from nkigen_lite.ops import Expr
from nkigen_lite.passes.expression import result
from nkigen_lite.passes.integer_arithmetic import add, bits_of, wrapped
from nkigen_lite.passes.rewriting import Match, RewriteRule, of

LONGEST = 4096
"""Elements of a row that is scanned at once; of longer ones each part starts where the one before
ended."""
_MOST_SUMMED = 1 << 16
_EXACT_BITS = 24

_COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "cumsum": lambda a, b: a + b, "cumprod": lambda a, b: a * b,
    "cummax": lambda a, b: a.call("maximum", b), "cummin": lambda a, b: a.call("minimum", b),
}  # fmt: skip


def _shape(x: Expr) -> tuple[int, ...]:
    return x.match.spec(x.value).shape


def _part(x: Expr, axis: int, start: int, count: int) -> Expr:
    shape = list(_shape(x))
    starts = [0] * len(shape)
    starts[axis], shape[axis] = start, count
    return x.call("slice", starts=starts, sizes=shape, steps=[1] * len(shape))


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
    transposed = Expr(m, m["x"]).call("transpose", axes=order)
    return transposed.call(m.root.op, axis=ndim - 1).call("transpose", axes=back).value


def is_narrow_float(m: Match) -> bool:
    """Whether floats are rounded once, at the end."""
    return m.dtype.is_float and m.dtype is not float32


def in_float32(m: Match) -> str:
    """Each running result rounded once."""
    return result(m, Expr(m, m["x"]).to(float32).call(m.root.op, **m.root.attrs))


def is_long(m: Match) -> bool:
    """Whether rows are longer than is scanned at once."""
    return m.dtype is float32 and m.root.spec.shape[m.root.attrs["axis"]] > LONGEST


def in_parts(m: Match) -> str:
    """Rows of LONGEST elements, to which the running result of their last ones is added."""
    x, axis, op = Expr(m, m["x"]), m.root.attrs["axis"], m.root.op
    shape, combine = _shape(x), _COMBINE[op]
    count, rest = divmod(shape[axis], LONGEST)
    lot = _part(x, axis, 0, count * LONGEST).call(
        "reshape", shape=(*shape[:axis], count, LONGEST, *shape[axis + 1 :])
    )
    rows = lot.call(op, axis=axis + 1)
    if count > 1:
        ends = _part(rows, axis + 1, LONGEST - 1, 1).call(op, axis=axis)
        later = combine(_part(rows, axis, 1, count - 1), _part(ends, axis, 0, count - 1))
        rows = _part(rows, axis, 0, 1).call("concatenate", later, axis=axis)
    whole = rows.call("reshape", shape=(*shape[:axis], count * LONGEST, *shape[axis + 1 :]))
    if rest:
        left = _part(x, axis, count * LONGEST, rest).call(op, axis=axis)
        last = _part(whole, axis, count * LONGEST - 1, 1)
        whole = whole.call("concatenate", combine(left, last), axis=axis)
    return whole.value


# ----------------------------------------------------------------------- integers


def is_sum_of_integers(m: Match) -> bool:
    """Whether running sums of pieces stay exact in float32."""
    return m.dtype.is_integer and m.root.spec.shape[m.root.attrs["axis"]] <= _MOST_SUMMED


def of_pieces(m: Match) -> str:
    """The running sums of pieces that float32 adds exactly, put together modulo the range."""
    x, attrs = Expr(m, m["x"]), m.root.attrs
    spare = max(0, m.root.spec.shape[attrs["axis"]] - 1).bit_length()
    bits, width = bits_of(x), min(16, _EXACT_BITS - spare)
    found: Expr | None = None
    for place in range(0, m.dtype.bits, width):
        piece = (bits.call("right_shift", place) & ((1 << width) - 1)).to(float32)
        part = piece.call("cumsum", **attrs).to(uint32).call("left_shift", place)
        found = part if found is None else add(found, part)
    assert found is not None
    return result(m, wrapped(found, m.dtype))


def is_of_integers(m: Match) -> bool:
    """Whether integers are combined."""
    return m.dtype.is_integer


def by_doubling(m: Match) -> str:
    """Each element combined with the one 1, 2, 4, … places before it."""
    x, axis, combine = Expr(m, m["x"]), m.root.attrs["axis"], _COMBINE[m.root.op]
    n, step = _shape(x)[axis], 1
    while step < n:
        later = combine(_part(x, axis, step, n - step), _part(x, axis, 0, n - step))
        x = _part(x, axis, 0, step).call("concatenate", later, axis=axis)
        step *= 2
    return result(m, x)


RULES = (
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
    *(RewriteRule(f"integer_{op}", of(op, "x"), by_doubling, is_of_integers) for op in _COMBINE),
)
