"""Running sums, products and extremes along an axis."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from nki_dtypes import Kind as NumberKind
from nkigen_lite.ops.record import INT, Kind, Op, Shape, misfit, of_kinds

_UFUNCS: dict[str, np.ufunc] = {
    "cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
}  # fmt: skip


def _along_axis(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axis = shapes, attrs["axis"]
    if not 0 <= axis < len(shape):
        raise misfit(f"axis {axis}", expected=f"an axis from 0 to {len(shape) - 1}")
    return shape


def _accumulate(ufunc: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """Integers stay in their own type, modulo its range."""
    return ufunc.accumulate(x, axis=axis, dtype=x.dtype)


SCANS: tuple[Op, ...] = tuple(
    Op(
        name, Kind.scan, ("x",), partial(_accumulate, ufunc), _along_axis,
        of_kinds(NumberKind.FLOAT, NumberKind.INT, NumberKind.UINT), {"axis": INT},
    )
    for name, ufunc in _UFUNCS.items()
)  # fmt: skip
"""`cumsum`: each element the sum of those up to it along `axis`; and the like."""
