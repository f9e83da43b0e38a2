"""Arrays from nothing: constants and indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nki_dtypes import DType
from nkigen_lite.ops._record import DTYPE, INT, INTS, Attr, Kind, Op, given_dtype, mismatch
from nkigen_lite.tensors.constant import Constant
from nkigen_lite.tensors.spec import Shape


def _as_constant(given: Any) -> Constant:
    if not isinstance(given, Constant):
        raise TypeError("a Constant is needed")
    return given


def _constant(value: Constant) -> np.ndarray:
    return value.array


def _constant_shape(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    return attrs["value"].spec.shape


def _constant_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    return attrs["value"].spec.dtype


def _iota(shape: Shape, axis: int) -> np.ndarray:
    along = [n if d == axis else 1 for d, n in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis]).reshape(along), shape)


def _iota_shape(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    shape, axis = attrs["shape"], attrs["axis"]
    if not 0 <= axis < len(shape):
        raise mismatch(f"axis {axis}", expected=f"an axis from 0 to {len(shape) - 1}")
    return shape


CREATORS: tuple[Op, ...] = (
    Op(
        "constant", Kind.constant, (), _constant, _constant_shape, _constant_dtype,
        {"value": Attr(_as_constant)},
    ),
    Op(
        "iota", Kind.constant, (), _iota, _iota_shape, given_dtype,
        {"shape": INTS, "axis": INT, "dtype": DTYPE}, frozenset({"dtype"}),
    ),
)  # fmt: skip
"""`iota` is each element's own index along `axis`."""
