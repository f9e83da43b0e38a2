"""Addresses that are known only when the instruction runs."""

from __future__ import annotations

import numpy as np

from neuroncore.errors import AccessError
from neuroncore.memory.storage import StridedView, ViewT
from neuroncore.memory.window import reach


def resolve_scalar(view: ViewT, skips: bool = False) -> ViewT | None:
    """The static view at which a scalar-offset view points right now.

    Raises AccessError when the index leaves its dimension; with `skips`, gives None instead.
    """
    dynamic = view.dynamic
    assert dynamic is not None
    index = int(dynamic.index.array.reshape(-1)[0])
    if not 0 <= index < dynamic.limit:
        if skips:
            return None
        raise AccessError(
            f"scalar_offset is {index}, outside the indexed dimension",
            expected=f"0 <= index < {dynamic.limit}",
            got=str(index),
            rule="NKI: NkiTensor.ap",
        )
    return view.at_offset(view.offset + index * dynamic.stride, f"scalar_offset {index}")


def _indices(view: StridedView, by_column: bool) -> np.ndarray:
    dynamic = view.dynamic
    assert dynamic is not None
    array = dynamic.index.array
    return (array.T if by_column else array).reshape(-1)


def dynamic_rows(view: StridedView, by_column: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Flat element numbers of a vector-offset view, and which of its rows are in bounds.

    Row r belongs to the r-th index, counted along the index tile's rows or `by_column`.
    Shapes: elements (P, ...) as the view's shape, valid (P,). Rows out of bounds point at row 0.
    Raises AccessError for a row that starts in bounds and runs past the end of the tensor.
    """
    dynamic = view.dynamic
    assert dynamic is not None
    index = _indices(view, by_column).astype(np.int64)
    valid = (index >= 0) & (index < dynamic.limit)
    inner = sum(
        (
            np.arange(n).reshape((-1,) + (1,) * (view.spec.rank - 2 - d)) * s
            for d, (n, s) in enumerate(zip(view.shape[1:], view.strides[1:], strict=True))
        ),
        start=np.zeros(view.shape[1:], np.int64),
    )
    rows = np.where(valid, index, 0) * dynamic.stride + view.offset
    _ends_inside(view, rows)
    return rows.reshape((-1,) + (1,) * (view.spec.rank - 1)) + inner, valid


def _ends_inside(view: StridedView, rows: np.ndarray) -> None:
    low, high = reach(view.shape[1:], view.strides[1:])
    size = view.storage.flat.nbytes // view.array.itemsize
    outside = np.flatnonzero((rows + low < 0) | (rows + high >= size))
    if outside.size:
        row = int(outside[0])
        raise AccessError(
            f"vector_offset row {row} runs outside the tensor",
            expected=f"elements 0 to {size - 1}",
            got=f"elements {rows[row] + low} to {rows[row] + high}",
            rule="NKI: NkiTensor.ap",
        )


def reject_out_of_bounds(view: StridedView, valid: np.ndarray, by_column: bool = False) -> None:
    """Raise AccessError naming the first row whose index leaves the tensor."""
    dynamic = view.dynamic
    assert dynamic is not None
    row = int(np.flatnonzero(~valid)[0])
    index = int(_indices(view, by_column)[row])
    raise AccessError(
        f"vector_offset row {row} is {index}, outside the indexed dimension",
        expected=f"0 <= index < {dynamic.limit}",
        got=str(index),
        hint="use oob_mode=oob_mode.skip to leave such rows untouched",
        rule="NKI: dma_copy, oob_mode",
    )
