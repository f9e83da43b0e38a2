"""`.ap` and selections: access patterns over a storage, static or at indices of the device."""

from __future__ import annotations

from math import prod
from types import NoneType
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError, DTypeError, UnsupportedError
from neuroncore.memory.reshaping import has_dim
from neuroncore.memory.storage import Dynamic, StridedView, ViewT
from neuroncore.memory.window import reach, window
from neuroncore.spec import Indirection, as_dtype
from nki_dtypes import DType

RULE = "NKI: NkiTensor.ap"
_FAR = 1 << 48
"""Elements; bytes of as many still fit 64 bits."""


def access_pattern(
    view: ViewT,
    pattern: Any,
    offset: int | None,
    scalar_offset: StridedView | None,
    vector_offset: StridedView | None,
    indirect_dim: int,
    dtype: Any,
) -> ViewT:
    """The view that `pattern` describes; see View.ap."""
    to = view.spec.dtype if dtype is None else as_dtype(dtype)
    steps, counts = _pairs(pattern)
    check_has_bits(view, to)
    _check_divides(view, to)
    held = view.storage
    flat = held.flat if to is held.dtype else held.flat.view(to.storage)
    base = _base_offset(view, offset, to.itemsize)
    index = _index(view, scalar_offset, vector_offset, indirect_dim, counts)
    if vector_offset is not None:
        steps = (0, *steps[1:])  # every row gets its own base
    outside = _outside(base, steps, counts, flat.size, dynamic=index is not None)
    if outside is not None:
        return view.outside(outside)
    if view.spec.space.on_chip:
        _check_partitions(view, base, steps, counts, flat.size)
    array = window(flat, base, counts, steps)
    start = 0
    if view.spec.space.on_chip:
        placed = view.storage.address[0] if view.storage.address else 0
        start = placed + base // _row(view, flat.size)
    if index is None:
        return view.derive(array, start, dtype=to)
    kind = "scalar" if vector_offset is None else "vector"
    step, limit = _counted(view, indirect_dim)
    stride = step // to.itemsize
    return view.derive(
        array,
        start,
        dtype=to,
        dynamic=Dynamic(index, stride, limit),
        indirect=Indirection(kind, indirect_dim, stride, index.spec, limit),
    )


def _base(view: StridedView) -> tuple[tuple[int, ...], int]:
    """Shape and bytes per element of the tensor that dynamic offsets count in: the view's own where
    it is the whole tensor in order (made so, or reshaped), else as it was made."""
    held = view.storage
    is_whole = view.array.nbytes == held.flat.nbytes and view.array.flags.c_contiguous
    seen = view.spec if is_whole else held
    return seen.shape, seen.dtype.itemsize


def _counted(view: StridedView, dim: int) -> tuple[int, int]:
    """How many bytes one step of a dynamic offset moves, and how many steps there are.

    Raises UnsupportedError for parts of a tensor whose dimension `dim` is not one of the tensor:
    where views compose, the documents do not say in which of the two such an offset counts.
    """
    shape, itemsize = _base(view)
    step = prod(shape[dim + 1 :]) * itemsize
    if view.core.rules.ap_on_view == "compose":
        own = view.spec.strides[dim] * view.spec.dtype.itemsize if dim < len(view.shape) else None
        if own != step:
            raise UnsupportedError(
                "a dynamic offset into a part of a tensor that has been reshaped or indexed",
                expected=f"a view whose dimension {dim} is that of the tensor of shape {shape}",
                got=f"shape {view.shape}",
                hint="call ap() on the whole tensor, and add the part's place to offset=",
                operand="indirect_dim",
                rule=RULE,
            )
    return step, shape[dim]


def _pairs(pattern: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    try:
        pairs = [(int(step), int(count)) for step, count in pattern]
    except (TypeError, ValueError):
        pairs = []
    if not pairs or any(count < 1 for _, count in pairs):
        raise AccessError(
            "an access pattern is a list of [step, count] pairs with count >= 1",
            got=repr(pattern)[:80],
            rule=RULE,
        )
    if far := [step for step, _ in pairs if abs(step) >= _FAR]:
        raise AccessError(
            f"a step of {far[0]} elements leads out of every memory",
            expected="a step that stays inside the tensor",
            got=repr(pattern)[:80],
            rule=RULE,
        )
    return tuple(s for s, _ in pairs), tuple(n for _, n in pairs)


def _base_offset(view: StridedView, offset: int | None, itemsize: int) -> int:
    mode = view.core.rules.ap_on_view
    if mode == "reject" and view.array.size != view.storage.flat.size:
        raise AccessError(
            "ap() on a view that has been indexed already",
            expected="the whole tensor",
            got=f"shape {view.shape} of a tensor of shape {view.storage.shape}",
            hint="compute the offset from the base tensor; from 0.5 on views compose",
            rule="NKI access pattern guide (0.2 to 0.4)",
        )
    if not isinstance(offset, (int, np.integer, NoneType)):
        raise AccessError(
            f"offset cannot be a {type(offset).__name__}",
            expected="a compile-time int",
            hint="an offset that the device computes goes into scalar_offset=",
            operand="offset",
            position=1,
            rule=RULE,
        )
    own = view.offset * view.array.itemsize // itemsize if mode == "compose" else 0
    return own + int(offset or 0)


def _index(
    view: StridedView,
    scalar_offset: StridedView | None,
    vector_offset: StridedView | None,
    dim: int,
    counts: tuple[int, ...],
) -> StridedView | None:
    if scalar_offset is not None and vector_offset is not None:
        raise AccessError("scalar_offset and vector_offset exclude each other", rule=RULE)
    given = scalar_offset if vector_offset is None else vector_offset
    if given is None:
        return None
    rows = None if vector_offset is None else counts[0]
    index = dynamic_index(given, rows, RULE)
    _check_width(view, index)
    if vector_offset is not None and (view.spec.space.on_chip or dim != 0):
        raise AccessError(
            "vector_offset indexes dimension 0 of an HBM tensor",
            got=f"indirect_dim {dim} of a tensor in {view.spec.space}",
            rule=RULE,
        )
    if not 0 <= dim < (ndim := len(_base(view)[0])):
        raise AccessError(
            f"indirect_dim {dim} is not a dimension of the base tensor",
            expected=f"0 <= indirect_dim < {ndim}",
            rule=RULE,
        )
    return index


def dynamic_index(given: Any, rows: int | None, rule: str) -> StridedView:
    """The tensor (rows, 1) that indices are read from; with None (1, 1), or that of a register.

    Raises AccessError for anything else.
    """
    wanted = (rows or 1, 1)
    is_register = rows is None and hasattr(given, "cell")
    index = given.cell if is_register else given
    if not hasattr(index, "spec"):
        raise AccessError(
            f"a dynamic offset is a tensor in SBUF, not a {type(index).__name__}",
            hint="a constant belongs into offset=",
            rule=rule,
        )
    index.initialize()
    in_place = is_register or index.spec.space is MemorySpace.sbuf
    if not in_place or not _are_offsets(index, is_register) or index.size != prod(wanted):
        raise AccessError(
            "the index of a dynamic access does not fit",
            expected=f"int32 or uint32 of shape {wanted} in SBUF"
            + (", or a register" if rows is None else ""),
            got=repr(index.spec),
            rule=rule,
        )
    return index


def _are_offsets(index: StridedView, is_register: bool) -> bool:
    """Whether a tensor holds 32-bit integers at a place that is known; a scalar may have 64."""
    dtype = index.spec.dtype
    widths = (4, 8) if is_register else (4,)
    return dtype.is_integer and dtype.itemsize in widths and index.dynamic is None


def _check_width(view: StridedView, index: StridedView) -> None:
    """Raises DTypeError for a scalar of 64 bits that moves an access on chip."""
    if index.spec.dtype.itemsize == 8 and view.spec.space.on_chip:
        raise DTypeError(
            f"scalar_offset is a scalar of {index.spec.dtype} into {view.spec.space.name.upper()}",
            expected="int32: 64 bits are for addresses in HBM", got=repr(index.spec),
            hint="load it from a tensor of int32", rule="NKI 0.7: nisa.scalar_load",
        )  # fmt: skip


def check_has_bits(view: StridedView, to: DType) -> None:
    """Reject a view as another dtype of elements stored as float32 (options.precise=False)."""
    dtype = view.spec.dtype
    if to is not dtype and view.array.dtype != dtype.storage:
        raise UnsupportedError(
            f"the bits of {dtype} elements are not kept with precise=False",
            expected=f"{dtype}",
            got=f"{to}",
            hint="run with precise=True",
            operand="dtype",
            rule=RULE,
        )


def _check_divides(view: StridedView, to: DType) -> None:
    rows = view.storage.shape[0] if view.spec.space.on_chip else 1
    num_bytes = view.storage.flat.size // rows * view.storage.dtype.itemsize
    if num_bytes % to.itemsize:
        raise AccessError(
            f"{'a partition' if view.spec.space.on_chip else 'the tensor'} does not hold whole "
            f"{to} elements",
            expected=f"a multiple of {to.itemsize} bytes",
            got=f"{num_bytes} bytes",
            operand="dtype",
            rule=RULE,
        )


def _outside(
    base: int, steps: tuple[int, ...], counts: tuple[int, ...], size: int, dynamic: bool
) -> AccessError | None:
    """The error for a pattern that leaves the tensor."""
    low, high = (base + r for r in reach(counts, steps))
    if low >= 0 and high < size:
        return None
    return AccessError(
        "the access pattern leaves the tensor" + (" already at index 0" if dynamic else ""),
        expected=f"elements 0 to {size - 1}", got=f"elements {low} to {high}", rule=RULE,
    )  # fmt: skip


def _row(view: StridedView, size: int) -> int:
    """Elements per partition of the storage."""
    return size // view.storage.shape[0]


def _check_partitions(
    view: StridedView, base: int, steps: tuple[int, ...], counts: tuple[int, ...], size: int
) -> None:
    row = _row(view, size)
    if steps[0] != row and counts[0] > 1:
        raise AccessError(
            "the first pair of an on-chip pattern is the partition access",
            expected=f"[{row}, partitions]: the step is the free element count",
            got=f"[{steps[0]}, {counts[0]}]",
            hint="partitions cannot be strided",
            rule=RULE,
        )
    low, high = (base % row + r for r in reach(counts[1:], steps[1:]))
    if low < 0 or high >= row:
        raise AccessError(
            f"the free part of the pattern runs into the {'previous' if low < 0 else 'next'} "
            "partition",
            expected=f"free elements 0 to {row - 1}",
            got=f"free elements {low} to {high}",
            rule=RULE,
        )


SELECT_RULE = "NKI: NkiTensor.select"


def slice_key(view: StridedView, dim: int, start: int, end: int, step: int) -> tuple[slice, ...]:
    """The key of View.slice."""
    has_dim(view, dim)
    whole = all(isinstance(n, (int, np.integer)) for n in (start, end, step))
    if not whole or not 0 <= start < end <= view.shape[dim] or step < 1:
        raise AccessError(
            f"slice({dim}, {start!r}, {end!r}, {step!r}) of a tensor of shape {view.shape}",
            expected=f"0 <= start < end <= {view.shape[dim]} and step >= 1",
            hint="clamp the end with min(…) where the last tile is ragged",
            rule="NKI: NkiTensor.slice",
        )  # fmt: skip
    return _at(dim, slice(start, end, step))


def select_key(view: StridedView, dim: int, index: Any) -> tuple[Any, ...]:
    """The key of View.select with an index that is known at compile time."""
    has_dim(view, dim)
    whole = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
    if not whole or not 0 <= index < view.shape[dim]:
        raise AccessError(
            f"index {index!r} of dimension {dim} of a tensor of shape {view.shape}",
            expected=f"0 <= index < {view.shape[dim]}, a (1, 1) tensor in SBUF or a register",
            operand="index", position=1, rule=SELECT_RULE,
        )  # fmt: skip
    return _at(dim, index)


def dynamic_select(view: ViewT, dim: int, index: Any) -> ViewT:
    """View.select with an index that the device computes."""
    has_dim(view, dim)
    _only_once(view, SELECT_RULE)
    if view.spec.space.on_chip and dim == 0:
        raise AccessError(
            "the device selects no partition", expected="dim >= 1 on chip", operand="dim",
            position=0, rule=SELECT_RULE,
        )  # fmt: skip
    cell = dynamic_index(index, None, SELECT_RULE)
    _check_width(view, cell)
    least = 2 if view.spec.space.on_chip else 1
    array = view.array[_at(dim, 0 if view.ndim > least else slice(0, 1))]
    return _offset_view(view, array, "scalar", dim, cell)


def vector_select(view: ViewT, dim: int, vector_offset: Any) -> ViewT:
    """See View.vector_select."""
    has_dim(view, dim)
    rule = "NKI: NkiTensor.vector_select"
    _only_once(view, rule)
    if dim != 0 or view.spec.space.on_chip:
        raise AccessError(
            "a vector selects along dimension 0 of an HBM tensor",
            got=f"dimension {dim} of a tensor in {view.spec.space.name}", rule=rule,
        )  # fmt: skip
    rows = vector_offset.shape[0] if hasattr(vector_offset, "spec") else 1
    cell = dynamic_index(vector_offset, rows, rule)
    array = np.broadcast_to(view.array[:1], (rows, *view.shape[1:]))
    return _offset_view(view, array, "vector", 0, cell)


def _offset_view(view: ViewT, array: np.ndarray, kind: str, dim: int, index: StridedView) -> ViewT:
    stride, limit = view.strides[dim], view.shape[dim]
    return view.derive(
        array,
        view.spec.start,
        dynamic=Dynamic(index, stride, limit, composes=True),
        indirect=Indirection(kind, dim, stride, index.spec, limit),
    )


def _only_once(view: StridedView, rule: str) -> None:
    if view.spec.indirect is not None:
        raise AccessError(
            "an indirect view is indexed by the device a second time",
            expected="one dynamic select, vector_select or dynamic offset for a view",
            hint="t.is_indirect() reports indirect views", rule=rule,
        )  # fmt: skip


def _at(dim: int, item: Any) -> tuple[Any, ...]:
    return (slice(None),) * dim + (item,)
