"""Whole patterns that `canonicalize` recognises, so that what follows need not look for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nki_dtypes import Kind as NumberKind
from nkigen_lite.ops._formula import Expr
from nkigen_lite.ops._record import FLOAT, INT, ErrorBound, Kind, Op, mismatch, of_kinds
from nkigen_lite.tensors.spec import Shape


def _along_axis(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axis = shapes, attrs["axis"]
    if not 0 <= axis < len(shape) or not shape[axis]:
        raise mismatch(f"axis {axis}", expected=f"an axis of {shape} with elements")
    return shape


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _rms_norm(x: np.ndarray, axis: int, epsilon: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + x.dtype.type(epsilon))


def _softmax_formula(x: Expr, axis: int) -> Expr:
    axes = {"axes": (axis,), "keepdims": True}
    e = (x - x.call("max", **axes)).call("exp")
    return e * e.call("sum", **axes).call("reciprocal")


def _rms_norm_formula(x: Expr, axis: int, epsilon: float) -> Expr:
    squares = x.call("square").call("sum", axes=(axis,), keepdims=True)
    mean = squares * (1.0 / x.shape[axis])
    return x * (mean + epsilon).call("rsqrt")


COMPOSITES: tuple[Op, ...] = (
    Op(
        "softmax", Kind.composite, ("x",), _softmax, _along_axis, of_kinds(NumberKind.FLOAT),
        {"axis": INT}, decomposition=_softmax_formula, error=ErrorBound(1),
    ),
    Op(
        "rms_norm", Kind.composite, ("x",), _rms_norm, _along_axis, of_kinds(NumberKind.FLOAT),
        {"axis": INT, "epsilon": FLOAT}, decomposition=_rms_norm_formula, error=ErrorBound(8),
    ),
)  # fmt: skip
"""softmax: exp(x - max x) / Σ exp(x - max x). rms_norm: x / √(mean x² + epsilon)."""
