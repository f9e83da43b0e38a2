"""Arrays put side by side, repeated, padded, rolled: slices, reshapes and concatenations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nkigen_lite.errors import (
    ArgumentError,
    BroadcastError,
    DataDependentError,
    UnsupportedKeywordError,
    ValueRangeError,
)
from nkigen_lite.frontend import joining, views
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.gathering import part_of, take, taken
from nkigen_lite.frontend.promotion import operand, shape_of

Array = Any
"""A traced array: NumPy's stubs say that its functions give arrays of its own."""

Function = Any

# ------------------------------------------------------------------ more axes


def _with_axes(x: Any, least: int) -> Any:
    """NumPy's atleast_1d, 2d, 3d."""
    shape = shape_of(operand(x))
    if len(shape) >= least:
        return x
    new = {0: (1,) * least, 1: (1, *shape) if least == 2 else (1, *shape, 1)}.get(
        len(shape), (*shape, 1)
    )
    return np.reshape(x, new)


def _at_least(least: int) -> Function:
    def made(*arys: Any) -> Any:
        found = tuple(_with_axes(x, least) for x in arys)
        return found[0] if len(found) == 1 else found

    return made


def _broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    try:
        shape = np.broadcast_shapes(*(shape_of(operand(a)) for a in args))
    except ValueError as refused:
        raise BroadcastError(f"np.broadcast_arrays: {refused}") from None
    if all(shape_of(operand(a)) == shape for a in args):
        return tuple(np.copy(a) if _is_number(a) else a for a in args)
    return tuple(np.broadcast_to(a, shape) for a in args)


def _is_number(x: Any) -> bool:
    return x.is_scalar if isinstance(x, TracedArray) else not isinstance(x, np.ndarray)


def _meshgrid(
    *xi: Any, copy: Any = True, sparse: Any = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueRangeError("Valid values for `indexing` are 'xy' and 'ij'.", got=repr(indexing))
    n = len(xi)
    place = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    lines = [
        np.reshape(x, [-1 if d == place[number] else 1 for d in range(n)])
        for number, x in enumerate(xi)
    ]
    made = tuple(lines) if sparse else _broadcast_arrays(*lines)
    return tuple(a.copy() for a in made) if copy else made


# -------------------------------------------------------------------- side by side


def _vstack(tup: Sequence[Any], dtype: Any = None, casting: Any = "same_kind") -> Any:
    return joining.concatenate([_with_axes(x, 2) for x in tup], 0, dtype, casting)


def _hstack(tup: Sequence[Any], dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [_with_axes(x, 1) for x in tup]
    along = 0 if len(shape_of(parts[0])) == 1 else 1
    return joining.concatenate(parts, along, dtype, casting)


def _dstack(tup: Sequence[Any]) -> Any:
    return joining.concatenate([_with_axes(x, 3) for x in tup], 2)


def _column_stack(tup: Sequence[Any]) -> Any:
    columns = [x if len(shape_of(operand(x))) > 1 else np.reshape(x, (-1, 1)) for x in tup]
    return joining.concatenate(columns, 1)


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return joining.concatenate([arr, values], axis)


def _array_split(ary: Array, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """The first parts are one longer where the number of parts does not divide the axis."""
    if not hasattr(indices_or_sections, "__index__"):
        return joining.split(ary, indices_or_sections, axis)
    parts = indices_or_sections.__index__()
    if parts <= 0:
        raise ValueRangeError("number sections must be larger than 0.")
    each, more = divmod(ary.shape[views.axis_of(axis, ary.ndim)], parts)
    return joining.split(ary, [i * each + min(i, more) for i in range(1, parts)], axis)


def _split_along(axis: int) -> Function:
    def split(ary: Array, indices_or_sections: Any) -> list[Any]:
        return joining.split(ary, indices_or_sections, 0 if ary.ndim == 1 and axis == 1 else axis)

    return split


def _unstack(x: Array, axis: Any = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(x, axis, 0))


# ------------------------------------------------------------------------ repeated


def _repeat(a: Array, repeats: Any, axis: Any = None) -> Array:
    if axis is None:
        a, axis = a.flatten(), 0
    axis = views.axis_of(axis, a.ndim)
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


def _tile(A: Array, reps: Any) -> Array:  # noqa: N803
    times = views.as_shape(reps)
    ndim = max(A.ndim, len(times))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - A.ndim) + A.shape
    lines = np.reshape(A, tuple(m for n in shape for m in (1, n)))
    lots = tuple(m for pair in zip(times, shape, strict=True) for m in pair)
    whole = tuple(t * n for t, n in zip(times, shape, strict=True))
    return np.reshape(np.broadcast_to(lines, lots), whole, copy=True)


def _roll(a: Array, shift: Any, axis: Any = None) -> Array:
    if axis is None:
        return np.reshape(_roll(a.flatten(), shift, 0), a.shape)
    shifts: dict[int, int] = {}
    for by, along in np.broadcast(shift, axis):
        if not hasattr(by, "__index__"):
            raise ArgumentError(f"np.roll: {by!r} is no shift", expected="an integer")
        known = views.axis_of(along, a.ndim)
        shifts[known] = shifts.get(known, 0) + int(by)
    return np.copy(_rolled(a, list(shifts.items())))


def _rolled(a: Array, shifts: list[tuple[int, int]]) -> Array:
    """Boxes of `a` put together, whatever the number of axes: each element is moved once."""
    if not shifts:
        return a
    (axis, by), *others = shifts
    n = a.shape[axis]
    cut = -by % n if n else 0
    ends = [(cut, n), (0, cut)] if cut else [(0, n)]
    parts = [_rolled(part_of(a, axis, *between), others) for between in ends]
    return joining.concatenate(parts, axis) if len(parts) > 1 else parts[0]


def _flip_axis(axis: int) -> Function:
    def flip(m: Array) -> Array:
        if m.ndim <= axis:
            raise ValueRangeError(f"Input must be >= {axis + 1}-d.", got=str(m.spec))
        return np.flip(m, axis)

    return flip


def _rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    if len(axes) != 2:
        raise ValueRangeError("len(axes) must be 2.", got=repr(axes), operand="axes")
    one, other = (views.axis_of(a, m.ndim) for a in axes)
    if one == other:
        raise ValueRangeError("Axes must be different.", got=repr(axes))
    turned = m if k % 2 == 0 else np.swapaxes(m, one, other)
    flips = {0: (), 1: (one,), 2: (one, other), 3: (other,)}[k % 4]
    return np.flip(turned, flips)


# ---------------------------------------------------------------------- the border


def _pad(
    array: Array, pad_width: Any, mode: Any = "constant", constant_values: Any = None
) -> Array:
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
    if any(n < 0 for pair in widths for n in pair):
        raise ValueRangeError("index can't contain negative values", operand="pad_width")
    if mode != "constant":
        return np.copy(_bordered(array, widths, mode))
    for axis, (pair, numbers) in enumerate(zip(widths, values, strict=True)):
        sides = [_line(array, axis, n, v) for n, v in zip(pair, numbers, strict=True)]
        array = _between(array, sides, axis)
    return np.copy(array)


def _bordered(a: Array, widths: list[tuple[Any, Any]], mode: str, axis: int = 0) -> Array:
    """Boxes of `a` put together, whatever the number of axes: each element is moved once."""
    if axis == a.ndim:
        return a
    sides = _border(a, axis, *widths[axis], mode)
    whole = [_bordered(p, widths, mode, axis + 1) if p.shape[axis] else p for p in (*sides, a)]
    return _between(whole[2], whole[:2], axis)


def _between(a: Array, sides: list[Array], axis: int) -> Array:
    parts = [p for p in (sides[0], a, sides[1]) if p.shape[axis]]
    return joining.concatenate(parts, axis) if len(parts) > 1 else a


def _pairs(given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """What NumPy takes for each axis: one number, (before, after), or one such pair per axis."""
    if isinstance(given, dict):
        return [tuple(np.broadcast_to(given.get(d, given.get(d - ndim, 0)), 2).tolist())
                for d in range(ndim)]  # fmt: skip
    try:
        return [tuple(pair) for pair in np.broadcast_to(given, (ndim, 2)).tolist()]
    except ValueError as refused:
        raise BroadcastError(f"np.pad: {refused}") from None


def _line(a: Array, axis: int, n: int, value: Any) -> Array:
    return joining.full_like(a, value, shape=(*a.shape[:axis], n, *a.shape[axis + 1 :]))


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


# ---------------------------------------------------------------------- diagonals


def diagonal(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Array:
    """Every (columns + 1)th element of the rows after one another."""
    if a.ndim < 2:
        raise ValueRangeError("diag requires an array of at least two dimensions", got=str(a.spec))
    last = np.moveaxis(a, (axis1, axis2), (-2, -1))
    last = last[..., : last.shape[-2], offset:] if offset >= 0 else last[..., -offset:, :]
    *outer, rows, columns = last.shape
    n = min(rows, columns)
    lot = (*outer, rows * columns)
    flat = views.part(last, "reshape", {"shape": lot}, lot, None)
    made = flat[..., : n * (columns + 1) if n else 0 : columns + 1]
    if last.element_strides is not None:
        made.element_strides = (
            *last.element_strides[:-2],
            last.element_strides[-2] + last.element_strides[-1],
        )
    return made


def _diagonal(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Array:
    return views.read_only(diagonal(a, offset, axis1, axis2), "np.diagonal")


def _trace(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Any:
    return np.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def _diag(v: Array, k: int = 0) -> Array:
    if v.ndim != 1:
        return views.read_only(diagonal(v, k), "np.diag")
    n = v.shape[0] + abs(k)
    row = np.reshape(v, (-1, 1))
    row = _pad(row, ((max(-k, 0), max(k, 0)), (0, 0)))
    is_there = np.eye(n, k=k, dtype=bool)
    return np.where(is_there, np.broadcast_to(row, (n, n)), np.zeros((), v.dtype))


NAMES: dict[str, Function] = {
    "atleast_1d": _at_least(1), "atleast_2d": _at_least(2), "atleast_3d": _at_least(3),
    "broadcast_arrays": _broadcast_arrays, "meshgrid": _meshgrid,
    "vstack": _vstack, "hstack": _hstack, "dstack": _dstack, "column_stack": _column_stack,
    "append": _append, "array_split": _array_split, "vsplit": _split_along(0),
    "hsplit": _split_along(1), "dsplit": _split_along(2), "unstack": _unstack,
    "repeat": _repeat, "tile": _tile, "roll": _roll, "flipud": _flip_axis(0),
    "fliplr": _flip_axis(1), "rot90": _rot90, "pad": _pad, "take": take, "diagonal": _diagonal,
    "trace": _trace, "diag": _diag,
    "linalg.diagonal": lambda x, offset=0: _diagonal(x, offset, -2, -1),
    "linalg.trace": lambda x, offset=0, dtype=None: _trace(x, offset, -2, -1, dtype),
}  # fmt: skip
"""NumPy's name → the same of traced arrays."""
