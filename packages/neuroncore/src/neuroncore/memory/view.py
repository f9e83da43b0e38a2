"""A tensor as a kernel sees it: a strided view of a storage."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore._dtype import as_dtype
from neuroncore.engines import Space
from neuroncore.errors import AccessError, ShapeError
from neuroncore.memory import selecting, shaping
from neuroncore.memory.dynamic import Dynamic
from neuroncore.memory.indexing import index
from neuroncore.memory.indirection import indirect_view
from neuroncore.memory.pattern import access_pattern, check_has_bits
from neuroncore.memory.picking import pick
from neuroncore.memory.storage import Storage
from neuroncore.memory.window import bytes_before, window
from neuroncore.spec import Spec, make_spec
from nki_dtypes import DType

if TYPE_CHECKING:
    from neuroncore.core import NeuronCore

_Slices = tuple[slice, ...]
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
                return pick(self, key)
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
        memo: tuple[Any, ...] = (array.shape, first)
        if spec.space is _PSUM:  # where in its bank the slice begins counts too
            if len(key) == 2:  # the usual rank: 300 ns less
                memo = (array.shape, first, key[1].start)
            else:
                memo = (array.shape, *[item.start for item in key])
        child = spec.slices.get(memo)
        if child is None:
            child = spec.slices[memo] = self._slice_spec(array, key)
        view = _new(self.__class__)
        view.array = array
        view.spec = child
        view.storage = self.storage
        view.core = self.core
        view.dynamic = None
        return view

    def seen(self, array: np.ndarray, spec: Spec) -> View:
        """The same storage seen through `array`, of which `spec` is known."""
        view = _new(self.__class__)
        view.array = array
        view.spec = spec
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
        memo = None if self.dynamic else _ints((id(array),), key)
        known = core.cuts.get(memo) if memo else None
        if known is None:
            found = self._index(key)
            if memo:
                if len(core.cuts) >= _CUTS_KEPT:
                    core.cuts.clear()
                core.cuts[memo] = array, found.array, found.spec
            return found
        return self.seen(known[1], known[2])

    def _slice_spec(self, array: np.ndarray, key: _Slices) -> Spec:
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
        self.ready(keeps_offset=True)
        return index(self, key)

    def reshape(self, shape: tuple[int, ...] | list[int]) -> View:
        """The same elements in another shape; the partition dimension stays.

        Raises ShapeError when counts differ or the layout cannot be expressed as a view.
        """
        self.ready(keeps_offset=True)
        return shaping.reshape(self, shape)

    def reshape_dim(self, dim: int, shape: tuple[int, ...] | list[int]) -> View:
        """Split dimension `dim` into several; one of their sizes may be -1."""
        self.ready(keeps_offset=True)
        return shaping.reshape_dim(self, dim, shape)

    def flatten_dims(self, start_dim: int, end_dim: int) -> View:
        """Merge the dimensions from `start_dim` to `end_dim`, that one included."""
        self.ready(keeps_offset=True)
        return shaping.flatten_dims(self, start_dim, end_dim)

    def rearrange(
        self, src_pattern: Any, dst_pattern: Any, fixed_sizes: Mapping[str, int] | None = None
    ) -> View:
        """Split, reorder and merge by name: ("b", ("h", "w")) to ("b", "w", "h"), {"h": 4}."""
        self.ready(keeps_offset=True)
        return shaping.rearrange(self, src_pattern, dst_pattern, fixed_sizes)

    def view(self, dtype: Any) -> View:
        """The same bytes as another dtype; the last dimension scales with the item size."""
        self.ready()
        to = as_dtype(dtype)
        check_has_bits(self, to)
        if self.spec.strides[-1] != 1 and to.itemsize != self.dtype.itemsize:
            raise ShapeError(
                f"view as {to} needs a contiguous last dimension",
                got=f"strides {self.strides}",
                rule=shaping.RULE,
            )
        if (self.shape[-1] * self.dtype.itemsize) % to.itemsize:
            raise ShapeError(
                f"view as {to} does not divide the last dimension",
                expected=f"a multiple of {to.itemsize} bytes",
                got=f"{self.shape[-1] * self.dtype.itemsize} bytes",
                rule=shaping.RULE,
            )
        array = self.array if to is self.spec.dtype else self.array.view(to.storage)
        return self.derive(array, self.spec.start, dtype=to)

    def broadcast(self, dim: int, size: int) -> View:
        """Repeat a size-1 free dimension `size` times without copying (stride 0)."""
        self.ready(keeps_offset=True)
        return shaping.broadcast(self, dim, size)

    def permute(self, dims: tuple[int, ...]) -> View:
        """Reorder dimensions; the partition dimension stays first on chip."""
        self.ready(keeps_offset=True)
        return shaping.permute(self, dims)

    def expand_dim(self, dim: int) -> View:
        """Insert a dimension of size 1 before `dim`."""
        self.ready(keeps_offset=True)
        return shaping.expand_dim(self, dim)

    def squeeze_dim(self, dim: int) -> View:
        """Drop a dimension of size 1."""
        self.ready(keeps_offset=True)
        return shaping.squeeze_dim(self, dim)

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
        self.ready()
        return access_pattern(
            self, pattern, offset, scalar_offset, vector_offset, indirect_dim, dtype
        )

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> View:
        """Elements start, start + step, … before `end` of one dimension."""
        return selecting.slice_dim(self, dim, start, end, step)

    def select(self, dim: int, index: Any) -> View:
        """One element of dimension `dim`, which goes; `index` is an int, or known to the device: a
        (1, 1) tensor in SBUF or a register.

        Raises AccessError for an index outside, for a second index of the device, and for one that
        would select partitions.
        """
        return selecting.select(self, dim, index)

    def vector_select(self, dim: int, vector_offset: View) -> View:
        """Rows of an HBM tensor at the indices in `vector_offset` (P, 1): (P, …)."""
        return selecting.vector_select(self, dim, vector_offset)

    def indirect(self, index: View, num_elem: int | None = None) -> View:
        """(P, num_elem): free elements at the offsets in `index` (P, K), a snake over groups of 16
        partitions: offset i of a group is its index[i % 16, i // 16] [NKI: NkiTensor.indirect].

        Raises AccessError for an index that does not fit; offsets are looked at when it is used.
        """
        self.ready()
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

    def along(self, array: np.ndarray, start: int) -> View:
        """A view of the same elements, through `array`, that keeps the dynamic offset."""
        return self.derive(array, start, dynamic=self.dynamic, indirect=self.spec.indirect)

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

    @property
    def pinned(self) -> bool:
        """Whether no view may move, split or merge dimension 0."""
        if self.spec.space.on_chip:
            return True
        moved = self.spec.indirect
        composes = self.dynamic is not None and self.dynamic.composes
        return composes and moved is not None and moved.kind == "vector"

    def ready(self, keeps_offset: bool = False) -> None:
        """Ready for a further view; raises AccessError where that would forget a dynamic offset.

        `keeps_offset`: the view carries it on, if it is one that views compose with.
        """
        composes = keeps_offset and self.dynamic is not None and self.dynamic.composes
        if self.spec.indirect and not composes:
            raise AccessError(
                "no further view can be taken of a view with a dynamic offset",
                got=repr(self.spec),
                hint="put the whole access into the pattern of .ap",
                rule=shaping.RULE,
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

    def settle_outside(self, box: _Slices) -> None:
        """As settle, for a whole tensor of which the next instruction writes all inside `box`."""
        self.spec = self.spec.settled
        if not self.storage.fresh:
            return
        self.storage.fresh = False
        value = self.storage.undefined(zero=self.core.options.uninitialized == "zero")
        before: _Slices = ()
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
