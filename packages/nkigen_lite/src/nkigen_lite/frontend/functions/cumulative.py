"""Running sums, products and extremes, as NumPy's functions take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import cast_value, fresh, narrowed
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.functions.concatenation import concatenate
from nkigen_lite.frontend.functions.creation import full_like
from nkigen_lite.frontend.functions.reductions import check_factors, summed_dtype
from nkigen_lite.tensors.errors import ArgumentError, UnsupportedFunctionError

_ACCUMULATED: dict[np.ufunc, str] = {
    np.add: "cumsum", np.multiply: "cumprod", np.maximum: "cummax", np.minimum: "cummin",
}  # fmt: skip

_OF_TRUTHS = {"cumsum": "cummax", "cumprod": "cummin"}
"""Sums of bool are `or`, products `and`."""


def _running(op: str, a: TracedArray, axis: Any, makes: np.dtype) -> TracedArray:
    if makes == np.bool_:
        whole = _running(_OF_TRUTHS.get(op, op), a.astype(bool), axis, np.dtype(np.uint8))
        return whole.astype(bool)
    if op == "cumprod":
        check_factors(op, a, makes)
    if axis is None:
        a, axis = views.reshape(a, (-1,)), 0
    a = a if a.ndim else views.reshape(a, (1,))
    axis = views.axis_of(axis, a.ndim)
    value = cast_value(a.tape, a.value, narrowed(makes))
    if a.size:
        value = a.tape.emit(op, value, axis=axis)
    return fresh(a.tape, value, makes, (a,), scalar=False)


def cumsum(a: TracedArray, axis: Any = None, dtype: Any = None) -> TracedArray:
    return _running("cumsum", a, axis, summed_dtype(a, dtype))


def cumprod(a: TracedArray, axis: Any = None, dtype: Any = None) -> TracedArray:
    return _running("cumprod", a, axis, summed_dtype(a, dtype))


def _cumulative(op: str, start: int) -> Any:
    def running(
        x: TracedArray, axis: Any = None, dtype: Any = None, include_initial: bool = False
    ) -> TracedArray:
        if axis is None and x.ndim > 1:
            raise ArgumentError(f"For arrays of rank {x.ndim} axis must be given", operand="axis")
        along = views.axis_of(0 if axis is None else axis, x.ndim)
        found = _running(op, x, along, summed_dtype(x, dtype))
        if not include_initial:
            return found
        first = full_like(found, start, shape=(*x.shape[:along], 1, *x.shape[along + 1 :]))
        return concatenate([first, found], along)

    return running


def accumulated(ufunc: np.ufunc, array: TracedArray, axis: Any = 0, dtype: Any = None) -> Any:
    """`np.add.accumulate(x)` is np.cumsum along axis 0; and so on."""
    op = _ACCUMULATED.get(ufunc)
    if op is None:
        raise UnsupportedFunctionError(
            f"np.{ufunc.__name__}.accumulate is not translated",
            expected=", ".join(f"np.{u.__name__}.accumulate" for u in _ACCUMULATED),
        )
    if not array.ndim:
        raise ArgumentError("cannot accumulate on a scalar", got=str(array.spec))
    extreme = op in ("cummax", "cummin")
    return _running(op, array, axis, array.dtype if extreme else summed_dtype(array, dtype))


implements("cumulative_sum")(_cumulative("cumsum", 0))
implements("cumulative_prod")(_cumulative("cumprod", 1))
