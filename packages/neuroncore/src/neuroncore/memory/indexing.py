"""Indexing of tensors: the keys that brackets take."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.memory.storage import StridedView, ViewT

RULE = "NKI language guide: tensor indexing"
_PSUM = MemorySpace.psum  # looking a member up in its Enum costs 60 ns


def ds(start: int, size: int) -> slice:
    """A dynamic slice of `size` elements from `start`, for use in brackets."""
    return slice(start, start + size)


def index(view: ViewT, key: Any) -> ViewT:
    """`view[key]` for ints, slices with step >= 1 and `...`; raises AccessError out of range."""
    items = _expand(view, key if isinstance(key, tuple) else (key,))
    on_chip = view.spec.space.on_chip
    basic = [_basic(view, dim, item) for dim, item in enumerate(items)]
    array = view.array[tuple(basic)]
    ints = [dim for dim, item in enumerate(items) if not isinstance(item, slice)]
    if on_chip and view.core.rules.keep_partition and 0 in ints:
        ints.remove(0)
    least = 2 if on_chip else 1  # the last integer dimension stays with size 1
    dropped = ints[: max(0, array.ndim - least)]
    if not on_chip and view.pinned and (0 in dropped or len(array) < len(view.array)):
        raise AccessError(
            "dimension 0 takes part in the indirection and is cut",
            expected="the whole of dimension 0", got=f"{_show_item(items[0])} of {view.shape[0]}",
            hint="cut the tensor that holds the indices", rule="NKI: NkiTensor.vector_select",
        )  # fmt: skip
    if dropped:
        array = array.reshape([n for d, n in enumerate(array.shape) if d not in dropped])
    start = view.spec.start + (basic[0].start if on_chip else 0)
    return view.along(array, start)


def pick(view: ViewT, key: tuple[Any, ...]) -> ViewT:
    """`view[key]` of a sliceable view for a key as long as its rank, most of all with ints in it.

    An int from 0 on leaves its dimension out, but for that of partitions, and steps of 1 keep
    strides: what such a key gives is looked up by where it begins. Every other key is `index`'s, as
    is one that leaves too few dimensions.
    """
    spec = view.spec
    on_chip = spec.space.on_chip
    begins: list[int] = []
    kept = 0
    for item, size in zip(key, spec.shape):  # noqa: B905 - same length; strict costs 60 ns
        if item.__class__ is int:
            if not 0 <= item < size or (on_chip and not begins):
                return index(view, key)
            begins.append(item)
            continue
        if item.__class__ is not slice or item.step is not None:
            return index(view, key)
        start, stop = item.start, item.stop
        if start is None:
            start = 0
        if stop is None:
            stop = size
        if not (start.__class__ is int and stop.__class__ is int and 0 <= start < stop <= size):
            return index(view, key)
        begins.append(start)
        kept += 1
    if kept < (2 if on_chip else 1):
        return index(view, key)
    array = view.array[key]
    if 1 in array.shape:  # `index` gives it other strides, which say no less
        return index(view, key)
    memo: tuple[Any, ...] = array.shape, array.strides
    if on_chip:  # the first partition counts too, and in PSUM where in its bank the view begins
        memo = (*memo, *begins) if spec.space is _PSUM else (*memo, begins[0])
    child = spec.slices.get(memo)
    if child is None:
        found = index(view, key)
        spec.slices[memo] = found.spec
        return found
    return view.seen(array, child)


def _expand(view: StridedView, key: tuple[Any, ...]) -> list[Any]:
    """The key with `...` spelled out and missing dimensions filled with full slices."""
    dots = [i for i, item in enumerate(key) if item is Ellipsis]
    rank = len(view.shape)
    given = len(key) - len(dots)
    if len(dots) > 1 or given > rank:
        raise AccessError(
            f"too many indices for a tensor of rank {rank}",
            expected=f"at most {rank} indices and one ...",
            got=f"{given} indices" + (f" and {len(dots)} ..." if dots else ""),
            rule=RULE,
        )
    full = [slice(None)] * (rank - given)
    at = dots[0] if dots else len(key)
    return [*key[:at], *full, *key[at + 1 :]]


def _basic(view: StridedView, dim: int, item: Any) -> slice:
    """The part of a dimension that a slice or an int selects, as a slice of numbers."""
    if isinstance(item, slice):
        return _slice(view, dim, item, view.shape[dim])
    at = _position(view, dim, item, view.shape[dim])
    return slice(at, at + 1)


def _slice(view: StridedView, dim: int, item: slice, size: int) -> slice:
    step, start, stop = (
        default if given is None else _integer(view, dim, given)
        for given, default in ((item.step, 1), (item.start, 0), (item.stop, size))
    )
    start, stop = (n + size if n < 0 else n for n in (start, stop))
    least = 0 if view.core.rules.empty_slice else 1
    if step < 1 or start < 0 or not start + least <= stop <= size:
        raise AccessError(
            f"slice {_show(item)} is outside dimension {dim}"
            if step >= 1
            else f"slice step {step} of dimension {dim} is not positive",
            expected=f"0 <= start {'<' if least else '<='} stop <= {size} and step >= 1",
            got=f"start {start}, stop {stop}, step {step} on a tensor of shape {view.shape}",
            hint="clamp the bound with min(…) where the last tile is ragged",
            rule=RULE,
        )
    if dim == 0 and step != 1 and view.spec.space.on_chip:
        raise AccessError(
            f"step {step} over partitions",
            expected="consecutive partitions",
            got=_show(item),
            hint="the partition step of an on-chip operand is always 1",
            rule="NKI architecture guide: no stride over partitions",
        )
    return slice(start, stop, step)


def _position(view: StridedView, dim: int, item: Any, size: int) -> int:
    at = _integer(view, dim, item)
    counts_back = -size <= at < 0
    if counts_back and view.core.rules.negative_index:
        at += size
    if not 0 <= at < size:
        raise AccessError(
            f"index {item} is outside dimension {dim}",
            expected=f"0 <= index < {size}",
            got=f"{item} on a tensor of shape {view.shape}",
            hint=f"negative indices came with NKI 0.6: write {at + size}"
            if counts_back
            else "end the loop before it, or clamp with min(…) where the last tile is ragged",
            rule=RULE,
        )
    return at


def _integer(view: StridedView, dim: int, item: Any) -> int:
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return int(item)
    raise AccessError(
        f"dimension {dim} is indexed with a {type(item).__name__}",
        expected="an int, a slice, nl.ds(start, size) or ...",
        got=repr(item)[:80],
        hint="an index that the device computes goes into .ap(scalar_offset= or vector_offset=)",
        rule=RULE,
    )


def _show_item(item: Any) -> str:
    return _show(item) if isinstance(item, slice) else repr(item)


def _show(item: slice) -> str:
    parts = ["" if x is None else str(x) for x in (item.start, item.stop, item.step)]
    return ":".join(parts if parts[2] else parts[:2])
