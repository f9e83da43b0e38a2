"""One NeuronCore: its memories, its remembered plans, its registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    CapacityError,
    PartitionError,
    ShapeError,
    ValuesNeededError,
    Violation,
)
from neuroncore.machine.observe import Event, Tracing, Watcher, watching
from neuroncore.memory import IndexRules, Pool, Storage, View, elements
from neuroncore.options import Options
from neuroncore.source_location import Place, find_place
from neuroncore.spec import Spec, as_dtype, make_spec, row_major
from neuroncore.targets import QUADRANT, Target, resolve_target
from nki_dtypes import DType

if TYPE_CHECKING:
    from neuroncore.instructions import Call

PARTITION_RULE = "NKI architecture guide: on-chip memories have 128 partitions"

_plans: dict[tuple[Target, Options], dict[Any, Any]] = {}
_calls: dict[tuple[Target, Options], dict[Any, Call]] = {}
_layouts: dict[tuple[Target, Options], dict[Any, Spec]] = {}
"""Tensors that were found to fit before, by how they were asked for."""


class NeuronCore:
    """A core of one generation under fixed options; a kernel launch makes a fresh one.

    `plans` remembers, per signature, that a call is legal and how it runs; cores with the same
    target and options share it; so do `calls`, for watched cores, with the calls themselves.
    Without `watchers`, those in force watch it (observe.watching). `computes` is False where none
    of them needs values: instructions are checked and not executed, tensors hold nothing.
    """

    __slots__ = (
        "accumulators",
        "blanks",
        "calls",
        "computes",
        "cuts",
        "generators",
        "layouts",
        "options",
        "plans",
        "pool",
        "products",
        "rules",
        "target",
        "tracing",
        "view_class",
        "watchers",
    )

    def __init__(
        self,
        target: str | Target = "trn2",
        options: Options | None = None,
        rules: IndexRules | None = None,
        watchers: Sequence[Watcher] | None = None,
        view_class: type[View] = View,
    ) -> None:
        self.target = target if isinstance(target, Target) else resolve_target(target)
        self.options = options or Options()
        self.rules = rules or IndexRules()
        self.watchers = watching() if watchers is None else tuple(watchers)
        self.computes = not self.watchers or any(w.needs_values for w in self.watchers)
        self.view_class = view_class
        self.tracing: Tracing | None = None
        self.plans = _plans.setdefault((self.target, self.options), {})
        self.calls = _calls.setdefault((self.target, self.options), {})
        self.layouts = _layouts.setdefault((self.target, self.options), {})
        self.pool = Pool()
        self.blanks: dict[Spec, tuple[np.ndarray, np.ndarray]] = {}
        """Where nothing is computed: the memory, flat and in shape, of all tensors of a spec."""
        self.cuts: dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray, Spec]] = {}
        """Where nothing is computed: what keys gave of arrays (see View.__getitem__)."""
        self.products = np.empty(0, np.float32)
        """Room for a matmul's product that is added to PSUM."""
        self.accumulators: dict[str, np.ndarray] = {}
        self.generators: dict[str, np.ndarray] = {}

    # -- memory -----------------------------------------------------------------------------------

    def allocate(
        self,
        shape: Sequence[int],
        dtype: Any,
        space: MemorySpace,
        name: str = "",
        address: tuple[int, int] | None = None,
        place: Place | None = None,
    ) -> View:
        """A new tensor with undefined content.

        `place` is told to watchers; None: the kernel's line that is running.
        Raises ShapeError, PartitionError, CapacityError or DTypeError when none can exist.
        """
        key = (shape, dtype, space, address)
        try:
            spec = self.layouts[key]
        except (KeyError, TypeError):
            spec = self._layout(shape, dtype, space, address)
            if isinstance(shape, tuple):
                self.layouts[key] = spec
        if self.computes:
            flat, array = self._memory(spec)
        else:
            blank = self.blanks.get(spec)
            if blank is None:
                blank = self.blanks[spec] = self._memory(spec)
            flat, array = blank
        storage = Storage(flat, spec.shape, spec.dtype, space, name, address, fresh=True)
        return self._view(array, spec, storage, place)

    def _memory(self, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
        """Elements for a tensor, flat and in its shape."""
        take = self.pool.elements if spec.space.on_chip else elements
        try:
            flat = take(prod(spec.shape), spec.storage)
        except (MemoryError, ValueError, OverflowError):
            raise _too_large(spec.shape, spec.dtype) from None
        return flat, flat.reshape(spec.shape)

    def _layout(
        self, shape: Sequence[int], dtype: Any, space: MemorySpace, address: tuple[int, int] | None
    ) -> Spec:
        """The spec of a new tensor, if one can exist."""
        sizes = as_shape(shape)
        kind = as_dtype(dtype, takes_64_bits=self.rules.takes_64_bits)
        if space.on_chip:
            self._fits(sizes, kind, space, address)
        start = address[0] if address and space.on_chip else 0
        bank = (
            address[1] % self.target.psum_bank_bytes if address and space is MemorySpace.psum else 0
        )
        return make_spec(
            sizes, row_major(sizes), kind, space, self.stored_as(kind), start,
            fresh=True, bank_offset=bank,
        )  # fmt: skip

    def adopt(
        self,
        array: np.ndarray,
        space: MemorySpace = MemorySpace.hbm,
        mutable: bool = True,
        name: str = "",
        dtype: DType | None = None,
    ) -> View:
        """A tensor over the elements of a C-contiguous NumPy array; nothing is copied.

        `dtype` is given where the array stores another one than its own (precise off).
        """
        kind = dtype or as_dtype(array.dtype, takes_64_bits=self.rules.takes_64_bits)
        flat = array.reshape(-1)
        flat = flat if dtype else flat.view(kind.storage)
        storage = Storage(flat, array.shape, kind, space, name)
        spec = make_spec(
            array.shape, row_major(array.shape), kind, space, flat.dtype, mutable=mutable
        )
        return self._view(flat.reshape(array.shape), spec, storage)

    def constant(
        self, elements: np.ndarray, dtype: DType, name: str = "", place: Place | None = None
    ) -> View:
        """A tensor in shared HBM with these elements, given in the storage dtype of `dtype`, that
        nothing may write. They are not copied where they are read-only.

        `place` is told to watchers; None: the kernel's line that is running. Raises ShapeError for
        a shape that no tensor has.
        """
        shape = self._layout(elements.shape, dtype, MemorySpace.shared_hbm, None).shape
        kept = np.array(elements) if elements.flags.writeable else np.ascontiguousarray(elements)
        flat = kept.reshape(-1).astype(self.stored_as(dtype), copy=False)
        storage = Storage(flat, shape, dtype, MemorySpace.shared_hbm, name)
        storage.constant = True
        spec = make_spec(
            shape, row_major(shape), dtype, MemorySpace.shared_hbm, flat.dtype, mutable=False
        )  # fmt: skip
        return self._view(flat.reshape(shape), spec, storage, place)

    def _view(
        self, array: np.ndarray, spec: Any, storage: Storage, place: Place | None = None
    ) -> View:
        view = self.view_class.__new__(self.view_class)
        view.array, view.spec, view.storage = array, spec, storage
        view.core, view.dynamic = self, None
        if self.watchers:
            if place is None and (storage.fresh or storage.constant):
                place = find_place(2)
            self.announce(storage, place)
        return view

    def announce(self, storage: Storage, place: Place | None) -> None:
        """Tell the watchers of a new tensor."""
        storage.notes = {}
        if storage.fresh or storage.constant:
            storage.place = place or find_place()
        for watcher in self.watchers:
            watcher.allocated(storage)

    def moved(
        self,
        dst: View,
        src: View | None = None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        """Tell the watchers what a language did without an instruction (see Watcher.moved).

        `at` and `of` may also be bool arrays of the views' shapes.
        """
        for watcher in self.watchers:
            watcher.moved(dst, src, _numbers(at), _numbers(of))

    def shown(self, view: View) -> None:
        """Tell the watchers that a language shows a tensor to its user."""
        for watcher in self.watchers:
            watcher.shown(view)

    def unsupported(self, function: str, why: Violation, sure: bool = True) -> None:
        """Tell the watchers of a function that documents say a device does not run."""
        place = find_place() if self.watchers else None
        for watcher in self.watchers:
            watcher.unsupported(function, why, place, sure)

    def perform(self, event: Event, execute: Callable[..., Any], operands: Iterable[Any]) -> None:
        """Execute an instruction where values are computed; tell watchers before and after."""
        if self.tracing is not None:
            self.tracing.note_instruction(event, execute, operands)
            return
        for watcher in self.watchers:
            watcher.will(event)
        if self.computes:
            execute(*operands)
        for watcher in self.watchers:
            watcher.did(event)

    def need_values(self) -> None:
        """A language is about to use what a tensor holds.

        Raises ValuesNeededError where instructions are not executed.
        """
        if not self.computes:
            raise ValuesNeededError("the kernel uses values, and nothing is computed")

    def stored_as(self, kind: DType) -> np.dtype:
        """The NumPy dtype that holds `kind` under these options."""
        low = kind.is_float and kind.lanes == 1 and kind.itemsize < 4
        return kind.storage if self.options.precise or not low else np.dtype(np.float32)

    # -- what fits --------------------------------------------------------------------------------

    def free_bytes_of(self, space: MemorySpace) -> int:
        """Usable bytes per partition of an on-chip memory."""
        if space is MemorySpace.psum:
            return self.target.psum_bytes
        return self.options.usable_sbuf_bytes or self.target.usable_sbuf_bytes

    def _fits(
        self,
        sizes: tuple[int, ...],
        kind: DType,
        space: MemorySpace,
        address: tuple[int, int] | None,
    ) -> None:
        name = space.name.upper()
        if len(sizes) < 2:
            raise ShapeError(
                f"a tensor in {name} has at least two dimensions",
                expected="(partitions, free, …)",
                got=f"shape {sizes}",
                operand="shape",
                position=0,
                rule="NKI language guide: tensors",
            )
        if sizes[0] > self.target.partitions:
            raise PartitionError(
                f"{sizes[0]} partitions in {name}",
                expected=f"at most {self.target.partitions}",
                got=f"shape {sizes}, {kind}",
                hint="dimension 0 is the partition dimension: tile it, or put it into the free "
                "dimensions",
                operand="shape",
                position=0,
                rule=PARTITION_RULE,
            )
        per_partition = prod(sizes[1:]) * kind.itemsize
        offset = self._offset(sizes, space, address)
        limit = self.free_bytes_of(space)
        if offset >= limit:
            raise CapacityError(
                f"offset {offset} is outside {name}",
                expected=f"0 <= offset < {limit} bytes per partition on {self.target.name}",
                got=f"address {address}",
                operand="address",
                rule=f"NKI architecture guide: {name} size",
            )
        if offset + per_partition > limit:
            raise CapacityError(
                f"{per_partition} bytes per partition do not fit {name}",
                expected=f"at most {limit - offset} bytes per partition on {self.target.name}"
                + (f" from offset {offset}" if offset else ""),
                got=f"shape {sizes}, {kind}",
                operand="shape",
                position=0,
                rule=f"NKI architecture guide: {name} size",
            )

    def _offset(
        self, sizes: tuple[int, ...], space: MemorySpace, address: tuple[int, int] | None
    ) -> int:
        if address is None:
            return 0
        if len(_integers(address)) != 2 or min(_integers(address)) < 0:
            raise AttributeValueError(
                f"{address!r} is not an address",
                expected="(partition, byte offset in each partition), neither negative",
                got=repr(address)[:80],
                operand="address",
                rule="NKI direct allocation guide",
            )
        partition, offset = address
        if partition + sizes[0] > self.target.partitions or partition % QUADRANT:
            raise PartitionError(
                f"address puts the tensor on partitions {partition} to {partition + sizes[0] - 1}",
                expected="a start of 0, 32, 64 or 96 and an end below 128",
                operand="address",
                rule="NKI architecture guide: start partition",
            )
        if space is MemorySpace.psum and offset % self.target.psum_bank_bytes:
            raise CapacityError(
                f"PSUM address {offset} is not at a bank",
                expected=f"a multiple of {self.target.psum_bank_bytes} bytes",
                operand="address",
                rule="NKI direct allocation guide: PSUM addresses are bank aligned",
            )
        return offset


def _numbers(elements: np.ndarray | None) -> np.ndarray | None:
    return np.flatnonzero(elements) if elements is not None and elements.dtype == bool else elements


def _integers(given: Any) -> tuple[int, ...]:
    """A tuple or list of ints as it is; nothing of anything else."""
    if not isinstance(given, (tuple, list)):
        return ()
    return tuple(given) if all(isinstance(n, (int, np.integer)) for n in given) else ()


_BEYOND = 1 << 64
"""Bytes beyond every memory; from here on a message leaves out their number."""


def _too_large(sizes: tuple[int, ...], kind: DType) -> CapacityError:
    num_bytes = prod(sizes) * kind.itemsize
    return CapacityError(
        f"a tensor of {num_bytes / 2**30:.3g} GiB"
        if num_bytes < _BEYOND
        else "a tensor of 2**64 bytes or more",
        expected="one that the memory of this computer holds",
        got=f"shape {sizes}, {kind}",
        operand="shape",
        position=0,
    )


def as_shape(shape: Sequence[int], position: int = 0) -> tuple[int, ...]:
    """The shape of a tensor, an argument at `position`. Raises ShapeError for what is none."""
    try:
        sizes = tuple(int(n) for n in shape)
        whole = all(int(n) == n for n in shape)
    except (TypeError, ValueError):
        sizes, whole = (), False
    if not whole or any(n < 1 for n in sizes):
        raise ShapeError(
            "a shape is a tuple of positive ints",
            got=repr(shape)[:80],
            operand="shape",
            position=position,
            rule="NKI language guide: tensors",
        )
    return sizes
