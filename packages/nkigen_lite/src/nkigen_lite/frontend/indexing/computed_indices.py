"""Elements at places that the kernel computes: `x[i]`, `x[:, t]`, `x[i] = v`, `np.take`, and so on.

An index in bounds counts from the end where it is negative. What is out of bounds is an error when
the kernel runs, as it is NumPy's; `np.take(…, mode="clip")` or `"wrap"` chooses otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from nki_dtypes import DType, float32, int32
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.memory import ViewStep, write
from nkigen_lite.frontend.arrays.promotion import as_value, cast_value, fresh, traced
from nkigen_lite.frontend.indexing.gather import indexed_axes, side_by_side
from nkigen_lite.frontend.indexing.scatter import as_element, fitted
from nkigen_lite.tensors.errors import IndexRangeError, UnsupportedFunctionError, ValueRangeError
from nkigen_lite.tensors.spec import numpy_dtype

View = Callable[..., Any]

_EXACT = 2**24
"""Integers that float32 contains; a larger index is out of bounds of a shorter axis, rounded or
not."""


def _from_end(i: Array, n: int) -> Array:
    return i + (i < 0) * i.dtype.type(n)


MOST_ALONG = 8192
"""Elements of a row that are gathered from on chip."""

_WITHIN: dict[str, Callable[[Array, int], Array]] = {
    "raise": _from_end,
    "wrap": lambda i, n: i.astype(np.int32) % n,
    "clip": lambda i, n: np.clip(i, 0, n - 1),
}
"""The modes of `np.take`: indices → places of an axis of n elements."""


def is_computed(key: Any) -> bool:
    """Whether the key contains integers that the kernel computes."""
    return isinstance(key, TracedArray) and key.dtype.kind != "b"


def check_index(key: Array) -> None:
    """Raises NumPy's error for floats."""
    if key.dtype.kind not in "iu":
        raise IndexRangeError(
            "arrays used as indices must be of integer (or boolean) type", got=str(key.spec),
            expected="integers", hint="convert them: i.astype(np.int32)",
        )  # fmt: skip


def places_of(index: Array, n: int, mode: str = "raise") -> Array:
    """The index as whole numbers from 0 to n - 1: in float32, which engines compute in, where that
    is exact."""
    check_index(index)
    if not n and index.size:
        raise IndexRangeError("an axis without elements has no places", got=str(index.spec))
    is_exact = n <= _EXACT and mode != "wrap"
    return _WITHIN[mode](_as(index, float32 if is_exact else int32), max(n, 1))


def _as(index: Array, dtype: DType) -> Array:
    """Whole numbers in another dtype."""
    value = index.value
    if index.spec.dtype is not dtype:
        value = index.tape.emit("convert", value, dtype=dtype)
    return fresh(index.tape, value, numpy_dtype(dtype), scalar=False)


def _key_value(places: Array) -> str:
    return _as(places, int32).value


# ----------------------------------------------------------------------------------- reading


def at_scalars(x: Array, keys: tuple[Any, ...], view: View) -> Array:
    """`x[keys]`, one key for each axis or None, where all computed ones are single integers: writes
    to it go to those places."""
    seen = view(x, tuple(slice(None) if is_computed(k) else k for k in keys))
    axis = 0
    for key in keys:
        if is_computed(key):
            seen = _one_place(seen, key, axis)
        axis += not is_computed(key) and (key is None or isinstance(key, slice))
    return seen


def _one_place(seen: Array, key: Array, axis: int) -> Array:
    index = _key_value(places_of(key, seen.shape[axis]))
    step = ViewStep("gather", {"axis": axis}, operands=(index,))
    shape = (*seen.shape[:axis], *seen.shape[axis + 1 :])
    spec = type(seen.spec)(shape, seen.spec.dtype)
    return TracedArray(seen.tape, seen.memory, (*seen.path, step), spec, seen.dtype, None)


def taken(a: Array, places: Array, axis: int) -> Array:
    """The elements at these places of one axis."""
    value = a.tape.emit("gather", a.value, _key_value(places), axis=axis)
    return fresh(a.tape, value, a.dtype)


def take_computed(a: Array, indices: Array, axis: int, mode: str) -> Array:
    """`np.take`."""
    return taken(a, places_of(indices, a.shape[axis], mode), axis)


def at_computed(x: Array, keys: tuple[Any, ...], view: View) -> Array:
    """`x[keys]`, one key for each axis or None, of which some are computed arrays."""
    line, first, places = _line(x, keys, view)
    made = taken(line, places, first)
    made.element_strides = made.element_strides if made.ndim < 2 else None
    return made


def _line(x: Array, keys: tuple[Any, ...], view: View) -> tuple[Array, int, Array]:
    """The array with the indexed axes as one, which that is, and the places along it."""
    axes = indexed_axes(keys)
    seen = view(x, tuple(slice(None) if d in axes else k for d, k in enumerate(keys)))
    line, first = side_by_side(seen, axes)
    keyed = [(places_of(traced(x.tape, keys[d]), seen.shape[d]), seen.shape[d]) for d in axes]
    if prod(seen.shape[d] for d in axes) > _EXACT:
        keyed = [(_as(places, int32), n) for places, n in keyed]
    return line, first, reduce(lambda place, key: place * key[1] + key[0], keyed[1:], keyed[0][0])


def _check_rank(x: Array, indices: Array) -> None:
    if indices.ndim != x.ndim:
        raise ValueRangeError(
            "`indices` and `arr` must have the same number of dimensions",
            expected=f"{x.ndim} axes", got=f"{indices.ndim}", operand="indices",
            hint="add axes of one element: indices[:, None]",
        )  # fmt: skip


def along_axis(x: Array, indices: Any, axis: int) -> Array:
    """`np.take_along_axis` of computed indices."""
    _check_rank(x, indices)
    last = np.moveaxis(x, axis, -1)
    places = np.moveaxis(places_of(indices, x.shape[axis]), axis, -1)
    lead = np.broadcast_shapes(last.shape[:-1], places.shape[:-1])
    index = np.broadcast_to(places, (*lead, places.shape[-1]))
    data: Array = np.broadcast_to(last, (*lead, last.shape[-1]))
    return np.moveaxis(_gathered(data, index), -1, axis)


def _gathered(data: Array, index: Array) -> Any:
    if max(data.shape[-1], index.shape[-1]) > MOST_ALONG:
        return _of_long_rows(data, index)
    value = data.tape.emit("gather_along", data.value, _key_value(index))
    return fresh(data.tape, value, data.dtype)


def _of_long_rows(data: Array, index: Array) -> Any:
    """Each element is a row of its own."""
    wide = _as(index, float32 if data.size <= _EXACT else int32)
    first = np.arange(0, data.size, data.shape[-1]).reshape(*data.shape[:-1], 1)
    return taken(data.reshape(-1), wide + first.astype(wide.dtype), 0)


# ----------------------------------------------------------------------------------- writing


def put_computed(
    x: Array, keys: tuple[Any, ...], given: Any, view: View, op: str = "scatter"
) -> None:
    """`x[keys] = given`: where places come twice the last one counts; or adds all of them."""
    line, first, places = _line(x, keys, view)
    wanted = (*line.shape[:first], *places.shape, *line.shape[first + 1 :])
    part = fitted(x, as_element(x, given), wanted)
    index = _key_value(places)
    value = x.tape.emit(op, line.value, index, part, axis=first)
    write(x.tape, line.memory, line.path, value)


def add_at(x: Any, keys: tuple[Any, ...], given: Any, view: View) -> None:
    """`np.add.at` of floats: sums in float32, rounded once."""
    if x.dtype.kind in "iub":
        raise UnsupportedFunctionError(
            "np.add.at of integers is not translated: DMAs add in float32", got=str(x.spec),
            hint="add floats: x.astype(np.float32)",
        )  # fmt: skip
    wide = x.astype(np.float32)
    keys = tuple(k if isinstance(k, slice) or k is None else traced(x.tape, k) for k in keys)
    put_computed(wide, keys, traced(x.tape, given).astype(np.float32), view, "scatter_add")
    x[...] = wide.astype(x.dtype)


def put_along(x: Array, indices: Array, values: Any, axis: int) -> None:
    """`np.put_along_axis` of computed indices: each element is a row of its own."""
    _check_rank(x, indices)
    shape = tuple(m if d == axis else n for d, (m, n) in enumerate(
        zip(indices.shape, x.shape, strict=True)))  # fmt: skip
    step = prod(x.shape[axis + 1 :])
    base = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    base = base[(slice(None),) * axis + (slice(0, 1),)]
    places = _as(places_of(indices, x.shape[axis]), float32 if x.size <= _EXACT else int32)
    flat = np.broadcast_to(places * step + base.astype(places.dtype), shape)
    part = fitted(x, as_value(x.tape, values, x.dtype, "where"), shape)
    line = x.tape.emit("reshape", x.value, shape=(x.size,))
    index = x.tape.emit("reshape", _key_value(flat), shape=(prod(shape),))
    part = x.tape.emit("reshape", cast_value(x.tape, part, x.spec.dtype), shape=(prod(shape),))
    value = x.tape.emit("scatter", line, index, part, axis=0)
    write(x.tape, x.memory, x.path, x.tape.emit("reshape", value, shape=x.shape))
