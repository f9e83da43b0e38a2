"""Elements at known places of each row, and of the diagonal: read and written by index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import operand
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.tensors.errors import DataDependentError, IndexRangeError, ValueRangeError


def _keys(name: str, a: Array, indices: Any, axis: Any) -> tuple[Any, ...]:
    """The index arrays of all axes: their own places but along `axis`."""
    if isinstance(indices, TracedArray):
        raise DataDependentError(
            f"np.{name}: an index that is only computed when the kernel runs",
            expected="indices that are known", got=str(indices.spec), operand="indices",
            hint="of floats along the last axis: ((i[..., None] == np.arange(n)) * x[..., None, :])"
            ".sum(-1)",
        )  # fmt: skip
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


@implements("take_along_axis")
def take_along_axis(arr: Array, indices: Any, axis: Any = -1) -> Array:
    """`np.take_along_axis`."""
    if axis is None:
        arr, axis = np.ravel(arr), 0
    return arr[_keys("take_along_axis", arr, indices, axis)]


@implements("put_along_axis")
def put_along_axis(arr: Array, indices: Any, values: Any, axis: Any) -> None:
    """`np.put_along_axis`."""
    if not isinstance(arr, TracedArray):
        operand(values).__array__()  # nothing traced goes into an array of NumPy's own
    if axis is None:
        keys = _keys("put_along_axis", np.ravel(arr), indices, 0)
        arr[np.unravel_index(keys[0] % max(arr.size, 1), arr.shape)] = values
        return
    arr[_keys("put_along_axis", arr, indices, axis)] = values
