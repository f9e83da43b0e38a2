"""`t[i, j]` with index expressions: a strided view where one exists, otherwise a gather.

An access whose indices leave the tensor is legal as long as a mask cuts them off, so it becomes a
view only when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.memory import StridedView, View, window
from neuroncore.spec import row_major
from nki_beta1.access.access_plans import plan_of, planned_access, record_access
from nki_beta1.access.operators import OnElements
from nki_beta1.execution.accumulation import note_written
from nki_beta1.execution.plans import gathered, write_back
from nki_beta1.index.expression import RULE, Index, as_affine, as_index, check_slice, total
from nki_beta1.index.mask import Region
from nki_beta1.index.pattern import broadcast_shapes
from nki_beta1.values.special_methods import NotAnArray


class Access(OnElements, NotAnArray):
    """An access that is not a view: indices out of range, or no strides that describe it."""

    __slots__ = ("_shape", "base", "indices")

    def __init__(self, base: View, indices: list[Index], shape: tuple[int, ...]) -> None:
        self.base = base
        self.indices = indices
        self._shape = shape

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self.base.dtype

    @property
    def core(self) -> Any:
        return self.base.core

    @property
    def buffer(self) -> MemorySpace:
        return self.base.buffer

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def of(self, region: Region | None) -> View | Access:
        """The part inside a mask's rectangle."""
        if region is None:
            return self
        rect = region.within(self.shape)
        items = [i.part(rect) for i in self.indices]
        found = planned_access(self.base, items)
        return access(self.base, items) if found is None else found

    def within(self, inside: np.ndarray | None) -> Access:
        """The access with indices clipped to the tensor outside `inside`, which is not used."""
        if inside is None or inside.ndim != len(self.shape):
            return self
        alone = tuple(d for d, n in enumerate(self.shape) if n == 1)
        kept = np.broadcast_to(inside.any(axis=alone, keepdims=True), self.shape)
        held = zip(self.indices, self.base.shape, strict=True)
        return Access(self.base, [_clipped(i, n, kept) for i, n in held], self.shape)

    def transposed(self, order: tuple[int, ...]) -> View | Access:
        """The same elements with the access's axes reordered."""
        indices = [i.permuted(order) for i in self.indices]
        return locate(self.base, indices, tuple(self.shape[d] for d in order))

    def read(self) -> View:
        """The elements, gathered into a tensor of their own in the same memory."""
        flat = self._elements()
        base = gathered(self.base)
        base.initialize()
        values = np.ascontiguousarray(base.array.reshape(-1)[flat])
        spec = base.spec
        result = self.core.adopt(values, spec.space, False, self.base.name, spec.dtype)
        self.core.moved(result, base, of=flat.reshape(-1))
        return result

    def write(self, values: View, inside: np.ndarray | None = None) -> None:
        """Scatter a tensor of the same shape, or where `inside` holds; each element once."""
        flat, new = self.within(inside)._elements(), values.array.reshape(self.shape)
        if inside is not None:
            flat, new = flat[inside], new[inside]
        if np.unique(flat).size != flat.size:
            raise AccessError(
                "several values are assigned to one element",
                got=f"an access of shape {self.shape} that names an element twice",
                rule=RULE,
            )
        self.core.about_to_write(self.base.storage)
        base = gathered(self.base)
        base.initialize()
        note_written(self.core, self.base, self._are(flat))
        base.array[np.unravel_index(flat, base.shape)] = new
        self.core.moved(base, values, at=flat.reshape(-1), of=inside)
        write_back(self.base, base)

    def named(self, inside: np.ndarray | bool = True) -> np.ndarray:
        """Which elements of the base the access names, or where `inside` holds, as bool."""
        if inside is True:
            return self._are(self._elements())
        inside = np.broadcast_to(inside, self.shape)
        return self._are(self.within(inside)._elements()[inside])

    def _are(self, flat: np.ndarray) -> np.ndarray:
        found = np.zeros(self.base.shape, np.bool_)
        found[np.unravel_index(flat, self.base.shape)] = True
        return found

    def _elements(self) -> np.ndarray:
        """Row-major element numbers in the base view."""
        check_range(self.base, self.indices)
        strides = row_major(self.base.shape)
        flat = total(list(zip(self.indices, strides, strict=True)))
        return np.broadcast_to(flat.values, self.shape)

    def is_same(self, other: Access) -> bool:
        """Whether both certainly name the same elements of the same tensor."""
        indices = zip(self.indices, other.indices, strict=False)
        return is_same_place(self.base, other.base) and all(
            a.identity == b.identity for a, b in indices
        )

    def __getitem__(self, key: Any) -> Any:
        """Raises AccessError: no view describes the elements."""
        check_range(self.base, self.indices)
        raise AccessError(
            f"an access of shape {self.shape} that no strides describe is indexed again",
            got=repr(self.base),
            hint="name the elements in one pair of brackets, or copy them with nl.copy or nl.load",
            rule=RULE,
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        self[key]

    def __repr__(self) -> str:
        return f"<access of shape {self.shape} to {self.base!r}>"


def _clipped(index: Index, size: int, kept: np.ndarray) -> Index:
    """The expression with indices of the dimension where `kept` does not hold."""
    if _inside(index, size):
        return index
    values = np.broadcast_to(index.values, kept.shape)
    return Index(kept.shape, 0, None, np.where(kept, values, values.clip(0, size - 1)))


def is_same_place(a: StridedView, b: StridedView) -> bool:
    """Whether two views certainly show the same elements of the same tensor."""
    if (
        a.storage is not b.storage
        or a.spec.initialized is not b.spec.initialized
        or _first(a) != _first(b)
    ):
        return False
    one, other = a.dynamic, b.dynamic
    return one is other or (
        one is not None and other is not None and is_same_place(one.index, other.index)
    )


def _first(view: StridedView) -> int:
    """The address of the first element; `offset` computes the storage's as well."""
    return view.array.__array_interface__["data"][0]


def uses_index(items: tuple[Any, ...]) -> bool:
    return any(isinstance(item, Index) for item in items)


def access(base: View, items: Sequence[Any]) -> View | Access:
    """`base[items]`, one item per dimension of the machine's view, at least one an Index.

    Slices are allowed before the first or after the last index expression; they become axes there.
    """
    plan = plan_of(base, items)
    if plan is not None and (planned := planned_access(base, items)) is not None:
        return planned
    if plan is not None and plan.is_plain:  # an index of it leaves the tensor
        return Access(base, list(items), plan.shape)
    indices = expressions(base, items)
    found = locate(base, indices, broadcast_shapes(*(i.shape for i in indices)))
    if isinstance(found, View):
        is_plain = all(isinstance(i, Index) and i.rank == found.ndim for i in items)
        record_access(base, items, found, [i.bounds for i in indices], is_plain)
    return found


def expressions(base: View, items: Sequence[Any]) -> list[Index]:
    """Every item as an index expression over the axes of the access."""
    numbers = [n for n, item in enumerate(items) if isinstance(item, Index)]
    first, last = numbers[0], numbers[-1]
    lead, trail = _slices(items, 0, first), _slices(items, last + 1, len(items))
    _check_between(items[first:last])
    rank = max(items[n].rank for n in numbers)
    if base.spec.space.on_chip and rank == 1 and first and not lead:
        rank = 2  # t[0, nl.arange(512)]: one partition
    axes = [*lead, *[-1] * rank, *trail]
    return [
        _over_axes(item, size, len(lead), rank, len(trail), axes.index(n) if n in axes else 0)
        for n, (item, size) in enumerate(zip(items, base.shape, strict=True))
    ]


def _slices(items: Sequence[Any], start: int, stop: int) -> list[int]:
    return [n for n in range(start, stop) if isinstance(items[n], slice)]


def _check_between(items: Sequence[Any]) -> None:
    if any(isinstance(i, slice) for i in items):
        raise AccessError(
            "a slice between index expressions",
            expected="slices before the first or after the last index expression",
            hint="write the slice as nl.arange(…) on an axis of its own",
            rule=RULE,
        )


def _over_axes(item: Any, size: int, lead: int, rank: int, trail: int, axis: int) -> Index:
    """An item over `lead` axes of slices, `rank` of index expressions and `trail` of slices."""
    if isinstance(item, Index):
        return item.aligned(lead + rank - item.rank, trail)
    if isinstance(item, slice):
        return _slice(item, size, axis, lead + rank + trail)
    return as_index(item, lead + rank + trail)


def _slice(item: slice, size: int, axis: int, rank: int) -> Index:
    check_slice(item)
    numbers = range(*item.indices(size)) if item != slice(None) else range(size)
    if item.stop is not None and item.stop > size:  # a mask may cut it off
        numbers = range(item.start or 0, item.stop, item.step or 1)
    if not numbers:
        raise AccessError("an empty slice", got=str(item), rule=RULE)
    return Index((len(numbers),), numbers.start, (numbers.step,)).aligned(axis, rank - axis - 1)


def locate(base: View, indices: list[Index], shape: tuple[int, ...]) -> View | Access:
    """The strided view that the indices describe, or an Access where there is none (yet)."""
    if any(not _inside(i, n) for i, n in zip(indices, base.shape, strict=True)):
        return Access(base, indices, shape)
    base.initialize()
    start = base.spec.start
    if base.spec.space.on_chip:
        indices, shape = _partitions_first(indices, shape)
        start += _first_partition(base, indices, shape)
    flat = total(list(zip(indices, base.spec.strides, strict=True)))
    if not flat.is_affine:
        flat = as_affine(flat.values)
    if flat.steps is None:
        return Access(base, indices, shape)
    steps = tuple(s if n > 1 else 1 for s, n in zip(flat.steps, shape, strict=True))
    elements = base.storage.flat.view(base.array.dtype)
    array = window(elements, base.offset + flat.const, shape, steps)
    return base.derive(array, start)


def _inside(index: Index, size: int) -> bool:
    low, high = index.bounds
    return low >= 0 and high < size


def _partitions_first(
    indices: list[Index], shape: tuple[int, ...]
) -> tuple[list[Index], tuple[int, ...]]:
    """Without axes of extent 1 before the one over partitions: those run over block dimensions.

    `t[i_b + 3, i_p, i_f]` with `i_b, i_p, i_f = nl.mgrid[0:1, 0:P, 0:F]` is an access (P, F).
    """
    over = next((axis for axis, n in enumerate(indices[0].shape) if n > 1), 0)
    if not over or any(n > 1 for n in shape[:over]):
        return indices, shape
    return [i.without(over) for i in indices], shape[over:]


def _first_partition(base: View, indices: list[Index], shape: tuple[int, ...]) -> int:
    """The partition at which an on-chip access starts; its axis 0 runs over partitions."""
    partition, free = indices[0], indices[1:]
    wanted = (1 if shape[0] > 1 else 0,) + (0,) * (len(shape) - 1)
    steps = partition.steps
    if steps is not None:  # an axis of extent 1 takes no step
        steps = tuple(s if n > 1 else 0 for s, n in zip(steps, partition.shape, strict=True))
    if steps != wanted or any(_varies_on_first(i) for i in free):
        raise AccessError(
            "axis 0 of an on-chip access has to run over consecutive partitions",
            expected="a partition index start + i0, and i0 nowhere else",
            got=f"{partition!r} for the partitions of a tensor of shape {base.shape}",
            hint="moving data between partitions takes nisa.nc_transpose or a DMA",
            rule="NKI architecture guide: no stride over partitions",
        )
    return partition.const


def _varies_on_first(index: Index) -> bool:
    if index.shape[0] == 1:
        return False
    if index.steps is not None:
        return index.steps[0] != 0
    return not (index.values == index.values[:1]).all()


def check_range(base: View, indices: list[Index]) -> None:
    """Raise AccessError naming the dimension whose index leaves the tensor."""
    for dim, (index, size) in enumerate(zip(indices, base.shape, strict=True)):
        if not _inside(index, size):
            low, high = index.bounds
            raise AccessError(
                f"index out of range in dimension {dim}",
                expected=f"0 <= index < {size}",
                got=f"indices {low} to {high} on a tensor of shape {base.shape}",
                hint="cut the last tile off with mask=, on every access that leaves the tensor",
                rule=RULE,
            )
