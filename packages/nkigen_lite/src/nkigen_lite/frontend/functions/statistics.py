"""Functions composed of sums and extremes: norms, averages, counts, comparisons of arrays."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array
from nkigen_lite.frontend.arrays.promotion import (
    as_array,
    operand,
    resolved,
    shape_of,
    tape_of,
    traced,
)
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.functions.concatenation import concatenate
from nkigen_lite.tensors.errors import BroadcastError, ValueRangeError

# ------------------------------------------------------------------------ differences


@implements("diff")
def _diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Any:
    if n < 0:
        raise ValueRangeError(f"order must be non-negative but got {n}")
    a = traced(tape_of(a, prepend, append), a)
    axis = views.axis_of(axis, a.ndim)
    one = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    sides = [
        None if s is None else np.broadcast_to(s, one) if not shape_of(operand(s)) else s
        for s in (prepend, append)
    ]
    parts = [x for x in (sides[0], a, sides[1]) if x is not None]
    x: Any = concatenate(parts, axis) if len(parts) > 1 else a
    before = (slice(None),) * axis
    for _ in range(n):
        later, sooner = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later != sooner if x.dtype == bool else later - sooner
    return x


@implements("trapezoid")
def _trapezoid(y: Array, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    last = np.moveaxis(y, axis, -1)
    if x is not None:
        dx = (
            np.diff(x)
            if len(shape_of(operand(x))) == 1
            else np.moveaxis(np.diff(x, axis=axis), axis, -1)
        )
    return np.sum(dx * (last[..., 1:] + last[..., :-1]) / 2.0, axis=-1)


@implements("ptp")
def _ptp(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    return np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims)


# --------------------------------------------------------------------------- averages


@implements("average")
def _average(a: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Any:
    if weights is None:
        return np.mean(a, axis, keepdims=keepdims)
    shape, of_weights = shape_of(operand(a)), shape_of(operand(weights))
    if of_weights != shape:
        if axis is None or len(of_weights) != 1:
            raise BroadcastError(
                "np.average: shape of weights must be consistent with shape of a along axis",
                got=f"{of_weights} and {shape}",
            )
        along = views.axis_of(axis, len(shape))
        if of_weights[0] != shape[along]:
            raise BroadcastError("Length of weights not compatible with specified axis.")
        lot = [-1 if d == along else 1 for d in range(len(shape))]
        weights = np.broadcast_to(np.reshape(weights, lot), shape)
    dtypes = [as_array(given).dtype for given in (a, weights)]
    wide = ("f8",) * (dtypes[0].kind in "iub")
    dtype = resolved("np.average", lambda: np.result_type(*dtypes, *wide))
    total = np.sum(np.multiply(a, weights, dtype=dtype), axis=axis, keepdims=keepdims)
    return total / np.sum(weights, axis=axis, dtype=dtype, keepdims=keepdims)


@implements("count_nonzero")
def _count_nonzero(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    return np.sum(a != 0, axis=axis, keepdims=keepdims)


def _without_nan(op: Any, instead: float) -> Any:
    def reduced(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
        if not a.spec.dtype.is_float:
            return op(a, axis=axis, keepdims=keepdims)
        return op(np.where(np.isnan(a), instead, a), axis=axis, keepdims=keepdims)

    return reduced


def _extreme_but_nan(op: Any, instead: float) -> Any:
    """NaN where there is nothing else."""

    def reduced(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
        found = _without_nan(op, instead)(a, axis, keepdims)
        if not a.spec.dtype.is_float:
            return found
        has_none = np.all(np.isnan(a), axis=axis, keepdims=keepdims)
        return np.where(has_none, nan, found).astype(a.dtype)

    return reduced


@implements("nanmean")
def _nanmean(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    if not a.spec.dtype.is_float:
        return np.mean(a, axis, keepdims=keepdims)
    total = _without_nan(np.sum, 0)(a.astype(np.float32), axis, keepdims)
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)
    return (total / count.astype(np.float32)).astype(a.spec.dtype.storage)


# --------------------------------------------------------------------- element by element


implements("nansum")(_without_nan(np.sum, 0))
implements("nanprod")(_without_nan(np.prod, 1))
implements("nanmax")(_extreme_but_nan(np.max, -inf))
implements("nanmin")(_extreme_but_nan(np.min, inf))
