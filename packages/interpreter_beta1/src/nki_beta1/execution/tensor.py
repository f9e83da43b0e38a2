"""Tensors whose value an instruction may still have to make, and which may share memory.

A load of contiguous elements of a parameter that the kernel may not write shares the parameter's
memory: no bytes are copied. The tensor gets memory of its own (`Tensor.detach`) before an
instruction writes to it, and before anything but an instruction reads part of it. Loads of watched
kernels copy, because their instructions count. Whether Python code in the kernel that writes to the
caller's array is visible to such loads is undefined.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from neuroncore.enums import HBM, MemorySpace
from neuroncore.errors import AccessError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import Storage, View
from nki_beta1.execution.accumulation import adds, copy_marks
from nki_beta1.execution.core import Core
from nki_beta1.execution.operands import without_ones
from nki_beta1.execution.pending_call import PendingCall
from nki_beta1.index.mask import Region
from nki_beta1.values.attributes import unknown_name
from nki_beta1.values.special_methods import NotAnArray
from nki_dtypes import DType, bool_, tfloat32

_MATMUL = INSTRUCTIONS["nc_matmul"]

PUBLIC = ("astype", "broadcast_to", "buffer", "dtype", "expand_dims", "itemsize", "ndim",
          "reshape", "shape", "view")  # fmt: skip
"""What a kernel may ask of a tile by name."""

_SLOTS = frozenset(slot for base in View.__mro__ for slot in getattr(base, "__slots__", ()))
"""Attributes of a view, which a pending tensor does not have yet."""

_SOURCE = list(INSTRUCTIONS["dma_copy"].operands).index("src")


def shares_parameter(tile: Tensor, pending: PendingCall) -> bool:
    """Share the loaded memory with `tile`, the result of an unwatched load; whether it can be."""
    assert pending.ready is not None
    source: View = pending.operands[_SOURCE]
    spec, array = source.spec, source.array
    if spec.mutable or spec.dtype is not pending.dtype or spec.shape != pending.shape:
        return False
    if not array.flags.c_contiguous or _may_change(source):
        return False
    held = array.view()
    held.flags.writeable = False
    tile.array, tile.spec, tile.dynamic = held, pending.ready.result, None
    tile.is_shared = True
    tile.storage = Storage(held.reshape(-1), spec.shape, spec.dtype, pending.space)
    return True


def _may_change(source: View) -> bool:
    """Whether a parameter that the kernel may write shares memory with `source`."""
    core = source.core
    return any(np.may_share_memory(source.array, memory) for memory in core.writable)  # type: ignore[attr-defined]


def _may_write(pending: PendingCall, target: View) -> bool:
    """Whether an instruction can write its result to `target` instead of a new tensor."""
    spec = target.spec
    if pending.dtype is not spec.dtype or pending.space is not spec.space or not spec.mutable:
        return False
    if pending.shape != spec.shape and without_ones(pending.shape) != without_ones(spec.shape):
        return False
    is_operand = any(view.storage is target.storage for view in pending.inputs)
    return target.dynamic is None and not is_operand


class Tensor(NotAnArray, View):
    """A tensor of a 0.1 kernel, or a view of one.

    Results of instructions are values: their memory is made when they are first used, unless the
    instruction can write to the tensor that they are assigned to. `region` is the part that the
    mask of the instruction selected.
    """

    __slots__ = ("__weakref__", "_pending", "is_shared", "is_value", "region")
    _pending: PendingCall | None
    is_shared: bool
    is_value: bool
    region: Region | None
    core: Core  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name in _SLOTS and self._pending is not None:
            self.realize()
            return getattr(self, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise unknown_name("a tile of NKI 0.1", name, PUBLIC)

    def update_access(self, op: str, access: Any, value: Any) -> Any:
        """`access op= value` for an access to this tensor that is not a view."""
        raise NotImplementedError

    def wait(self, pending: PendingCall) -> None:
        self._pending, self.is_value, self.region = pending, True, pending.region
        self.is_shared = False

    @property
    def is_pending(self) -> bool:
        return self._pending is not None

    def realize(self) -> None:
        """Execute the waiting instruction into a fresh tile."""
        core = self.core
        if core.pending is not self:
            core.flush()
        pending = self._pending
        if pending is None:
            return
        self._pending = None
        if core.pending is self:
            core.pending = None
        ready = pending.ready
        if ready is not None and ready.covers:
            if core.watchers or not pending.used.loads or not shares_parameter(self, pending):
                pending.into_new(self)
            return
        made = core.allocate(pending.shape, pending.dtype, pending.space, place=pending.place)
        self._become(made)
        pending.into(self)
        self._keep_region()

    def detach(self) -> None:
        """Stop relying on another tensor's content, which is about to change."""
        if self._pending is not None:
            self.realize()
        if self.is_shared:
            own = self.core.allocate(self.shape, self.spec.dtype, self.spec.space)
            own.claim()
            own.array[...] = self.array
            self.core.moved(own, self)
            copy_marks(self.core, self, own)
            self.core.copy_dependents(self.storage, own.storage)
            self._become(own)
            self.is_shared = False
            self._keep_region()

    def _keep_region(self) -> None:
        """Only the region of the mask has content until another instruction writes to the tile."""
        if self.region is not None:
            self.core.masked.setdefault(id(self.storage), []).append(ref(self))

    def run_into(self, target: View) -> bool:
        """Execute the pending instruction into `target` if the result is the same as copying."""
        pending = self._pending
        if pending is None or self.core.pending is not self or not _may_write(pending, target):
            return False
        spec = target.spec
        if pending.shape != spec.shape:
            target.initialize()
            target = target.derive(target.array.reshape(pending.shape), spec.start)
        self._pending = self.core.pending = None
        pending.into(target)
        self._become(target)
        self.is_shared = True
        self.core.add_dependent(target.storage, self)
        return True

    def pending_call(self) -> PendingCall | None:
        """The instruction whose result this is, while nothing has happened since."""
        pending = self._pending
        return pending if pending is not None and self.core.pending is self else None

    def pending_matmul(self) -> PendingCall | None:
        """The matmul whose result this is, while nothing has happened since."""
        pending = self.pending_call()
        if pending is None or pending.used.record is not _MATMUL:
            return None
        region = pending.region
        return pending if region is None or region.inside is None else None

    def add_into(self, target: View) -> None:
        """Execute the waiting matmul so that it adds to `target`.

        PSUM that nothing has written starts a sum with the first matmul, as the hardware's
        accumulation does; content of zeros, copies or activations is added to.
        """
        pending = self._pending
        assert pending is not None
        self.core.pending = None
        part = target if pending.region is None else pending.region.of(target)
        pending.into(target, accumulate=True if adds(self.core, part) else None)
        for operand in pending.inputs:  # should the product be asked for after all
            self.core.add_dependent(operand.storage, self)

    def _become(self, other: View) -> None:
        self.array, self.spec, self.storage = other.array, other.spec, other.storage
        self.dynamic = None

    # -- what it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape if self._pending is None else self._pending.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return shown_dtype(self.spec.dtype if self._pending is None else self._pending.dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return (self.spec if self._pending is None else self._pending).dtype.itemsize

    @property
    def buffer(self) -> MemorySpace:
        return self.spec.space if self._pending is None else self._pending.space

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        """True for a tensor in HBM: `if bias:` tests for an optional argument."""
        if self.buffer in HBM:
            return True
        raise AccessError(
            "a tile has no truth value",
            hint="its elements are known only on the device; use masks, nl.where or nl.all",
            rule="NKI 0.1: control flow",
        )


def shown_dtype(dtype: DType) -> Any:
    """A dtype as 0.1 shows it: NumPy's own, which host code can use."""
    if dtype is bool_:
        return np.dtype(np.bool_)
    return dtype if dtype is tfloat32 else dtype.storage
