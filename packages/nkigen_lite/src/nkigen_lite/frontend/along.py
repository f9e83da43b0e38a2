"""Elements at known places of each row, and of the diagonal: read and written by index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.errors import (
    ArgumentError,
    DataDependentError,
    IndexRangeError,
    ValueRangeError,
)
from nkigen_lite.frontend import views
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.promotion import operand, shape_of

Array = Any
"""A traced array: NumPy's stubs say that its functions give arrays of its own."""


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


def take_along_axis(arr: Array, indices: Any, axis: Any = -1) -> Array:
    """`np.take_along_axis`."""
    if axis is None:
        arr, axis = np.ravel(arr), 0
    return arr[_keys("take_along_axis", arr, indices, axis)]


def put_along_axis(arr: Array, indices: Any, values: Any, axis: Any) -> None:
    """`np.put_along_axis`."""
    if not isinstance(arr, TracedArray):
        operand(values).__array__()  # nothing traced goes into an array of NumPy's own
    if axis is None:
        keys = _keys("put_along_axis", np.ravel(arr), indices, 0)
        arr[np.unravel_index(keys[0] % max(arr.size, 1), arr.shape)] = values
        return
    arr[_keys("put_along_axis", arr, indices, axis)] = values


def fill_diagonal(a: Array, val: Any, wrap: Any = False) -> None:
    """`np.fill_diagonal`: values in turn, from the first again where they are too few."""
    if a.ndim < 2:
        raise ValueRangeError("array must be at least 2-d", got=str(a.spec), operand="a")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueRangeError(
            "All dimensions of input must be of equal length", got=str(a.shape), operand="a"
        )
    step = 1 + sum(int(np.prod(a.shape[d:])) for d in range(1, a.ndim))
    end = a.shape[1] ** 2 if a.ndim == 2 and not wrap else a.size
    places = np.arange(0, min(end, a.size), step)
    if places.size:
        a[np.unravel_index(places, a.shape)] = _in_turn(operand(val), places.size)


def _in_turn(given: Any, count: int) -> Any:
    shape = shape_of(given)
    if not shape:
        return given
    size = int(np.prod(shape))
    if not size:
        raise ArgumentError("np.fill_diagonal: no values", got=str(shape), operand="val")
    line = np.reshape(given, (size,))
    return (line if size >= count else np.tile(line, -(-count // size)))[:count]


NAMES: dict[str, Any] = {
    "take_along_axis": take_along_axis, "put_along_axis": put_along_axis,
    "fill_diagonal": fill_diagonal,
}  # fmt: skip
"""NumPy's name → the same of traced arrays."""
