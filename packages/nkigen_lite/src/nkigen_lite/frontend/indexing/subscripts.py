"""`x[key]` and `x[key] = value`: NumPy's basic indices; lists, arrays and masks by others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nki_dtypes import bool_
from nkigen_lite.frontend.arrays.array import TracedArray, method
from nkigen_lite.frontend.arrays.memory import write
from nkigen_lite.frontend.arrays.promotion import PYTHON_NUMBERS, operand, resolved, shape_of
from nkigen_lite.frontend.arrays.scalars import as_number
from nkigen_lite.frontend.arrays.views import part
from nkigen_lite.frontend.indexing.computed_indices import (
    add_at,
    at_computed,
    at_scalars,
    check_index,
    is_computed,
    put_computed,
)
from nkigen_lite.frontend.indexing.gather import array_key, at_arrays, truths_as_axes, without_masks
from nkigen_lite.frontend.indexing.masked_selection import Picked
from nkigen_lite.frontend.indexing.scatter import as_element, fitted, picked, put_at, put_where
from nkigen_lite.tensors.errors import (
    ArgumentError,
    DataDependentError,
    IndexRangeError,
    ValueRangeError,
)


@method("__getitem__")
def get(x: TracedArray, key: Any) -> TracedArray | Picked:
    """A view, or a number where every axis is indexed; of a computed mask what may only be written
    back."""
    keys = tuple(array_key(k) for k in _keys(key))
    masks = sum(map(_is_computed_mask, keys))
    if masks:
        error = DataDependentError(
            "the shape of what a mask picks depends on its values", got=str(x.spec),
            hint="keep the shape: np.where(mask, x, 0); what goes back to the same places may be "
            "written so: m = x < 0; x[m] = np.exp(x[m])",
        )  # fmt: skip
        if masks > 1:
            raise error
        return picked(x, keys, _view, error)
    x, keys = truths_as_axes(x, keys, _view)
    if any(map(is_computed, keys)):
        return _at_computed(x, keys)
    if any(map(_is_known_array, keys)):
        found = at_arrays(x, _filled(x, without_masks(keys, x.shape), arrays=True), _view)
        return found if any(k is Ellipsis for k in keys) else as_number(found)
    view = _view(x, keys)
    is_number = len(keys) == x.ndim and all(map(_is_int, keys))
    return as_number(view) if is_number else view


@method("__setitem__")
def put(x: TracedArray, key: Any, value: Any) -> None:
    """Write to a view of `x`; everything that shares its memory sees it."""
    given = value if isinstance(value, Picked) else _element_of(x, value)
    keys = tuple(array_key(k) for k in _keys(key))
    if sum(map(_is_computed_mask, keys)) == 1:
        return put_where(x, keys, given, _view)
    if isinstance(value, Picked):
        raise value.error
    x, keys = truths_as_axes(x, keys, _view)
    if any(map(is_computed, keys)):
        _put_computed(x, keys, given)
        return None
    if any(map(_is_known_array, keys)):
        places = _filled(x, without_masks(keys, x.shape), arrays=True)
        return put_at(x, places, given, _view)
    target = _view(x, keys)
    new = fitted(x, as_element(target, given), target.shape)
    write(x.tape, target.memory, target.path, new)
    return None


def _computed_keys(x: TracedArray, keys: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """One key for each axis or None, and whether all computed ones are single integers."""
    filled = _filled(x, without_masks(keys, x.shape), arrays=True)
    for key in filter(is_computed, filled):
        check_index(key)
    arrays = filter(_is_array, filled)
    return filled, all(shape_of(k) == () for k in arrays)


def _at_computed(x: TracedArray, keys: tuple[Any, ...]) -> TracedArray:
    filled, is_basic = _computed_keys(x, keys)
    if not is_basic:
        return at_computed(x, filled, _view)
    view: Any = at_scalars(x, filled, _view)
    if not all(k.is_scalar for k in filled if is_computed(k)):
        view = np.copy(view)  # of an array of rank 0 NumPy makes a copy, of a number a view
    return as_number(view) if not any(k is Ellipsis for k in keys) else view


def _put_computed(x: TracedArray, keys: tuple[Any, ...], given: Any) -> None:
    filled, is_basic = _computed_keys(x, keys)
    if not is_basic:
        put_computed(x, filled, given, _view)
        return
    target = at_scalars(x, filled, _view)
    new = fitted(x, as_element(target, given), target.shape)
    write(x.tape, target.memory, target.path, new)


def add_at_keys(x: TracedArray, key: Any, given: Any) -> None:
    """`np.add.at(x, key, given)`. Raises DataDependentError where `x` is NumPy's own."""
    if not isinstance(x, TracedArray):
        np.add.at(x, *map(np.asarray, (key, given)))
        return
    keys = tuple(np.asarray(k) if _is_int(k) else array_key(k) for k in _keys(key))
    filled = _filled(x, without_masks(keys, x.shape), arrays=True)
    add_at(x, filled, given, _view)


@method("__iter__")
def _iterate(x: TracedArray) -> Iterator[Any]:
    if not x.ndim:
        raise ArgumentError("iteration over an array of rank 0", got=str(x.spec))
    return (get(x, i) for i in range(x.shape[0]))


def _element_of(x: TracedArray, value: Any) -> Any:
    """The written value; a number must be one that NumPy lets an element of `x` be."""
    if issubclass(type(value), (*PYTHON_NUMBERS, np.generic)):  # a traced number says it is one
        with np.errstate(all="ignore"):
            resolved("assignment", lambda: np.zeros((), x.dtype).__setitem__((), value))
    return operand(value)


def _keys(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_int(key: Any) -> bool:
    if isinstance(key, (bool, np.bool_, TracedArray, slice)) or key is None or key is Ellipsis:
        return False
    return hasattr(key, "__index__") and shape_of(key) == ()


def _is_basic(key: Any) -> bool:
    return key is None or key is Ellipsis or isinstance(key, slice) or _is_int(key)


def _is_known_array(key: Any) -> bool:
    return isinstance(key, np.ndarray) and not isinstance(key, TracedArray)


def _is_array(key: Any) -> bool:
    return _is_known_array(key) or is_computed(key)


def _is_computed_mask(key: Any) -> bool:
    return isinstance(key, TracedArray) and key.spec.dtype is bool_


def _view(x: TracedArray, keys: tuple[Any, ...]) -> TracedArray:
    keys = _filled(x, keys)
    starts, sizes, steps, shape, strides = [], [], [], [], []
    axis = 0
    for key in keys:
        if key is None:
            shape.append(1)
            strides.append(0)
            continue
        n = x.shape[axis]
        start, size, step = _range(key, n, axis)
        starts.append(start)
        sizes.append(size)
        steps.append(step)
        if isinstance(key, slice):
            shape.append(size)
            strides.append(0 if x.element_strides is None else x.element_strides[axis] * step)
        axis += 1
    known = None if x.element_strides is None else tuple(strides)
    box = {"starts": tuple(starts), "sizes": tuple(sizes), "steps": tuple(steps)}
    is_whole = [*zip(starts, sizes, steps, strict=True)] == [(0, n, 1) for n in x.shape]
    view = x if is_whole else part(x, "slice", box, box["sizes"], None)
    attrs = {"shape": tuple(shape)}
    if tuple(shape) == view.shape and not is_whole:
        return part(x, "slice", box, tuple(shape), known)
    return part(view, "reshape", attrs, tuple(shape), known)


def _filled(x: TracedArray, keys: tuple[Any, ...], arrays: bool = False) -> tuple[Any, ...]:
    """One key per axis, and None for each new one."""
    for key in keys:
        if not (_is_basic(key) or (arrays and _is_array(key))):
            _reject(key)
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    given = len(keys) - len(dots) - sum(k is None for k in keys)
    if len(dots) > 1:
        raise IndexRangeError("an index can only have a single ellipsis ('...')")
    if given > x.ndim:
        raise IndexRangeError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {given} were indexed",
            expected=f"{x.ndim} indices at most", got=str(given), hint="drop the others, or add "
            "axes first: x[..., None]",
        )  # fmt: skip
    rest = (slice(None),) * (x.ndim - given)
    if not dots:
        return (*keys, *rest)
    return (*keys[: dots[0]], *rest, *keys[dots[0] + 1 :])


def _reject(key: Any) -> None:
    if isinstance(key, TracedArray):
        raise DataDependentError(
            "an index that is only computed when the kernel runs", got=str(key.spec),
            expected="integers, slices, None, …",
            hint="as many elements from a computed place on: x[t + np.arange(n)]",
        )  # fmt: skip
    raise IndexRangeError(
        "only integers, slices (`:`), ellipsis (`...`) and None are valid indices",
        expected="such an index, or a list or array that is known",
        got=repr(key),
        hint="convert it: int(…), array.astype(int)",
    )


def _range(key: Any, n: int, axis: int) -> tuple[int, int, int]:
    """Start, size, step of one index or slice of an axis of n elements."""
    if isinstance(key, slice):
        for bound in (key.start, key.stop, key.step):
            if isinstance(bound, TracedArray):
                _reject(bound)
        if key.step == 0:
            raise ValueRangeError("slice step cannot be zero")
        indices = range(*key.indices(n))
        return (indices.start if len(indices) else 0), len(indices), indices.step
    number = key.__index__()
    if not -n <= number < n:
        raise IndexRangeError(
            f"index {number} is out of bounds for axis {axis} with size {n}",
            expected=f"an index from {-n} to {n - 1}" if n else "no index: the axis is empty",
            got=str(number), hint="x.shape has the lengths; a slice may go beyond the end",
        )  # fmt: skip
    return number % n, 1, 1
