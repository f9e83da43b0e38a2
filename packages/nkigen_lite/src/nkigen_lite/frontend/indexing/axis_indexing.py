"""Elements along an axis, read and written by index arrays: known ones, and computed ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import operand, traced
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.indexing.computed_indices import along_axis, put_along, take_computed
from nkigen_lite.frontend.indexing.gather import take_known
from nkigen_lite.tensors.errors import IndexRangeError, ValueRangeError


def _keys(name: str, a: Array, indices: Any, axis: Any) -> tuple[Any, ...]:
    """The index arrays of all axes: their own places but along `axis`."""
    places, along = np.asarray(indices), views.axis_of(axis, a.ndim)
    if places.dtype.kind not in "iu":
        raise IndexRangeError("`indices` must be an integer array", got=str(places.dtype))
    if places.ndim != a.ndim:
        raise ValueRangeError(
            "`indices` and `arr` must have the same number of dimensions",
            expected=f"{a.ndim} axes", got=f"{places.ndim}", operand="indices",
            hint="add axes of one element: indices[:, None]",
        )  # fmt: skip
    return tuple(
        places if d == along else np.arange(n).reshape([-1 if e == d else 1 for e in range(a.ndim)])
        for d, n in enumerate(a.shape)
    )


@implements("take")
def take(a: Array, indices: Any, axis: Any = None, mode: Any = "raise") -> Array:
    """`np.take`."""
    if mode not in ("clip", "raise", "wrap"):
        raise ValueRangeError(
            "clipmode must be one of 'clip', 'raise', or 'wrap'", got=repr(mode), operand="mode"
        )
    is_traced = isinstance(indices, TracedArray)
    a = traced(indices.tape, a) if is_traced else a
    if axis is None:
        a, axis = a.flatten(), 0
    along = views.axis_of(axis, a.ndim)
    return (take_computed if is_traced else take_known)(a, indices, along, mode)


@implements("take_along_axis")
def take_along_axis(arr: Array, indices: Any, axis: Any = -1) -> Array:
    """`np.take_along_axis`."""
    if axis is None:
        arr, axis = np.ravel(arr), 0
    if isinstance(indices, TracedArray):
        return along_axis(traced(indices.tape, arr), indices, views.axis_of(axis, arr.ndim))
    return arr[_keys("take_along_axis", arr, indices, axis)]


@implements("put_along_axis")
def put_along_axis(arr: Array, indices: Any, values: Any, axis: Any) -> None:
    """`np.put_along_axis`."""
    if not isinstance(arr, TracedArray):
        operand(values).__array__()  # nothing traced goes into an array of NumPy's own
    if isinstance(indices, TracedArray):
        flat = np.ravel(arr) if axis is None else arr
        put_along(flat, indices, values, views.axis_of(0 if axis is None else axis, flat.ndim))
        return
    if axis is None:
        keys = _keys("put_along_axis", np.ravel(arr), indices, 0)
        arr[np.unravel_index(keys[0] % max(arr.size, 1), arr.shape)] = values
        return
    arr[_keys("put_along_axis", arr, indices, axis)] = values
