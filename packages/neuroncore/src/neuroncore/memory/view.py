"""A tensor as a kernel sees it: a strided view of a storage."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, ClassVar, Protocol

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import ShapeError
from neuroncore.findings.notebook_html import ShownAsHtml
from neuroncore.memory.indexing import index, pick
from neuroncore.memory.indirection import indirect_view, num_offsets
from neuroncore.memory.pattern import (
    access_pattern,
    check_has_bits,
    dynamic_select,
    select_key,
    slice_key,
    vector_select,
)
from neuroncore.memory.reshaping import ReshapedView
from neuroncore.memory.storage import VIEW_RULE, CoreState
from neuroncore.spec import Spec, as_dtype
from nki_dtypes import DType

_Slices = tuple[slice, ...]
_start, _new = attrgetter("start"), object.__new__
_PSUM = MemorySpace.psum  # looking a member up in its Enum costs 60 ns


class Core(CoreState, Protocol):
    """The core of a view, as instructions and languages use it (neuroncore.machine.core)."""

    cuts: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray, Spec]]
    products: np.ndarray
    """Memory for a product that is added to PSUM."""
    accumulators: dict[str, np.ndarray]
    """The accumulator registers of ScalarE and VectorE, by name."""
    generators: dict[str, np.ndarray]
    """The states of the random generators, by engine."""
    view_class: type[View]

    def allocate(
        self, shape: Sequence[int], dtype: Any, space: MemorySpace, name: str = ""
    ) -> View: ...

    def adopt(
        self,
        array: np.ndarray,
        space: MemorySpace = MemorySpace.hbm,
        mutable: bool = True,
        name: str = "",
        dtype: DType | None = None,
    ) -> View: ...

    def constant(self, elements: np.ndarray, dtype: DType, name: str = "") -> View: ...

    def moved(
        self,
        dst: View,
        src: View | None = None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None: ...

    def need_values(self) -> None: ...

    def stored_as(self, kind: DType) -> np.dtype: ...


class View(ReshapedView, ShownAsHtml):
    """A strided view: element (i0, …) is storage[offset + Σ strides[k] · ik].

    Indexing with ints, slices, `nl.ds` and `...` gives further views; nothing is copied. On chip,
    dimension 0 is the partition dimension and no view moves, splits or merges it.
    """

    __slots__ = ()

    core: Core  # type: ignore[bad-override-mutable-attribute] # every core is a whole one
    whole_is_fresh: ClassVar[bool] = False
    """Whether a view of all of a tensor that nothing has written leaves it unwritten."""

    # -- views of it ------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> View:
        spec, core = self.spec, self.core
        if (
            not (spec.sliceable and core.computes)
            or type(key) is not tuple  # type() costs 15 ns, __class__ 30
            or len(key) != len(spec.shape)
        ):
            return self._otherwise(key)
        memo: Any = None
        if len(key) == 2:  # [:, i:j] in two thirds of the time
            rows, columns = key
            if type(rows) is type(columns) is slice and rows.stop is rows.step is columns.step:
                start, stop = columns.start, columns.stop
                is_plain = rows.start is rows.step is None and type(start) is type(stop) is int
                if is_plain and 0 <= start < stop <= spec.shape[1]:
                    memo = (start, stop) if spec.space is _PSUM else stop - start
        for item, size in () if memo else zip(key, spec.shape):  # noqa: B905 - strict costs 60 ns
            if type(item) is not slice or item.step is not None:
                return pick(self, key)
            start, stop = item.start, item.stop
            if start is not None or stop is not None:
                if start is None:
                    start = 0
                elif type(start) is not int:
                    return index(self, key)
                if stop is None:
                    stop = size
                elif type(stop) is not int:
                    return index(self, key)
                if not 0 <= start < stop <= size:
                    return index(self, key)
        view = _new(type(self))  # `seen`, whose call would cost 200 ns
        view.array = array = self.array[key]
        if memo:
            pass
        elif spec.space is _PSUM:  # where in its bank the slice begins counts too
            memo = (array.shape, *map(_start, key))
        else:
            memo = (array.shape, key[0].start)
        try:
            view.spec = spec.slices[memo]
        except KeyError:
            view.spec = spec.slices[memo] = self._slice_spec(array, key)
        view.storage = self.storage
        view.core = core
        view.dynamic = None
        return view

    def _otherwise(self, key: Any) -> View:
        """`self[key]` of an unusual key, of a tensor that nothing has written or that an index
        moves, or where nothing is computed.
        """
        spec = self.spec
        if not spec.fresh:
            return self._index(key) if self.core.computes else self._cut(key)
        if self.whole_is_fresh and self.core.computes and _is_everything(key, spec.shape):
            return self.seen(self.array, spec)  # an instruction that writes it needs no poison
        self.initialize()
        return self[key]

    def _cut(self, key: Any) -> View:
        """`self[key]` where nothing is computed: what a key gives of an array is found once.

        Tensors of one spec share their array there, so that all iterations of a loop have one key;
        tensors of another spec, like views as another dtype, have an array of their own.
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
        if spec.space is MemorySpace.psum:
            moved = sum(n * s for n, s in zip(starts[1:], spec.strides[1:], strict=True))
            bank_offset = spec.bank_offset + moved * array.itemsize
            bank_offset %= self.core.target.psum_bank_bytes
        return spec.but(shape=array.shape, start=spec.start + starts[0], bank_offset=bank_offset)

    def _index(self, key: Any) -> View:
        self.ready(keeps_offset=True)
        return index(self, key)

    def view(self, dtype: Any) -> View:
        """The same bytes as another dtype; the last dimension scales with the item size."""
        self.ready()
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
        return self[slice_key(self, dim, start, end, step)]

    def select(self, dim: int, index: Any) -> View:
        """One element of dimension `dim`, which goes; `index` is an int, or known to the device: a
        (1, 1) tensor in SBUF or a register.

        Raises AccessError for an index outside, for a second index of the device, and for one that
        would select partitions.
        """
        if hasattr(index, "spec") or hasattr(index, "cell"):
            return dynamic_select(self, dim, index)
        return self[select_key(self, dim, index)]

    def vector_select(self, dim: int, vector_offset: View) -> View:
        """Rows of an HBM tensor at the indices in `vector_offset` (P, 1): (P, …)."""
        return vector_select(self, dim, vector_offset)

    def indirect(self, index: View, num_elem: int | None = None) -> View:
        """(P, num_elem): free elements at the offsets in `index` (P, K), a snake over groups of 16
        partitions: offset i of a group is its index[i % 16, i // 16] [NKI: NkiTensor.indirect].

        Raises AccessError for an index that does not fit; offsets are looked at when it is used.
        """
        self.ready()
        count = num_offsets(self, index, num_elem)
        rows = self.shape[0]
        return indirect_view(self.reshape((rows, self.size // rows)), index, count)


_CUTS_KEPT = 1 << 16


def _is_everything(key: Any, shape: tuple[int, ...]) -> bool:
    """Whether a key selects all elements in their shape."""
    if key is Ellipsis:
        return True
    if key.__class__ is not tuple or len(key) != len(shape):
        return False
    return all(map(_is_all, key, shape))


def _is_all(item: Any, size: int) -> bool:
    if item.__class__ is not slice or item.step is not None:
        return False
    start, stop = item.start, item.stop
    from_first = start is None or (start.__class__ is int and start == 0)
    return from_first and (stop is None or (stop.__class__ is int and stop == size))


def _ints(head: tuple[Any, ...], key: Any) -> tuple[Any, ...] | None:
    """The key behind `head`, if it has only plain ints and slices of them; True is not 1 here."""
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
