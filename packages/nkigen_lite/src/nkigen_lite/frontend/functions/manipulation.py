"""Arrays put side by side, repeated, padded, rolled: slices, reshapes and concatenations."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.functions.concatenation import concatenate
from nkigen_lite.frontend.functions.creation import full_like
from nkigen_lite.frontend.indexing.gather import part_of, taken
from nkigen_lite.tensors.errors import (
    ArgumentError,
    BroadcastError,
    DataDependentError,
    UnsupportedKeywordError,
    ValueRangeError,
)

# ------------------------------------------------------------------ more axes


# -------------------------------------------------------------------- side by side


# ------------------------------------------------------------------------ repeated


@implements("repeat")
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


@implements("tile")
def _tile(A: Array, reps: Any) -> Array:  # noqa: N803
    times = views.as_shape(reps)
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
        known = views.axis_of(along, a.ndim)
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
    if any(n < 0 for pair in widths for n in pair):
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
    """What NumPy takes for each axis: one number, (before, after), or one such pair per axis."""
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


# ---------------------------------------------------------------------- diagonals
