"""Whole patterns that `canonicalize` recognises, so that what follows need not look for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nki_dtypes import Kind as NumberKind
from nkigen_lite.ops.record import FLOAT, INT, Kind, Op, Shape, misfit, of_kinds


def _along_axis(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axis = shapes, attrs["axis"]
    if not 0 <= axis < len(shape) or not shape[axis]:
        raise misfit(f"axis {axis}", expected=f"an axis of {shape} with elements")
    return shape


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _rms_norm(x: np.ndarray, axis: int, epsilon: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + x.dtype.type(epsilon))


COMPOSITES: tuple[Op, ...] = (
    Op(
        "softmax", Kind.composite, ("x",), _softmax, _along_axis, of_kinds(NumberKind.FLOAT),
        {"axis": INT},
    ),
    Op(
        "rms_norm", Kind.composite, ("x",), _rms_norm, _along_axis, of_kinds(NumberKind.FLOAT),
        {"axis": INT, "epsilon": FLOAT},
    ),
)  # fmt: skip
"""softmax: exp(x - max x) / Σ exp(x - max x). rms_norm: x / √(mean x² + epsilon)."""
