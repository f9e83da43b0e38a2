"""Arrays like others, put together, taken apart, repeated, rolled and padded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.copies import flattened, strides_like
from nkigen_lite.frontend.arrays.promotion import (
    as_value,
    asked_dtype,
    check_casting,
    common_dtype,
    constant_value,
    fresh,
    operand,
    shape_of,
    tape_of,
)
from nkigen_lite.frontend.arrays.registry import Function, implements
from nkigen_lite.frontend.arrays.views import as_shape, axis_of
from nkigen_lite.frontend.functions.shapes import with_axes
from nkigen_lite.frontend.indexing.gather import part_of, taken
from nkigen_lite.tensors.errors import (
    ArgumentError,
    BroadcastError,
    DataDependentError,
    UnsupportedKeywordError,
    ValueRangeError,
)


@implements("full_like")
def full_like(
    a: TracedArray, fill_value: Any, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    """`np.full_like` and its kin; np.empty_like gives zeros."""
    makes = a.dtype if dtype is None else asked_dtype(dtype)[0]
    new = a.shape if shape is None else as_shape(shape)
    given = operand(fill_value)
    value = as_value(a.tape, given, makes, "where") if isinstance(given, TracedArray) else (
        constant_value(a.tape, given, makes, "np.full_like")
    )  # fmt: skip
    if a.tape.spec(value).shape != new:
        value = a.tape.emit("broadcast_to", value, shape=new)
    made = fresh(a.tape, value, makes, scalar=False)
    made.element_strides = strides_like(a, order, new)
    return made


@implements("empty_like")
def _empty_like(
    prototype: TracedArray, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    return full_like(prototype, 0, dtype, order, shape)


implements("zeros_like")(partial(full_like, fill_value=0))
implements("ones_like")(partial(full_like, fill_value=1))


@implements("concatenate")
def concatenate(
    arrays: Sequence[Any], axis: Any = 0, dtype: Any = None, casting: Any = "same_kind"
) -> TracedArray:
    """`np.concatenate`."""
    tape = tape_of(*arrays)
    given = [operand(a) for a in arrays]
    if axis is None:
        given = [flattened(a) if isinstance(a, TracedArray) else np.ravel(a) for a in given]
        axis = 0
    ndim = len(shape_of(given[0]))
    if ndim == 0:
        raise ValueRangeError("zero-dimensional arrays cannot be concatenated")
    axis = axis_of(axis, ndim)
    _check_lengths([*map(shape_of, given)], axis)
    makes = common_dtype("np.concatenate", given) if dtype is None else asked_dtype(dtype)[0]
    for a in given:
        check_casting("np.concatenate", a, makes, casting)
    values = [as_value(tape, a, makes, "concatenate") for a in given]
    value = values[0] if len(values) == 1 else tape.emit("concatenate", *values, axis=axis)
    return fresh(tape, value, makes, tuple(given), scalar=False)


def _check_lengths(shapes: list[tuple[int, ...]], axis: int) -> None:
    if len({(len(s), s[:axis], s[axis + 1 :]) for s in shapes}) > 1:
        raise BroadcastError(
            "all the input array dimensions except for the concatenation axis must match exactly",
            expected=f"equal lengths of all axes but axis {axis}",
            got=", ".join(map(str, shapes)),
            hint="np.broadcast_to or np.pad before, or another axis=",
        )


@implements("stack")
def stack(
    arrays: Sequence[Any], axis: Any = 0, dtype: Any = None, casting: Any = "same_kind"
) -> TracedArray:
    """`np.stack`."""
    given = [operand(a) for a in arrays]
    shapes = {shape_of(a) for a in given}
    if len(shapes) > 1:
        raise ValueRangeError(
            "all input arrays must have the same shape", expected="one shape",
            got=str(sorted(shapes)), hint="np.broadcast_to or np.pad before; np.concatenate joins "
            "different lengths of one axis",
        )  # fmt: skip
    shape = shapes.pop()
    axis = axis_of(axis, len(shape) + 1)
    new = (*shape[:axis], 1, *shape[axis:])
    return concatenate([np.reshape(a, new) for a in given], axis, dtype, casting)


@implements("split")
def split(ary: TracedArray, indices_or_sections: Any, axis: Any = 0) -> list[TracedArray]:
    """`np.split`: views; a number of parts must divide the axis."""
    along = axis_of(axis, ary.ndim)
    n = ary.shape[along]
    if hasattr(indices_or_sections, "__index__"):
        parts = indices_or_sections.__index__()
        if parts <= 0 or n % parts:
            raise ValueRangeError(
                "array split does not result in an equal division",
                expected=f"a number that divides {n}",
                got=f"{n} / {parts}",
                hint="np.array_split makes parts of unequal length",
            )
        cuts = list(range(n // parts, n, n // parts)) if n else [0] * (parts - 1)
    else:
        cuts = [int(i) for i in indices_or_sections]
    bounds = zip([0, *cuts], [*cuts, n], strict=True)
    before = (slice(None),) * along
    return [ary[(*before, slice(a, b))] for a, b in bounds]


@implements("vstack")
def _vstack(tup: Sequence[Any], dtype: Any = None, casting: Any = "same_kind") -> Any:
    return concatenate([with_axes(x, 2) for x in tup], 0, dtype, casting)


@implements("hstack")
def _hstack(tup: Sequence[Any], dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [with_axes(x, 1) for x in tup]
    along = 0 if len(shape_of(parts[0])) == 1 else 1
    return concatenate(parts, along, dtype, casting)


@implements("dstack")
def _dstack(tup: Sequence[Any]) -> Any:
    return concatenate([with_axes(x, 3) for x in tup], 2)


@implements("column_stack")
def _column_stack(tup: Sequence[Any]) -> Any:
    columns = [x if len(shape_of(operand(x))) > 1 else np.reshape(x, (-1, 1)) for x in tup]
    return concatenate(columns, 1)


@implements("append")
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([arr, values], axis)


@implements("array_split")
def _array_split(ary: Array, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """The first parts are one longer where the number of parts does not divide the axis."""
    if not hasattr(indices_or_sections, "__index__"):
        return split(ary, indices_or_sections, axis)
    parts = indices_or_sections.__index__()
    if parts <= 0:
        raise ValueRangeError("number sections must be larger than 0.")
    each, more = divmod(ary.shape[axis_of(axis, ary.ndim)], parts)
    return split(ary, [i * each + min(i, more) for i in range(1, parts)], axis)


def _split_along(axis: int) -> Function:
    def split_(ary: Array, indices_or_sections: Any) -> list[Any]:
        return split(ary, indices_or_sections, 0 if ary.ndim == 1 and axis == 1 else axis)

    return split_


@implements("unstack")
def _unstack(x: Array, axis: Any = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(x, axis, 0))


implements("vsplit")(_split_along(0))
implements("hsplit")(_split_along(1))
implements("dsplit")(_split_along(2))


# ------------------------------------------------------------- repeated, rolled, padded


@implements("repeat")
def _repeat(a: Array, repeats: Any, axis: Any = None) -> Array:
    if axis is None:
        a, axis = a.flatten(), 0
    axis = axis_of(axis, a.ndim)
    if isinstance(repeats, TracedArray):
        raise DataDependentError("the shape of np.repeat depends on the values of repeats")
    n, counts = a.shape[axis], np.asarray(repeats).ravel()
    if (counts < 0).any():
        raise ValueRangeError("repeats may not contain negative values.")
    if counts.size == 1:
        wide = np.expand_dims(a, axis + 1)
        lot = (*a.shape[: axis + 1], int(counts[0]), *a.shape[axis + 1 :])
        new = (*a.shape[:axis], n * int(counts[0]), *a.shape[axis + 1 :])
        return np.reshape(np.broadcast_to(wide, lot), new, copy=True)
    if counts.size != n:
        raise BroadcastError("np.repeat: repeats do not fit the axis", got=f"{counts.size} of {n}")
    return taken(a, np.repeat(np.arange(n), counts), axis)


@implements("tile")
def _tile(A: Array, reps: Any) -> Array:  # noqa: N803
    times = as_shape(reps)
    ndim = max(A.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - A.ndim) + A.shape
    lines = np.reshape(A, tuple(m for n in shape for m in (1, n)))
    lots = tuple(m for pair in zip(times, shape, strict=True) for m in pair)
    whole = tuple(t * n for t, n in zip(times, shape, strict=True))
    return np.reshape(np.broadcast_to(lines, lots), whole, copy=True)


@implements("roll")
def _roll(a: Array, shift: Any, axis: Any = None) -> Array:
    if axis is None:
        return np.reshape(_roll(a.flatten(), shift, 0), a.shape)
    shifts: dict[int, int] = {}
    for by, along in np.broadcast(shift, axis):
        if not hasattr(by, "__index__"):
            raise ArgumentError(f"np.roll: {by!r} is not a shift", expected="an integer")
        known = axis_of(along, a.ndim)
        shifts[known] = shifts.get(known, 0) + int(by)
    return np.copy(_rolled(a, list(shifts.items())))


def _rolled(a: Array, shifts: list[tuple[int, int]]) -> Array:
    """Boxes of `a` concatenated, for any number of axes: each element is moved once."""
    if not shifts:
        return a
    (axis, by), *others = shifts
    n = a.shape[axis]
    cut = -by % n if n else 0
    ends = [(cut, n), (0, cut)] if cut else [(0, n)]
    parts = [_rolled(part_of(a, axis, *between), others) for between in ends]
    return concatenate(parts, axis) if len(parts) > 1 else parts[0]


# ---------------------------------------------------------------------- the border


@implements("pad")
def pad(array: Array, pad_width: Any, mode: Any = "constant", constant_values: Any = None) -> Array:
    """`np.pad`: constant, edge, reflect, symmetric, wrap; the last three less than once around."""
    if mode not in _BORDERS:
        raise UnsupportedKeywordError(
            f"np.pad: mode={mode!r} is not translated", expected=", ".join(_BORDERS), operand="mode"
        )
    if mode != "constant" and constant_values is not None:
        raise ValueRangeError(
            f"unsupported keyword arguments for mode {mode!r}: constant_values",
            operand="constant_values",
        )
    widths = _pairs(pad_width, array.ndim)
    values = _pairs(0 if constant_values is None else constant_values, array.ndim)
    if any(min(pair) < 0 for pair in widths):
        raise ValueRangeError("index can't contain negative values", operand="pad_width")
    if mode != "constant":
        return np.copy(_bordered(array, widths, mode))
    for axis, (pair, numbers) in enumerate(zip(widths, values, strict=True)):
        sides = [_line(array, axis, n, v) for n, v in zip(pair, numbers, strict=True)]
        array = _between(array, sides, axis)
    return np.copy(array)


def _bordered(a: Array, widths: list[tuple[Any, Any]], mode: str, axis: int = 0) -> Array:
    """Boxes of `a` concatenated, for any number of axes: each element is moved once."""
    if axis == a.ndim:
        return a
    sides = _border(a, axis, *widths[axis], mode)
    whole = [_bordered(p, widths, mode, axis + 1) if p.shape[axis] else p for p in (*sides, a)]
    return _between(whole[2], whole[:2], axis)


def _between(a: Array, sides: list[Array], axis: int) -> Array:
    parts = [p for p in (sides[0], a, sides[1]) if p.shape[axis]]
    return concatenate(parts, axis) if len(parts) > 1 else a


def _pairs(given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Pairs for each axis, as NumPy takes them: one number, (before, after), or one per axis."""
    if isinstance(given, dict):
        return [tuple(np.broadcast_to(given.get(d, given.get(d - ndim, 0)), 2).tolist())
                for d in range(ndim)]  # fmt: skip
    try:
        return [tuple(pair) for pair in np.broadcast_to(given, (ndim, 2)).tolist()]
    except ValueError as error:
        raise BroadcastError(f"np.pad: {error}") from None


def _line(a: Array, axis: int, n: int, value: Any) -> Array:
    return full_like(a, value, shape=(*a.shape[:axis], n, *a.shape[axis + 1 :]))


_BORDERS = {
    "constant": (0, 0), "edge": (0, 0), "reflect": (1, -1), "symmetric": (0, -1), "wrap": (0, 1),
}  # fmt: skip
"""mode → how many of the outermost elements do not repeat, and whether the rest is mirrored."""


def _border(a: Array, axis: int, before: int, after: int, mode: str) -> list[Array]:
    n = a.shape[axis]
    if mode == "edge":
        ends = ((0, before), (n - 1, after))
        return [
            np.broadcast_to(part_of(a, axis, i, i + 1), (*a.shape[:axis], m, *a.shape[axis + 1 :]))
            for i, m in ends
        ]
    skipped, way = _BORDERS[mode]
    if max(before, after) + skipped > n:
        raise UnsupportedKeywordError(
            f"np.pad: mode={mode!r} more than once around is not translated",
            expected=f"at most {n - skipped}", got=f"({before}, {after})", operand="pad_width",
        )  # fmt: skip
    if way == 1:
        return [part_of(a, axis, n - before, n), part_of(a, axis, 0, after)]
    left = part_of(a, axis, skipped, skipped + before)
    right = part_of(a, axis, n - skipped - after, n - skipped)
    return [np.flip(left, axis), np.flip(right, axis)]
