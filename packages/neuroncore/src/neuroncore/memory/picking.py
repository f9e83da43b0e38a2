"""One element of a dimension, remembered: `tile[:, k, :]` as kernels write it in loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuroncore.engines import Space
from neuroncore.memory.indexing import index

if TYPE_CHECKING:
    from neuroncore.memory.view import View

_PSUM = Space.psum


def pick(view: View, key: tuple[Any, ...]) -> View:
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
