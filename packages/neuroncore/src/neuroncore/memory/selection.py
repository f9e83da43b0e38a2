"""Selection along one dimension, by constant indices or ones that the device computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.errors import AccessError
from neuroncore.memory.pattern import dynamic_index
from neuroncore.memory.reshaping import has_dim
from neuroncore.memory.storage import Dynamic, StridedView, ViewT
from neuroncore.spec import Indirection

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
