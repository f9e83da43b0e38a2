"""Parts of one dimension, with indices that the kernel or the device knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore.errors import AccessError
from neuroncore.memory.dynamic import Dynamic
from neuroncore.memory.pattern import dynamic_index
from neuroncore.memory.shaping import has_dim
from neuroncore.spec import Indirection

if TYPE_CHECKING:
    from neuroncore.memory.view import View


def slice_dim(view: View, dim: int, start: int, end: int, step: int) -> View:
    """See View.slice."""
    has_dim(view, dim)
    whole = all(isinstance(n, (int, np.integer)) for n in (start, end, step))
    if not whole or not 0 <= start < end <= view.shape[dim] or step < 1:
        raise AccessError(
            f"slice({dim}, {start!r}, {end!r}, {step!r}) of a tensor of shape {view.shape}",
            expected=f"0 <= start < end <= {view.shape[dim]} and step >= 1",
            hint="clamp the end with min(…) where the last tile is ragged",
            rule="NKI: NkiTensor.slice",
        )  # fmt: skip
    return view[_at(dim, slice(start, end, step))]


def select(view: View, dim: int, index: Any) -> View:
    """See View.select."""
    has_dim(view, dim)
    rule = "NKI: NkiTensor.select"
    if not hasattr(index, "spec") and not hasattr(index, "cell"):
        whole = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
        if not whole or not 0 <= index < view.shape[dim]:
            raise AccessError(
                f"index {index!r} of dimension {dim} of a tensor of shape {view.shape}",
                expected=f"0 <= index < {view.shape[dim]}, a (1, 1) tensor in SBUF or a register",
                operand="index", position=1, rule=rule,
            )  # fmt: skip
        return view[_at(dim, index)]
    _only_once(view, rule)
    if view.spec.space.on_chip and dim == 0:
        raise AccessError(
            "the device selects no partition", expected="dim >= 1 on chip", operand="dim",
            position=0, rule=rule,
        )  # fmt: skip
    cell = dynamic_index(index, None, rule)
    least = 2 if view.spec.space.on_chip else 1
    array = view.array[_at(dim, 0 if view.ndim > least else slice(0, 1))]
    return _moved(view, array, "scalar", dim, cell)


def vector_select(view: View, dim: int, vector_offset: Any) -> View:
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
    return _moved(view, array, "vector", 0, cell)


def _moved(view: View, array: np.ndarray, kind: str, dim: int, index: View) -> View:
    stride, limit = view.strides[dim], view.shape[dim]
    return view.derive(
        array,
        view.spec.start,
        dynamic=Dynamic(index, stride, limit, composes=True),
        indirect=Indirection(kind, dim, stride, index.spec, limit),
    )


def _only_once(view: View, rule: str) -> None:
    if view.spec.indirect is not None:
        raise AccessError(
            "an indirect view is indexed by the device a second time",
            expected="one dynamic select, vector_select or dynamic offset for a view",
            hint="t.is_indirect() tells", rule=rule,
        )  # fmt: skip


def _at(dim: int, item: Any) -> tuple[Any, ...]:
    return (slice(None),) * dim + (item,)
