"""Sums, means, extremes, their places and running results, as NumPy's functions take them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nki_dtypes import bool_, float32
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import asked_dtype, cast_value, fresh, narrowed, resolved
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.arrays.views import axes_of, axis_of, reshape
from nkigen_lite.frontend.functions.concatenation import concatenate, full_like
from nkigen_lite.tensors.errors import ArgumentError, UnsupportedFunctionError, ValueRangeError


def _reduced(
    x: TracedArray, op: str, dtype: np.dtype, value: str, axis: Any, keepdims: bool
) -> TracedArray:
    axes = reduced_axes(axis, x.ndim)
    if axes:
        value = x.tape.emit(op, value, axes=axes, keepdims=bool(keepdims))
    return fresh(x.tape, value, dtype, (x,))


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from 0. NumPy lets numbers be reduced along axis 0 or -1 as well, but for their
    means."""
    return () if not ndim and axis in (0, -1) else axes_of(axis, ndim)


def summed_dtype(x: TracedArray, dtype: Any) -> np.dtype:
    """NumPy adds and multiplies small integers and bool in 64 bits."""
    if dtype is not None:
        return asked_dtype(dtype)[0]
    return np.add.reduce(np.zeros(0, x.dtype)).dtype


def _accumulate(op: str, a: TracedArray, axis: Any, dtype: Any, keepdims: bool) -> TracedArray:
    makes = summed_dtype(a, dtype)
    if makes == np.bool_:
        raise ArgumentError(f"np.{op}: dtype=bool is not translated", hint="np.any, np.all")
    value = cast_value(a.tape, a.value, narrowed(makes))
    return _reduced(a, op, makes, value, axis, keepdims)


def total(a: TracedArray, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return _accumulate("sum", a, axis, dtype, keepdims)


def check_factors(name: str, a: TracedArray, makes: np.dtype) -> None:
    """Raises ArgumentError for products of integers in float16: NumPy rounds after every factor, to
    infinity beyond 65,504, and that times 0 is NaN; in float32, rounded once, it is 0."""
    if makes == np.float16 and a.dtype.kind in "iu":
        raise ArgumentError(
            f"np.{name}: products of integers in float16 are infinite, or NaN, on the way",
            expected="a dtype that holds them", got=f"{a.dtype} as {makes}", operand="dtype",
            hint=f"np.{name}(x, dtype=np.float32).astype(np.float16)",
        )  # fmt: skip


def product(a: TracedArray, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    check_factors("prod", a, summed_dtype(a, dtype))
    return _accumulate("prod", a, axis, dtype, keepdims)


def mean(
    a: TracedArray, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True,
    stored: np.dtype | None = None,
) -> Any:  # fmt: skip
    """Summed in float32 for every type, rounded once; twice where the sum is `stored` in a
    narrower type."""
    makes = _mean_dtype(a, dtype)
    if where is not True or stored is not None:
        x = _rounded(a, np.dtype(np.float32))
        return _rounded(_chosen_mean(x, axes_of(axis, a.ndim), keepdims, where, stored), makes)
    value = cast_value(a.tape, a.value, narrowed(makes))
    return _reduced(a, "mean", makes, value, axes_of(axis, a.ndim), keepdims)


def _chosen_mean(
    x: TracedArray, axes: tuple[int, ...], keepdims: bool, where: Any,
    stored: np.dtype | None = None,
) -> Any:  # fmt: skip
    """Of what a mask chooses."""
    count = _chosen_count(x, axes, keepdims, where)
    return _kept(np.sum(x, axis=axes, keepdims=keepdims, where=where), stored) / count


def _kept(total: Any, stored: np.dtype | None) -> Any:
    """The sum as `out=` holds it until it is divided."""
    return total if stored is None else total.astype(stored).astype(np.float32)


def _chosen_count(x: TracedArray, axes: tuple[int, ...], keepdims: bool, where: Any) -> Any:
    if where is True:
        return np.float32(prod(x.shape[d] for d in axes))
    ones = np.ones_like(x)
    return np.sum(ones, axis=axes, keepdims=keepdims, where=where)


def _mean_dtype(x: TracedArray, dtype: Any) -> np.dtype:
    if dtype is None:
        return resolved("np.mean", lambda: np.mean(np.zeros(1, x.dtype)).dtype)
    asked, held = asked_dtype(dtype)
    if not held.is_float:
        raise ArgumentError("np.mean: an integer dtype= is not translated", got=str(asked))
    return asked


def _freedom(ddof: Any, correction: Any) -> Any:
    """The number subtracted from the count: NumPy has two names for it."""
    if correction is not None and ddof != 0:
        raise ValueRangeError("ddof and correction can't be provided simultaneously.")
    given = ddof if correction is None else correction
    if isinstance(given, TracedArray) or np.ndim(given):
        raise ValueRangeError("ddof is one number known here", got=repr(given), operand="ddof")
    resolved("ddof", lambda: np.intp(0) + given)
    return given


def _spread(
    a: TracedArray,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    stored: np.dtype | None,
) -> tuple[Any, np.dtype]:
    """The variance, still in float32, and the dtype that NumPy gives it."""
    makes = _mean_dtype(a, dtype)
    axes = axes_of(axis, a.ndim)
    x = fresh(a.tape, cast_value(a.tape, a.value, float32), np.dtype(np.float32), (a,))
    if where is not True:
        away = x - _chosen_mean(x, axes, True, where)
        squares: Any = np.sum(away * away, axis=axes, keepdims=keepdims, where=where)
        count = _chosen_count(x, axes, keepdims, where)
        return _kept(squares, stored) / np.maximum(count - np.float32(ddof), np.float32(0)), makes
    away = x - mean(x, axes, None, True)
    squares = total(away * away, axes, None, keepdims)
    freedom = max(np.intp(prod(a.shape[d] for d in axes)) - ddof, 0)
    return np.divide(_kept(squares, stored), np.float32(freedom)), makes


def _rounded(x: TracedArray, dtype: np.dtype) -> TracedArray:
    return fresh(x.tape, cast_value(x.tape, x.value, narrowed(dtype)), dtype, (x,))


def var(
    a: TracedArray, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: bool = False,
    correction: Any = None, where: Any = True, stored: np.dtype | None = None,
) -> Any:  # fmt: skip
    """mean |x - mean x|² · n / (n - ddof); in float32, rounded once."""
    return _rounded(*_spread(a, axis, dtype, _freedom(ddof, correction), keepdims, where, stored))


def std(
    a: TracedArray, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: bool = False,
    correction: Any = None, where: Any = True, stored: np.dtype | None = None,
) -> Any:  # fmt: skip
    """√var."""
    spread, makes = _spread(a, axis, dtype, _freedom(ddof, correction), keepdims, where, stored)
    return _rounded(np.sqrt(spread), makes)


def _extreme(op: str, a: TracedArray, axis: Any, keepdims: bool) -> TracedArray:
    if any(a.shape[d] == 0 for d in reduced_axes(axis, a.ndim)):
        name = {"max": "maximum", "min": "minimum"}[op]
        raise ValueRangeError(
            f"zero-size array to reduction operation {name} which has no identity", got=str(a.spec)
        )
    return _reduced(a, op, a.dtype, a.value, axis, keepdims)


def largest(a: TracedArray, axis: Any = None, keepdims: bool = False) -> Any:
    return _extreme("max", a, axis, keepdims)


def smallest(a: TracedArray, axis: Any = None, keepdims: bool = False) -> Any:
    return _extreme("min", a, axis, keepdims)


def any_true(a: TracedArray, axis: Any = None, keepdims: bool = False) -> Any:
    return _truth("any", a, axis, keepdims)


def all_true(a: TracedArray, axis: Any = None, keepdims: bool = False) -> Any:
    return _truth("all", a, axis, keepdims)


def _truth(op: str, a: TracedArray, axis: Any, keepdims: bool) -> TracedArray:
    value = cast_value(a.tape, a.value, bool_)
    return _reduced(a, op, np.dtype(bool), value, axis, keepdims)


def _place(op: str, a: TracedArray, axis: Any, keepdims: bool) -> TracedArray:
    """int64 to NumPy, int32 here. The first NaN, else the first of equals."""
    axis = None if not a.ndim and axis in (0, -1) else axis
    value, along = a.value, 0 if axis is None else axis_of(axis, a.ndim)
    if axis is None:
        value = a.tape.emit("reshape", value, shape=(a.size,))
    if a.tape.spec(value).shape[along] == 0:
        raise ValueRangeError(f"attempt to get {op} of an empty sequence", got=str(a.spec))
    place = a.tape.emit(op, value, axis=along, keepdims=bool(keepdims) and axis is not None)
    if keepdims and axis is None:
        place = a.tape.emit("reshape", place, shape=(1,) * a.ndim)
    return fresh(a.tape, place, np.dtype(np.int64), (a,))


def argmax(a: TracedArray, axis: Any = None, keepdims: bool = False) -> Any:
    return _place("argmax", a, axis, keepdims)


def argmin(a: TracedArray, axis: Any = None, keepdims: bool = False) -> Any:
    return _place("argmin", a, axis, keepdims)


# ----------------------------------------------------------------- running results


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
        a, axis = reshape(a, (-1,)), 0
    a = a if a.ndim else reshape(a, (1,))
    axis = axis_of(axis, a.ndim)
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
        along = axis_of(0 if axis is None else axis, x.ndim)
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
