"""Elements in order along the last axis: sorted rows, the largest elements and their places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nki_dtypes import DType, float32, int32
from nkigen_lite.ops._record import INT, Kind, Op, mismatch
from nkigen_lite.tensors.spec import Shape


def _first_k(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), k = shapes, attrs["k"]
    if not shape or not 1 <= k <= shape[-1]:
        raise mismatch(f"the {k} largest", expected=f"1 to {shape[-1] if shape else 0}")
    return (*shape[:-1], k)


def _rows(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    if not shapes[0]:
        raise mismatch("no axis to sort along")
    return shapes[0]


def _float32(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    if dtypes[0] is not float32:
        raise mismatch(f"{dtypes[0]} operands", expected="float32")
    return float32


def _places(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    _float32(dtypes, attrs)
    return int32


def _descending(x: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-x, axis=-1, kind="stable")[..., :k].astype(np.int32)


def _largest(x: np.ndarray, k: int) -> np.ndarray:
    return np.take_along_axis(x, _descending(x, k).astype(np.int64), -1)


def _sort(x: np.ndarray) -> np.ndarray:
    return np.sort(x, axis=-1)


ORDERS: tuple[Op, ...] = (
    Op("sort", Kind.indirect, ("x",), _sort, _rows, _float32),
    Op("topk_values", Kind.indirect, ("x",), _largest, _first_k, _float32, {"k": INT}),
    Op("topk_places", Kind.indirect, ("x",), _descending, _first_k, _places, {"k": INT}),
)
"""`sort`: ascending, NaN last. `topk_values`, `topk_places`: the k largest elements and where they
are, as a stable descending argsort; of numbers without NaN."""
