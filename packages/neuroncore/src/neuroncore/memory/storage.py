"""Tensors: flat elements in one memory, and strided views of them.

What indexes, reshapes or addresses views is built on `StridedView`; `View` has it as methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.memory.window import bytes_before, fill, reach, window
from neuroncore.options import Options
from neuroncore.source_location import Place
from neuroncore.spec import Indirection, Spec, make_spec
from neuroncore.targets import Target
from nki_dtypes import DType

VIEW_RULE = "NKI: NkiTensor views"
ViewT = TypeVar("ViewT", bound="StridedView")
_Slices = tuple[slice, ...]
_new = object.__new__

INTEGER_POISON = 4
"""What the vendor's simulator fills new integer memory with; floats get NaN."""


class WrittenFlags(Protocol):
    """Flags beside the elements of a storage (`Shadow`), addressed by views of it."""

    filled: set[Spec]
    """Windows in the tensor's one bank of PSUM whose flags are all set, each by its spec, which has
    the place in the bank: looked up in a tenth of the time."""

    def elements(self, view: StridedView, of_bytes: Any = np.all) -> np.ndarray:
        """One flag per element of a view; of a wide one what `of_bytes` gives."""
        ...

    def put(self, view: StridedView, value: Any, where: np.ndarray | None = None) -> None:
        """Set the flags of the elements that a view names, at `where`."""
        ...


class Storage:
    """The elements behind one or more views, row-major in `shape`.

    `fresh` memory has been reserved but neither written nor poisoned yet: the first instruction
    that writes all of it saves the poisoning, anything else poisons it first. `notes` contains what
    watchers record about this tensor, each under itself; `place` is the line that made it. Both
    are set only while there are watchers. A `constant` is part of the kernel: its
    elements were known before it ran, and nothing writes them.
    """

    __slots__ = (
        "address",
        "constant",
        "dtype",
        "flat",
        "fresh",
        "name",
        "notes",
        "place",
        "shape",
        "space",
        "written",
    )

    def __init__(
        self,
        flat: np.ndarray,
        shape: tuple[int, ...],
        dtype: DType,
        space: MemorySpace,
        name: str = "",
        address: tuple[int, int] | None = None,
        fresh: bool = False,
    ) -> None:
        self.flat = flat
        self.shape = shape
        self.dtype = dtype
        self.space = space
        self.name = name
        self.address = address
        self.fresh = fresh
        self.constant = False
        self.notes: dict[Any, Any] | None = None
        self.place: Place | None = None
        self.written: WrittenFlags | bool = False

    @property
    def free_elems(self) -> int:
        """Elements per partition; the partition stride of an on-chip tensor."""
        return prod(self.shape[1:])

    def poison(self, zero: bool = False) -> None:
        """Fill untouched memory: NaN or the integer poison, or zero where that is asked for."""
        self.fresh = False
        fill(self.flat, self.undefined(zero))

    def undefined(self, zero: bool = False) -> float:
        """The value of an uninitialised element."""
        return undefined(self.dtype, zero)


def undefined(dtype: DType, zero: bool = False) -> float:
    """The value of an uninitialised element."""
    return 0 if zero else np.nan if dtype.is_float and dtype.lanes == 1 else INTEGER_POISON


@dataclass(frozen=True, slots=True)
class Dynamic:
    """The index behind an indirect view.

    The view's `array` is the window at index 0; row r lies `index[r] * stride` elements further.
    `limit` is the number of valid indices: the size of the indexed dimension of the base tensor.
    `composes`: further views may be taken; they keep the offset.
    """

    index: StridedView
    stride: int
    limit: int
    composes: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class IndexRules:
    """Where NKI versions make and index tensors differently (see the Options fields of the same
    names)."""

    keep_partition: bool = True
    negative_index: bool = True
    ap_on_view: Literal["compose", "replace", "reject"] = "compose"
    empty_slice: bool = False
    """Whether a slice may have no elements; no instruction takes what it gives."""
    takes_64_bits: bool = False
    """Whether tensors may have elements of 64 bits."""


class CoreState(Protocol):
    """The state of a core that its views depend on."""

    target: Target
    options: Options
    rules: IndexRules
    computes: bool
    """Whether instructions are executed; where they are not, tensors have no values."""


class StridedView:
    """Element (i0, …) is storage[offset + Σ strides[k] · ik]."""

    __slots__ = ("array", "core", "dynamic", "spec", "storage")

    array: np.ndarray
    """The elements, as NumPy sees them (storage dtype)."""
    spec: Spec
    storage: Storage
    core: CoreState
    dynamic: Dynamic | None
    most_dims: ClassVar[int] = 5
    """Dimensions of a view on chip [NKI language guide, 0.5: tensors]."""

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
    def buffer(self) -> MemorySpace:
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

    # -- making views -----------------------------------------------------------------------------

    def seen(self: ViewT, array: np.ndarray, spec: Spec) -> ViewT:
        """The same storage seen through `array`, of which `spec` is known."""
        view = _new(self.__class__)
        view.array = array
        view.spec = spec
        view.storage = self.storage
        view.core = self.core
        view.dynamic = None
        return view

    def derive(
        self: ViewT,
        array: np.ndarray,
        start: int,
        dtype: DType | None = None,
        dynamic: Dynamic | None = None,
        indirect: Indirection | None = None,
    ) -> ViewT:
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
            bank_offset=view.bank_offset() if self.spec.space is MemorySpace.psum else 0,
        )
        return view

    def outside(self: ViewT, error: AccessError) -> ViewT:
        """The view of an access pattern that leaves the tensor: raises the error."""
        raise error

    def along(self: ViewT, array: np.ndarray, start: int) -> ViewT:
        """A view of the same elements, through `array`, that keeps the dynamic offset."""
        return self.derive(array, start, dynamic=self.dynamic, indirect=self.spec.indirect)

    def bank_offset(self) -> int:
        """The byte in its PSUM bank at which this view begins."""
        free_bytes = self.storage.free_elems * self.storage.flat.itemsize
        own = (self.offset * self.array.itemsize) % free_bytes
        first = self.storage.address[1] if self.storage.address else 0
        return (first + own) % self.core.target.psum_bank_bytes

    def at_offset(self: ViewT, offset: int, what: str) -> ViewT:
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
        low, high = (offset % row + r for r in reach(self.shape[1:], self.strides[1:]))
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
                rule=VIEW_RULE,
            )
        self.initialize()

    def initialize(self) -> None:
        """Poison memory that nothing has written yet, before it is read or written in part.

        Where no instruction is executed its content is not read.
        """
        self.spec = self.spec.initialized
        if not self.core.computes:
            self.storage.fresh = False
        elif self.storage.fresh:
            self.storage.poison(zero=self.core.options.uninitialized == "zero")

    def initialize_outside(self, box: _Slices) -> None:
        """`initialize` for a whole tensor of which the next instruction writes all inside `box`."""
        self.spec = self.spec.initialized
        if not self.storage.fresh:
            return
        self.storage.fresh = False
        value = self.storage.undefined(zero=self.core.options.uninitialized == "zero")
        before: _Slices = ()
        for inside, extent in zip(box, self.shape, strict=True):
            if inside.start > 0:
                fill(self.array[(*before, slice(0, inside.start))], value)
            if inside.stop < extent:
                fill(self.array[(*before, slice(inside.stop, extent))], value)
            before = (*before, inside)

    def claim(self) -> None:
        """Note that the next instruction writes all of this fresh memory: no poison needed."""
        self.spec = self.spec.initialized
        self.storage.fresh = False

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return f"<{name}{self.spec!r}>"
