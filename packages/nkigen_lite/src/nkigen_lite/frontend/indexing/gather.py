"""Elements at known indices: slices side by side; `x[i]` with NumPy's own arrays and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import fresh, traced
from nkigen_lite.tensors.errors import (
    ArgumentError,
    DataDependentError,
    IndexRangeError,
)

MOST_SLICES = 256
"""Of one array, beyond which rows are gathered: 1024 of 32,000 rows are 512 slices (27.3 us on
trn2) or 17 instructions (28.0 us). Fewer slices are faster than a gather, and so are columns."""
LONG_ROW_BYTES = 512
"""Of a row that is gathered: shorter ones are picked on chip."""

_WITHIN: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "clip": lambda places, n: np.clip(places, 0, n - 1),
    **dict.fromkeys(("raise", "wrap"), lambda places, n: places % max(n, 1)),
}
"""The modes of `np.take`: indices → places of an axis of n elements."""


def take_known(a: Array, indices: Any, axis: int, mode: str) -> Array:
    """`np.take` where the indices are known: slices put side by side."""
    n, places = a.shape[axis], np.asarray(indices)
    if places.dtype.kind not in "iu" and places.size:
        raise ArgumentError("np.take: indices are integers", got=str(places.dtype))
    if mode == "raise" and ((places < -n) | (places >= n)).any():
        raise IndexRangeError(f"np.take: an index is out of bounds for axis {axis} with size {n}")
    if places.size and not n:
        raise IndexRangeError("cannot do a non-empty take from an empty axes.")
    found = taken(a, _WITHIN[mode](places, n).ravel(), axis)
    return np.reshape(found, (*a.shape[:axis], *places.shape, *a.shape[axis + 1 :]))


def taken(a: Array, places: np.ndarray, axis: int) -> Array:
    """The elements at these places of one axis: slices, or one gather instead of very many."""
    runs = list(_runs([int(p) for p in places]))
    row_bytes = prod(a.shape[axis + 1 :]) * a.dtype.itemsize
    if len(runs) > MOST_SLICES and prod(a.shape[:axis]) == 1 and row_bytes >= LONG_ROW_BYTES:
        index = traced(a.tape, places.astype(np.int32)).value
        return fresh(a.tape, a.tape.emit("gather", a.value, index, axis=axis), a.dtype)
    parts = [part_of(a, axis, first, first + step * count, step) for first, step, count in runs]
    if not parts:
        return np.copy(part_of(a, axis, 0, 0))
    return np.concatenate(parts, axis) if len(parts) > 1 else np.copy(parts[0])


def part_of(a: Array, axis: int, start: int, stop: int, step: int = 1) -> Array:
    """A slice of one axis; a stop below 0 is the beginning."""
    return a[(slice(None),) * axis + (slice(start, None if stop < 0 else stop, step),)]


def _runs(places: list[int]) -> Iterator[tuple[int, int, int]]:
    """First place, step, count of stretches that are slices."""
    at = 0
    steps = [b - a for a, b in pairwise(places)]
    while at < len(places):
        end, step = at, steps[at] if at < len(steps) and steps[at] else 1
        while end < len(steps) and steps[end] == step:
            end += 1
        yield places[at], step, end - at + 1
        at = end + 1


# ------------------------------------------------------------------- x[indices]


def array_key(key: Any) -> Any:
    """A list or an array of an index as integers or truths; anything else as it is."""
    if not isinstance(key, (list, np.ndarray)) or isinstance(key, TracedArray):
        return key
    if any(isinstance(k, TracedArray) for k in (key if isinstance(key, list) else ())):
        raise DataDependentError("an index that is only computed when the kernel runs")
    found = np.asarray(key)
    found = found.astype(np.intp) if not found.size and isinstance(key, list) else found
    if found.dtype.kind not in "iub":
        raise IndexRangeError(
            "arrays used as indices must be of integer (or boolean) type", got=str(found.dtype)
        )
    return found


def without_masks(keys: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The places where masks are set, one array for each of their axes."""
    widths = [_width(k) for k in keys]
    spare = len(shape) - sum(widths)
    made, axis = [], 0
    for key, width in zip(keys, widths, strict=True):
        if isinstance(key, np.ndarray) and key.dtype == np.bool_:
            if key.shape != shape[axis : axis + width]:
                raise IndexRangeError(
                    "boolean index did not match indexed array",
                    expected=str(shape[axis : axis + width]), got=str(key.shape),
                )  # fmt: skip
            made += key.nonzero()
        else:
            made.append(key)
        axis += max(spare, 0) if key is Ellipsis else width
    return tuple(made)


def truths_as_axes(x: Array, keys: tuple[Any, ...], view: Callable[..., Any]) -> Any:
    """True and False are new axes of one element, taken or not: the array with those axes, and
    their indices."""
    if not any(_is_truth(k) for k in keys):
        return x, keys
    lots = [
        (None,) if _is_truth(k) else (k,) if k is Ellipsis else (slice(None),) * _width(k)
        for k in keys
    ]
    places = (np.zeros(int(k), np.intp) if _is_truth(k) else k for k in keys)
    return view(x, tuple(key for lot in lots for key in lot)), tuple(places)


def _is_truth(key: Any) -> bool:
    if isinstance(key, TracedArray):
        return False
    is_array = isinstance(key, np.ndarray) and key.dtype == np.bool_ and not key.ndim
    return isinstance(key, (bool, np.bool_)) or is_array


def _width(key: Any) -> int:
    """How many axes a key indexes."""
    if isinstance(key, np.ndarray) and key.dtype == np.bool_:
        return key.ndim
    return int(key is not None and key is not Ellipsis)


def at_arrays(x: Array, keys: tuple[Any, ...], view: Callable[..., Any]) -> Array:
    """`x[keys]`, one key per axis or None, of which some are arrays or integers: axes that they
    index become one, from which is taken. Where they stand apart the result begins with theirs."""
    axes = indexed_axes(keys)
    seen = view(x, tuple(slice(None) if d in axes else k for d, k in enumerate(keys)))
    line, first = side_by_side(np.copy(seen), axes)
    made = take_known(line, known_places(seen, keys, axes), first, "raise")
    made.element_strides = made.element_strides if made.ndim < 2 else None
    return made


def indexed_axes(keys: tuple[Any, ...]) -> list[int]:
    """Axes whose keys are arrays or integers."""
    return [d for d, k in enumerate(keys) if k is not None and not isinstance(k, slice)]


def side_by_side(seen: Array, axes: list[int]) -> tuple[Array, int]:
    """A view in which these axes are one, the first where they stand apart; and which it is."""
    is_together = axes == list(range(axes[0], axes[-1] + 1))
    first = axes[0] if is_together else 0
    if not is_together:
        seen = np.moveaxis(seen, axes, list(range(len(axes))))
    after = first + len(axes)
    shape = (*seen.shape[:first], prod(seen.shape[first:after]), *seen.shape[after:])
    return views.part(seen, "reshape", {"shape": shape}, shape, None), first


def known_places(seen: Array, keys: tuple[Any, ...], axes: list[int]) -> np.ndarray:
    """The places along the axis that these axes become."""
    lengths = [seen.shape[d] for d in axes]
    given = [np.asarray(keys[d]) for d in axes]
    for axis, (n, places) in enumerate(zip(lengths, given, strict=True)):
        if ((places < -n) | (places >= n)).any():
            raise IndexRangeError(f"an index is out of bounds for axis {axis} with size {n}")
    try:
        every = np.broadcast_arrays(*given)
    except ValueError:
        raise IndexRangeError(
            "shape mismatch: indexing arrays could not be broadcast together",
            got=" and ".join(str(g.shape) for g in given),
        ) from None
    places = np.zeros(every[0].shape, np.int64)
    for n, those in zip(lengths, every, strict=True):
        places = places * n + those % max(n, 1)
    return places
