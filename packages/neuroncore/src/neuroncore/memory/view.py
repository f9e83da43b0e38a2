"""A tensor as a kernel sees it: a strided view of a storage."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore._dtype import as_dtype
from neuroncore.engines import Space
from neuroncore.errors import AccessError, ShapeError
from neuroncore.memory.dynamic import Dynamic
from neuroncore.memory.indexing import index
from neuroncore.memory.indirection import indirect_view
from neuroncore.memory.pattern import access_pattern, check_has_bits
from neuroncore.memory.storage import Storage
from neuroncore.memory.window import bytes_before, window
from neuroncore.spec import Spec, make_spec
from nki_dtypes import DType

if TYPE_CHECKING:
    from neuroncore.core import NeuronCore

VIEW_RULE = "NKI: NkiTensor views"
_PSUM = Space.psum  # looking a member up in its Enum costs 60 ns


class View:
    """A strided view: element (i0, …) is storage[offset + Σ strides[k] · ik].

    Indexing with ints, slices, `nl.ds` and `...` gives further views; nothing is copied. On chip,
    dimension 0 is the partition dimension and no view moves, splits or merges it.
    """

    __slots__ = ("array", "core", "dynamic", "spec", "storage")

    array: np.ndarray
    """The elements, as NumPy sees them (storage dtype)."""
    spec: Spec
    storage: Storage
    core: NeuronCore
    dynamic: Dynamic | None

    # -- what it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Element strides; the partition stride is the free element count of the storage."""
        return self.spec.strides

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)

    @property
    def size(self) -> int:
        return prod(self.spec.shape)

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def buffer(self) -> Space:
        return self.spec.space

    @property
    def name(self) -> str:
        return self.storage.name

    @property
    def offset(self) -> int:
        """Elements from the start of the storage to the first element of the view."""
        return bytes_before(self.array, self.storage.flat) // max(1, self.array.itemsize)

    def get_pattern(self) -> list[list[int]]:
        """[[stride, count], …] in shape order."""
        return [[s, n] for s, n in zip(self.strides, self.shape, strict=True)]

    # -- views of it ------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> View:
        spec = self.spec
        if spec.fresh:
            self.settle()
            spec = self.spec
        if not self.core.computes:
            return self._cut(key)
        if not spec.sliceable or key.__class__ is not tuple or len(key) != len(spec.shape):
            return self._index(key)
        for item, size in zip(key, spec.shape):  # noqa: B905 - same length; strict costs 60 ns
            if item.__class__ is not slice or item.step is not None:
                return index(self, key)
            start, stop = item.start, item.stop
            if start is None:
                start = 0
            elif start.__class__ is not int:
                return index(self, key)
            if stop is None:
                stop = size
            elif stop.__class__ is not int:
                return index(self, key)
            if not 0 <= start < stop <= size:
                return index(self, key)
        array = self.array[key]
        first = key[0].start
        view = _new(self.__class__)
        view.array = array
        memo: tuple[Any, ...] = (array.shape, first)
        if spec.space is _PSUM:  # where in its bank the slice begins counts too
            if len(key) == 2:  # the usual rank: 300 ns less
                memo = (array.shape, first, key[1].start)
            else:
                memo = (array.shape, *[item.start for item in key])
        child = spec.slices.get(memo)
        if child is None:
            child = spec.slices[memo] = self._slice_spec(array, key)
        view.spec = child
        view.storage = self.storage
        view.core = self.core
        view.dynamic = None
        return view

    def _cut(self, key: Any) -> View:
        """`self[key]` where nothing is computed: what a key gives of an array is found once.

        Tensors of one spec share their array there, so that every iteration of a loop asks again;
        those of another, like views as another dtype, have an array of their own.
        """
        core, array = self.core, self.array
        memo = _ints((id(array),), key)
        known = core.cuts.get(memo) if memo else None
        if known is None:
            found = self._index(key)
            if memo:
                if len(core.cuts) >= _CUTS_KEPT:
                    core.cuts.clear()
                core.cuts[memo] = array, found.array, found.spec
            return found
        view = _new(self.__class__)
        _, view.array, view.spec = known
        view.storage, view.core, view.dynamic = self.storage, core, None
        return view

    def _slice_spec(self, array: np.ndarray, key: tuple[slice, ...]) -> Spec:
        spec, starts = self.spec, [item.start or 0 for item in key]
        if not spec.space.on_chip:
            return spec.but(shape=array.shape)
        bank_offset = 0
        if spec.space is Space.psum:
            moved = sum(n * s for n, s in zip(starts[1:], spec.strides[1:], strict=True))
            bank_offset = spec.bank_offset + moved * array.itemsize
            bank_offset %= self.core.target.psum_bank_bytes
        return spec.but(shape=array.shape, start=spec.start + starts[0], bank_offset=bank_offset)

    def _index(self, key: Any) -> View:
        self._settle_static()
        return index(self, key)

    def reshape(self, shape: tuple[int, ...] | list[int]) -> View:
        """The same elements in another shape; the partition dimension stays.

        Raises ShapeError when counts differ or the layout cannot be expressed as a view.
        """
        self._settle_static()
        wanted = _sizes(shape)
        if prod(wanted) != self.size:
            raise ShapeError(
                f"reshape of {self.shape} to {wanted} changes the element count",
                expected=f"{self.size} elements",
                got=f"{prod(wanted)} elements",
                rule=VIEW_RULE,
            )
        self._keeps_partition(wanted[0] if wanted else 0, f"reshape to {wanted}")
        array = self.array.reshape(wanted)
        if array.size and not np.shares_memory(array, self.array):
            raise ShapeError(
                f"reshape of {self.shape} to {wanted} would have to move elements",
                got=f"strides {self.strides}",
                hint="copy the tensor first, or use .ap with an explicit pattern",
                rule=VIEW_RULE,
            )
        return self.derive(array, self.spec.start)

    def view(self, dtype: Any) -> View:
        """The same bytes as another dtype; the last dimension scales with the item size."""
        self._settle_static()
        to = as_dtype(dtype)
        check_has_bits(self, to)
        if self.spec.strides[-1] != 1 and to.itemsize != self.dtype.itemsize:
            raise ShapeError(
                f"view as {to} needs a contiguous last dimension",
                got=f"strides {self.strides}",
                rule=VIEW_RULE,
            )
        if (self.shape[-1] * self.dtype.itemsize) % to.itemsize:
            raise ShapeError(
                f"view as {to} does not divide the last dimension",
                expected=f"a multiple of {to.itemsize} bytes",
                got=f"{self.shape[-1] * self.dtype.itemsize} bytes",
                rule=VIEW_RULE,
            )
        array = self.array if to is self.spec.dtype else self.array.view(to.storage)
        return self.derive(array, self.spec.start, dtype=to)

    def broadcast(self, dim: int, size: int) -> View:
        """Repeat a size-1 free dimension `size` times without copying (stride 0)."""
        self._settle_static()
        self._has_dim(dim)
        if self.shape[dim] != 1 or (dim == 0 and self.spec.space.on_chip):
            raise ShapeError(
                f"cannot broadcast dimension {dim} of shape {self.shape}",
                expected="a free dimension of size 1",
                rule=VIEW_RULE,
            )
        shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
        return self.derive(np.broadcast_to(self.array, shape), self.spec.start)

    def permute(self, dims: tuple[int, ...]) -> View:
        """Reorder dimensions; the partition dimension stays first on chip."""
        self._settle_static()
        if sorted(dims) != list(range(self.ndim)) or (self.spec.space.on_chip and dims[0] != 0):
            raise ShapeError(
                f"cannot permute shape {self.shape} by {tuple(dims)}",
                expected="a permutation of all dimensions"
                + (" with 0 first" if self.spec.space.on_chip else ""),
                rule=VIEW_RULE,
            )
        return self.derive(self.array.transpose(dims), self.spec.start)

    def expand_dim(self, dim: int) -> View:
        """Insert a dimension of size 1 before `dim`."""
        self._settle_static()
        self._has_dim(dim, self.ndim + 1)
        self._keeps_partition(self.shape[0] if dim else 1, f"expand_dim({dim})")
        return self.derive(np.expand_dims(self.array, dim), self.spec.start)

    def squeeze_dim(self, dim: int) -> View:
        """Drop a dimension of size 1."""
        self._settle_static()
        self._has_dim(dim)
        if self.shape[dim] != 1 or (dim == 0 and self.spec.space.on_chip):
            raise ShapeError(
                f"cannot squeeze dimension {dim} of shape {self.shape}",
                expected="a free dimension of size 1",
                rule=VIEW_RULE,
            )
        return self.derive(self.array.squeeze(dim), self.spec.start)

    def ap(
        self,
        pattern: list[list[int]] | list[tuple[int, int]],
        offset: int | None = None,
        scalar_offset: View | None = None,
        vector_offset: View | None = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> View:
        """An explicit access pattern [[step, count], …] over the storage, slowest first.

        Steps and `offset` count elements of `dtype` (default: the tensor's). `scalar_offset` (1, 1)
        and `vector_offset` (P, 1) add index · prod(base.shape[indirect_dim + 1:]) at run time.
        Raises AccessError for a pattern that leaves the tensor or strides over partitions.
        """
        self._settle_static()
        return access_pattern(
            self, pattern, offset, scalar_offset, vector_offset, indirect_dim, dtype
        )

    def indirect(self, index: View, num_elem: int | None = None) -> View:
        """(P, num_elem): free elements at the offsets in `index` (P, K), a snake over groups of 16
        partitions: offset i of a group is its index[i % 16, i // 16] [NKI: NkiTensor.indirect].

        Raises AccessError for an index that does not fit; offsets are looked at when it is used.
        """
        self._settle_static()
        return indirect_view(self, index, num_elem)

    # -- making views -----------------------------------------------------------------------------

    def derive(
        self,
        array: np.ndarray,
        start: int,
        dtype: DType | None = None,
        dynamic: Dynamic | None = None,
        indirect: Any = None,
    ) -> View:
        """Another view of the same storage, seen through `array`."""
        view = _new(self.__class__)
        view.array, view.storage, view.core, view.dynamic = array, self.storage, self.core, dynamic
        step = max(1, array.itemsize)
        view.spec = make_spec(
            array.shape,
            tuple(s // step for s in array.strides),
            dtype or self.spec.dtype,
            self.spec.space,
            array.dtype,
            start,
            self.spec.mutable,
            indirect=indirect,
            bank_offset=view.bank_offset() if self.spec.space is Space.psum else 0,
        )
        return view

    def bank_offset(self) -> int:
        """The byte in its PSUM bank at which this view begins."""
        free_bytes = self.storage.free_elems * self.storage.flat.itemsize
        own = (self.offset * self.array.itemsize) % free_bytes
        first = self.storage.address[1] if self.storage.address else 0
        return (first + own) % self.core.target.psum_bank_bytes

    def at_offset(self, offset: int, what: str) -> View:
        """This window moved to element `offset` of the storage; raises AccessError outside it."""
        spec = self.spec
        last = offset + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
        flat = self.storage.flat.view(self.array.dtype)
        if offset < 0 or last >= flat.size:
            raise AccessError(
                f"{what} moves the access outside {self.name or 'the tensor'}",
                expected=f"elements 0 to {flat.size - 1}",
                got=f"elements {offset} to {last}",
                rule="NKI: NkiTensor.ap",
            )
        if spec.space.on_chip:
            self._stays_in_partition(offset, what)
        array = window(flat, offset, spec.shape, spec.strides)
        return self.derive(array, spec.start, spec.dtype)

    def _stays_in_partition(self, offset: int, what: str) -> None:
        row = self.storage.flat.nbytes // self.array.itemsize // self.storage.shape[0]
        reach = [(n - 1) * s for n, s in zip(self.shape[1:], self.strides[1:], strict=True)]
        low = offset % row + sum(min(r, 0) for r in reach)
        high = offset % row + sum(max(r, 0) for r in reach)
        if low < 0 or high >= row:
            raise AccessError(
                f"{what} moves the access into the next partition",
                expected=f"free elements 0 to {row - 1}",
                got=f"free elements {low} to {high}",
                rule="NKI: NkiTensor.ap",
            )

    def _settle_static(self) -> None:
        """Ready for a further view; raises AccessError where that would forget a dynamic offset."""
        if self.spec.indirect:
            raise AccessError(
                "no further view can be taken of a view with a dynamic offset",
                got=repr(self.spec),
                hint="put the whole access into the pattern of .ap",
                rule=VIEW_RULE,
            )
        self.settle()

    def settle(self) -> None:
        """Poison memory that nothing has written yet, before it is read or written in part.

        Where no instruction is executed nobody looks at it.
        """
        self.spec = self.spec.settled
        if not self.core.computes:
            self.storage.fresh = False
        elif self.storage.fresh:
            self.storage.poison(zero=self.core.options.uninitialized == "zero")

    def settle_outside(self, box: tuple[slice, ...]) -> None:
        """As settle, for a whole tensor of which the next instruction writes all inside `box`."""
        self.spec = self.spec.settled
        if not self.storage.fresh:
            return
        self.storage.fresh = False
        value = self.storage.undefined(zero=self.core.options.uninitialized == "zero")
        before: tuple[slice, ...] = ()
        for inside, extent in zip(box, self.shape, strict=True):
            if inside.start > 0:
                self.array[(*before, slice(0, inside.start))] = value
            if inside.stop < extent:
                self.array[(*before, slice(inside.stop, extent))] = value
            before = (*before, inside)

    def claim(self) -> None:
        """Note that the next instruction writes all of this fresh memory: no poison needed."""
        self.spec = self.spec.settled
        self.storage.fresh = False

    def _has_dim(self, dim: int, count: int | None = None) -> None:
        count = self.ndim if count is None else count
        if dim not in range(count):
            raise ShapeError(
                f"there is no dimension {dim!r}",
                expected=f"0 <= dim < {count}",
                got=f"{dim!r} for shape {self.shape}",
                operand="dim",
                position=0,
                rule=VIEW_RULE,
            )

    def _keeps_partition(self, partitions: int, what: str) -> None:
        if self.spec.space.on_chip and partitions != self.shape[0]:
            raise ShapeError(
                f"{what} changes the partition dimension of shape {self.shape}",
                expected=f"{self.shape[0]} partitions first",
                got=f"{partitions} partitions",
                rule=VIEW_RULE,
            )

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return f"<{name}{self.spec!r}>"


_new = View.__new__
_CUTS_KEPT = 1 << 16


def _ints(head: tuple[Any, ...], key: Any) -> tuple[Any, ...] | None:
    """The key behind `head`, if it is one of plain ints and slices of them: True is no 1 here."""
    if key.__class__ is not tuple:
        return None
    parts = list(head)
    for item in key:
        if item.__class__ is slice:
            start, stop = item.start, item.stop
            if item.step is not None or not (start.__class__ is int or start is None):
                return None
            if not (stop.__class__ is int or stop is None):
                return None
            parts.append((start, stop))
        elif item.__class__ is int:
            parts.append(item)
        else:
            return None
    return tuple(parts)


def _sizes(shape: tuple[int, ...] | list[int]) -> tuple[int, ...]:
    if isinstance(shape, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in shape):
        return tuple(int(n) for n in shape)
    raise ShapeError(
        "a shape is a tuple of ints",
        got=repr(shape)[:80],
        operand="shape",
        position=0,
        rule=VIEW_RULE,
    )
