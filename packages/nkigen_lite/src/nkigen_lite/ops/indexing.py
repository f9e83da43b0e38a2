"""Elements at places that are computed: read along one axis, written along one axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nki_dtypes import DType, float32, int32
from nkigen_lite.ops._record import INT, ErrorBound, Kind, Op, mismatch
from nkigen_lite.tensors.spec import Shape


def _rows(shape: Shape, index: Shape, attrs: Mapping[str, Any]) -> Shape:
    """The shape of the elements at `index` along the axis."""
    axis = attrs["axis"]
    if not 0 <= axis < len(shape):
        raise mismatch(f"axis {axis}", expected=f"an axis from 0 to {len(shape) - 1}")
    return (*shape[:axis], *index, *shape[axis + 1 :])


def _gathered(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    shape, index = shapes
    return _rows(shape, index, attrs)


def _scattered(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    shape, index, part = shapes
    if _rows(shape, index, attrs) != part:
        raise mismatch(f"a part of shape {part}", expected=str(_rows(shape, index, attrs)))
    return shape


def _along(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    shape, index = shapes
    if not shape or len(shape) != len(index) or shape[:-1] != index[:-1]:
        raise mismatch("shapes differ beside the last axis")
    return index


def _first_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    first, index, *rest = dtypes
    if index is not int32:
        raise mismatch(f"indices of {index}", expected="int32")
    if any(d is not first for d in rest):
        raise mismatch("operands differ in dtype", expected=f"{first}")
    return first


def _only_float32(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    if _first_dtype(dtypes, attrs) is not float32:
        raise mismatch(f"{dtypes[0]} operands", expected="float32")
    return float32


def _gather(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    return np.take(x, index, axis)


def _gather_along(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, index.astype(np.int64), -1)


def _scatter(x: np.ndarray, index: np.ndarray, part: np.ndarray, axis: int) -> np.ndarray:
    made = x.copy()
    made[(slice(None),) * axis + (index,)] = part
    return made


def _scatter_add(x: np.ndarray, index: np.ndarray, part: np.ndarray, axis: int) -> np.ndarray:
    made = x.copy()
    key: Any = (slice(None),) * axis + (index,)
    np.add.at(made, key, part)
    return made


_AXIS = {"axis": INT}

GATHERS: tuple[Op, ...] = (
    Op("gather", Kind.indirect, ("x", "index"), _gather, _gathered, _first_dtype, _AXIS),
    Op("gather_along", Kind.indirect, ("x", "index"), _gather_along, _along, _first_dtype),
)
"""`gather` is `np.take` with indices in bounds; `gather_along` `np.take_along_axis` of the last
axis."""

SCATTERS: tuple[Op, ...] = (
    Op("scatter", Kind.indirect, ("x", "index", "part"), _scatter, _scattered, _first_dtype,
       _AXIS),
    Op("scatter_add", Kind.indirect, ("x", "index", "part"), _scatter_add, _scattered,
       _only_float32, _AXIS, error=ErrorBound(8)),
)  # fmt: skip
"""`x` with `part` at the places `index` of an axis: of equal indices the last one counts, or all
are added."""
