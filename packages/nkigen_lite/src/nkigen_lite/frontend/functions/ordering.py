"""Arrays in order: sorted, the places of sorted elements, the largest ones, middles, places among
sorted numbers. NaN comes last, as NumPy has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nki_dtypes import float32
from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray, method
from nkigen_lite.frontend.arrays.promotion import cast_value, fresh, tape_of, traced
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.tensors.errors import (
    UnsupportedFunctionError,
    UnsupportedKeywordError,
    ValueRangeError,
)

EIGHT = 8
"""Elements that are found at once; where there are more, each eight are replaced by -inf."""
MOST = 16_384
"""Elements of a row in which the largest are found at once [NKI: max8]."""
LOWEST, LOW = -float(np.finfo(np.float32).max), -3.3e38
"""What NaN and the smallest numbers become where they are ranked: nothing is below -inf."""

# ------------------------------------------------------------------------------- as float32


def _is_exact(x: Array) -> bool:
    """Whether float32 contains every element."""
    return bool(x.dtype.kind not in "iu" or x.spec.dtype.bits < 32)


def _in_float32(x: Array) -> Array:
    value = cast_value(x.tape, x.value, float32)
    return fresh(x.tape, value, np.dtype(np.float32), scalar=False)


def _emit(op: str, x: Array, **attrs: Any) -> Array:
    dtype = np.dtype(np.int64 if op == "topk_places" else np.float32)
    return fresh(x.tape, x.tape.emit(op, x.value, **attrs), dtype, scalar=False)


def _ranked(x: Array, k: int, has_nan: bool) -> Array:
    """The rows with NaN behind -inf, where the machine would not know."""
    if has_nan:
        return np.where(np.isnan(x), np.float32(LOWEST), np.maximum(x, np.float32(LOW)))
    return np.maximum(x, np.float32(LOW)) if k > EIGHT else x


# ------------------------------------------------------------------------------------- topk


def topk(
    x: Any, k: int, axis: int = -1, largest: bool = True, has_nan: bool = True
) -> tuple[Any, Any]:  # fmt: skip
    """The `k` largest (or smallest) elements along an axis, and their indices: the order is that of
    a stable descending (ascending) argsort, NaN last.

    `has_nan=False` promises an array without NaN: up to 8 elements then take two instructions for
    128 rows. Numbers below -3.3e38, -inf among them, rank equal in any other case.
    """
    if not isinstance(x, TracedArray):
        return _topk_of_known(np.asarray(x), k, axis, largest)
    return _topk_of_traced(x, k, views.axis_of(axis, x.ndim), largest, has_nan)


def _topk_of_traced(x: Array, k: int, axis: int, largest: bool, has_nan: bool) -> tuple[Any, Any]:
    if not 1 <= k <= x.shape[axis]:
        raise ValueRangeError(
            f"topk: k={k} of an axis of {x.shape[axis]} elements", operand="k",
            expected=f"1 to {x.shape[axis]}", got=str(k),
        )  # fmt: skip
    _check_exact("topk", x)
    rows = np.moveaxis(x, axis, -1)
    key = _in_float32(rows) if largest else -_in_float32(rows)
    values, places = _topk_rows(_ranked(key, k, has_nan), k)
    if has_nan or k > EIGHT:
        values = np.take_along_axis(rows, places, -1)
    else:
        values = (values if largest else -values).astype(x.dtype)
    return np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)


def _topk_of_known(x: np.ndarray, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
    key = -x.astype(np.float64) if largest else x
    order = np.argsort(key, axis, kind="stable")
    places = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places


def _topk_rows(key: Array, k: int) -> tuple[Array, Array]:
    """Of long rows by parts: the largest of the largest of each."""
    width = key.shape[-1]
    if width <= MOST:
        return _emit("topk_values", key, k=k), _emit("topk_places", key, k=k)
    parts = [(start, key[..., start : start + MOST]) for start in range(0, width, MOST)]
    found = [(start, _topk_rows(p, min(k, p.shape[-1]))) for start, p in parts]
    values, at = _topk_rows(np.concatenate([v for _, (v, _) in found], -1), k)
    places: Array = np.concatenate([p + start for start, (_, p) in found], -1)
    return values, np.take_along_axis(places, at, -1)


def _check_exact(name: str, x: Array) -> None:
    if not _is_exact(x):
        raise UnsupportedFunctionError(
            f"{name} of {x.spec.dtype} is not translated: engines compare in float32",
            got=str(x.spec), hint="of numbers below 2**24: x.astype(np.float32)",
        )  # fmt: skip


# ---------------------------------------------------------------------------------- sorting


def _along(a: Array, axis: Any, order: Any) -> tuple[Array, int]:
    """The array with the axis last, and where it was; None for all elements."""
    if order is not None:
        raise UnsupportedKeywordError("order= of fields is not translated", operand="order")
    if axis is None:
        return a.flatten(), 0
    along = views.axis_of(axis, a.ndim)
    return np.moveaxis(a, along, -1), along


@implements("sort")
def sort(
    a: Array, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    """`np.sort`: every kind of it gives the same values."""
    rows, along = _along(a, axis, order)
    made = rows
    if rows.size and _is_exact(a):
        made = _emit("sort", _in_float32(rows)).astype(a.dtype)
    elif rows.size:
        made = np.take_along_axis(rows, _argsort_rows(rows), -1)
    return np.moveaxis(made, -1, along)


@implements("argsort")
def argsort(
    a: Array, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    """`np.argsort`: always the stable one; of one number [0], as NumPy has it."""
    if not a.ndim and axis in (-1, 0, None):
        return np.zeros_like(np.reshape(a, 1), np.int32)
    rows, along = _along(a, axis, order)
    return np.moveaxis(_argsort_rows(rows), -1, along)


def _argsort_rows(rows: Array) -> Array:
    """32-bit integers by their low bits, then by their high bits: each step keeps the order of
    equal ones."""
    if not rows.size:
        return np.zeros_like(rows, np.int64)
    if _is_exact(rows):
        return _argsort_of_floats(_in_float32(rows))
    first = _argsort_of_floats(_in_float32(rows & 0xFFFF))
    high = np.take_along_axis(rows >> 16, first, -1)
    return np.take_along_axis(first, _argsort_of_floats(_in_float32(high)), -1)


def _argsort_of_floats(rows: Array) -> Array:
    width = rows.shape[-1]
    return _emit("topk_places", _ranked(-rows, width, True), k=width)


@implements("partition")
def _partition(a: Array, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Array:
    """Sorted, which is a partition by every element."""
    _check_places(a, kth, axis)
    return sort(a, axis, order=order)


def _check_places(a: Array, kth: Any, axis: Any) -> None:
    """Raises ValueRangeError for an element that the axis has not."""
    count = a.size if axis is None else a.shape[axis]
    for k in np.atleast_1d(kth):
        if not -count <= k < count:
            raise ValueRangeError(f"kth(={k}) out of bounds ({count})", operand="kth")


@implements("argpartition")
def _argpartition(a: Array, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Array:
    _check_places(a, kth, axis)
    return argsort(a, axis, order=order)


@method("partition")
def _partition_in_place(
    self: TracedArray, kth: Any, axis: int = -1, kind: Any = None, order: Any = None
) -> None:
    self[...] = _partition(self, kth, axis, order=order)


@method("sort")
def _sort_in_place(self: TracedArray, axis: int = -1, kind: Any = None, order: Any = None) -> None:
    self[...] = sort(self, axis, order=order)


@method("argsort")
def _method_argsort(self: TracedArray, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    return argsort(self, axis, order=order)


# ----------------------------------------------------------------------- middles and quantiles


@implements("median")
def _median(a: Array, axis: Any = None, keepdims: Any = False) -> Any:
    """The mean of the two elements in the middle."""
    return _quantile(a, 0.5, axis, keepdims=keepdims, between=lambda low, high, _: (low + high) / 2)


@implements("percentile")
def _percentile(
    a: Array, q: Any, axis: Any = None, method: Any = "linear", keepdims: Any = False
) -> Any:
    return _quantile(a, np.true_divide(q, 100), axis, method, keepdims)


@implements("quantile")
def _quantile(
    a: Array, q: Any, axis: Any = None, method: Any = "linear", keepdims: Any = False,
    *, between: Callable[[Array, Array, Any], Array] | None = None,
) -> Any:  # fmt: skip
    """Of known q, between the two nearest elements; NaN where there is one."""
    at = _known_quantiles(q, axis, method)
    rows, along = _along(a, axis, None)
    rows = rows if rows.dtype.kind == "f" else rows.astype(np.float32)
    ordered: Array = sort(rows)
    parts = [_at_quantile(ordered, float(q), between or _between) for q in at.ravel()]
    if keepdims:
        axes = tuple(range(a.ndim)) if axis is None else along
        parts = [np.expand_dims(p, axes) for p in parts]
    return parts[0] if not at.ndim else np.stack(parts).reshape(at.shape + parts[0].shape)


def _known_quantiles(q: Any, axis: Any, method: Any) -> np.ndarray:
    if isinstance(q, TracedArray) or method != "linear" or isinstance(axis, tuple):
        raise UnsupportedFunctionError(
            "np.quantile is translated for known q, method='linear' and one axis or all",
            got=f"q={q!r}, method={method!r}, axis={axis!r}",
        )  # fmt: skip
    at = np.asarray(q, np.float64)
    if not ((at >= 0) & (at <= 1)).all():
        raise ValueRangeError("Quantiles must be in the range [0, 1]", got=str(q))
    return at


def _between(low: Array, high: Array, part: Any) -> Array:
    """Interpolated as NumPy does: from the nearer side."""
    step = high - low
    made = low + step * part if part < 0.5 else high - step * (1 - part)
    return np.where(low == high, low, made)


def _at_quantile(ordered: Array, q: float, between: Callable[..., Array]) -> Array:
    last = ordered.shape[-1] - 1
    below = int(q * last)
    part = ordered.dtype.type(q * last - below)
    low, high = ordered[..., below], ordered[..., min(below + 1, last)]
    made = between(low, high, part) if part else low
    end = ordered[..., last]
    return np.where(end == end, made, end)


@implements("searchsorted")
def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """How many elements come before."""
    if sorter is not None or side not in ("left", "right"):
        raise UnsupportedKeywordError("np.searchsorted: side is 'left' or 'right', no sorter=")
    tape = tape_of(a, v)
    rows, wanted = traced(tape, a), traced(tape, v)[..., None]
    if rows.ndim != 1:
        raise ValueRangeError("object too deep for desired array", got=str(rows.spec), operand="a")
    before = rows < wanted if side == "left" else rows <= wanted
    if wanted.dtype.kind == "f":
        last = wanted != wanted
        before = before | (last & (rows == rows) if side == "left" else last)
    return np.sum(before, -1)
