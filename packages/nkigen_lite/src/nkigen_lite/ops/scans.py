"""Running sums, products and extremes along an axis."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import Any

import numpy as np

from nkigen_lite.ops._record import INT, NUMBER, Engine, EngineOp, Kind, Op, mismatch, of_kinds
from nkigen_lite.tensors.spec import Shape

_SCANS: tuple[tuple[str, np.ufunc, str, float], ...] = (
    ("cumsum", np.add, "add", 0.0),
    ("cumprod", np.multiply, "multiply", 1.0),
    ("cummax", np.maximum, "maximum", -inf),
    ("cummin", np.minimum, "minimum", inf),
)
"""(name, function, the engine's operation, what it begins with)."""


def _along_axis(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axis = shapes, attrs["axis"]
    if not 0 <= axis < len(shape):
        raise mismatch(f"axis {axis}", expected=f"an axis from 0 to {len(shape) - 1}")
    return shape


def _accumulate(ufunc: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """Integers stay in their own type, modulo its range."""
    return ufunc.accumulate(x, axis=axis, dtype=x.dtype)


SCANS: tuple[Op, ...] = tuple(
    Op(
        name, Kind.scan, ("x",), partial(_accumulate, ufunc), _along_axis,
        of_kinds(*NUMBER), {"axis": INT}, engine=EngineOp(Engine.scan, engine, start),
    )
    for name, ufunc, engine, start in _SCANS
)  # fmt: skip
"""`cumsum`: each element the sum of those up to it along `axis`; and the like."""
