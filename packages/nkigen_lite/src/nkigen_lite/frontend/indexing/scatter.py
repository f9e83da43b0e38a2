"""Writes to places given by arrays: known indices, and masks that may only be computed later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nki_dtypes import bool_
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.memory import write
from nkigen_lite.frontend.arrays.promotion import as_value, cast_value, dtype_of, fresh, shape_of
from nkigen_lite.frontend.indexing.gather import indexed_axes, known_places, part_of, side_by_side
from nkigen_lite.frontend.indexing.masked_selection import Picked, lot_of_all_places
from nkigen_lite.tensors.errors import BroadcastError, DataDependentError, IndexRangeError

View = Callable[..., TracedArray]
_FEW = 4
"""Stretches that are written one by one where a choice by a mask would do."""


def as_element(x: TracedArray, given: Any) -> str:
    """The value written to `x`, in its format: converted as NumPy's assignments do."""
    dtype = dtype_of(given)
    dtype = dtype if isinstance(dtype, np.dtype) else x.dtype
    if not isinstance(given, TracedArray) and dtype.itemsize == 8:
        dtype = x.dtype if x.dtype.kind == dtype.kind else dtype
    return cast_value(x.tape, as_value(x.tape, given, dtype, "where"), x.spec.dtype)


def fitted(x: TracedArray, value: str, wanted: tuple[int, ...]) -> str:
    """The value broadcast to the part; NumPy also drops leading axes of one element."""
    shape = given = x.tape.spec(value).shape
    while len(shape) > len(wanted) and shape[0] == 1:
        shape = shape[1:]
    try:
        fits = np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise BroadcastError(
            f"could not broadcast input array from shape {shape} into shape {wanted}"
        )
    if given != shape:
        value = x.tape.emit("reshape", value, shape=shape)
    return value if shape == wanted else x.tape.emit("broadcast_to", value, shape=wanted)


# ---------------------------------------------------------------------- known places


def put_at(x: TracedArray, keys: tuple[Any, ...], given: Any, view: View) -> None:
    """`x[keys] = given`, one key per axis or None, of which some are arrays. Where places come
    twice the last one counts."""
    axes = indexed_axes(keys)
    seen = view(x, tuple(slice(None) if d in axes else k for d, k in enumerate(keys)))
    line, first = side_by_side(seen, axes)
    places = known_places(seen, keys, axes)
    before, after = line.shape[:first], line.shape[first + 1 :]
    value = as_element(x, given)
    wanted = (*before, *places.shape, *after)
    whole = fitted(x, value, wanted)
    stretches = list(_stretches(places.ravel()))
    own = ((1,) * len(wanted) + x.tape.spec(value).shape)[-len(wanted) :]
    varies = any(n != 1 for n in own[first : first + places.ndim])
    if len(stretches) > _FEW and not varies:
        return _choose(line, first, places, value, own)
    every = x.tape.emit("reshape", whole, shape=(*before, places.size, *after))
    new = fresh(x.tape, every, x.dtype, scalar=False)
    for at, position, count in stretches:
        target = part_of(line, first, at[0], at[0] + at[1] * count, at[1])
        part = part_of(new, first, position[0], position[0] + position[1] * count, position[1])
        write(x.tape, target.memory, target.path, part.value)
    return None


def _choose(
    line: TracedArray, first: int, places: np.ndarray, value: str, shape: tuple[int, ...]
) -> None:
    """One choice by a known mask of the axis: what is written is the same at all places."""
    tape, rest = line.tape, line.ndim - first - 1
    one = tape.emit("reshape", value, shape=(*shape[:first], 1, *shape[len(shape) - rest :]))
    chosen = np.zeros((*(1,) * first, line.shape[first], *(1,) * rest), bool)
    chosen[(0,) * first + (places,)] = True
    found = tape.emit("where", tape.constant(chosen, bool_), one, line.value)
    write(tape, line.memory, line.path, found)


Stretch = tuple[tuple[int, int], tuple[int, int], int]


def _stretches(places: np.ndarray) -> Iterator[Stretch]:
    """(first place, step), (first position, step), count of what slices write to slices; of places
    that come twice only the last."""
    last = {int(place): position for position, place in enumerate(places)}
    pairs = [(p, n) for n, p in enumerate(map(int, places)) if last[p] == n]
    at = 0
    while at < len(pairs):
        end = at + 1
        step = _step(pairs, at)
        while end < len(pairs) and _step(pairs, end - 1) == step:
            end += 1
        yield (pairs[at][0], step[0]), (pairs[at][1], step[1]), end - at
        at = end


def _step(pairs: list[tuple[int, int]], at: int) -> tuple[int, int]:
    """From one place and position to the next; 1 behind the last."""
    if at + 1 == len(pairs):
        return 1, 1
    return pairs[at + 1][0] - pairs[at][0], pairs[at + 1][1] - pairs[at][1]


# -------------------------------------------------------------------- computed masks


def masked(x: TracedArray, keys: tuple[Any, ...], view: View) -> tuple[TracedArray, Any, int]:
    """The array that a computed mask selects from, beside slices; the mask; its first axis."""
    at = next(n for n, k in enumerate(keys) if isinstance(k, TracedArray))
    mask, others = keys[at], (*keys[:at], *keys[at + 1 :])
    if any(not isinstance(k, slice) and k is not None and k is not Ellipsis for k in others):
        raise DataDependentError(
            "a mask that is only computed when the kernel runs stands alone or beside slices",
            hint="choose by np.where(mask, value, x)",
        )
    seen = view(x, (*keys[:at], *(slice(None),) * mask.ndim, *keys[at + 1 :]))
    spare = x.ndim - mask.ndim - sum(isinstance(k, slice) for k in others)
    first = sum(spare if k is Ellipsis else 1 for k in keys[:at])
    if seen.shape[first : first + mask.ndim] != mask.shape:
        raise IndexRangeError(
            "boolean index did not match indexed array", got=str(mask.shape),
            expected=str(seen.shape[first : first + mask.ndim]),
        )  # fmt: skip
    return seen, mask, first


def picked(x: TracedArray, keys: tuple[Any, ...], view: View, error: DataDependentError) -> Picked:
    """`x[mask]`, of a mask that the kernel computes: what may be written back."""
    seen, mask, first = masked(x, keys, view)
    every = fresh(x.tape, seen.value, x.dtype, scalar=False)
    return Picked(every, mask, first, error)


def put_where(x: TracedArray, keys: tuple[Any, ...], given: Any, view: View) -> None:
    """`x[mask] = value`, of a mask that the kernel computes: what was picked by it, or what is
    written to each of its places alike."""
    seen, mask, first = masked(x, keys, view)
    if not isinstance(given, Picked):
        value = _alike(seen, given, first, mask)
    elif given.is_of(mask, first, seen.shape):
        value = as_element(seen, given.every)
    else:
        raise given.error
    ones = (1,) * (seen.ndim - first - mask.ndim)
    condition = x.tape.emit("reshape", mask.value, shape=(*mask.shape, *ones))
    write(x.tape, seen.memory, seen.path, x.tape.emit("where", condition, value, seen.value))


def _alike(seen: TracedArray, given: Any, first: int, mask: TracedArray) -> str:
    """The written values with axes of one element in place of the mask's."""
    lot = lot_of_all_places(shape_of(given), seen.ndim, first, mask)
    if lot is None:
        raise DataDependentError(
            "what goes where a mask is set depends on its values",
            expected="one number, or one part for all places", got=f"shape {shape_of(given)}",
            hint="choose by np.where(mask, value, x)",
        )  # fmt: skip
    after = seen.shape[first + mask.ndim :]
    fitted_to = (*seen.shape[:first], *(1,) * mask.ndim, *after)
    value = as_element(seen, given)
    return fitted(seen, seen.tape.emit("reshape", value, shape=lot), fitted_to)
