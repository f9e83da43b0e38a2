"""Elements chosen by conditions and bounds; whole arrays compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.copies import copied
from nkigen_lite.frontend.arrays.promotion import (
    as_array,
    as_value,
    check_casting,
    common_dtype,
    fresh,
    operand,
    resolved,
    shape_of,
    tape_of,
    traced,
)
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.tensors.errors import ArgumentError, BroadcastError, ValueRangeError


@implements("where")
def where(condition: Any, x: Any = None, y: Any = None) -> TracedArray:
    """`np.where` of three arguments."""
    if x is None or y is None:
        raise ArgumentError(
            "np.where of a condition alone has a shape that depends on values",
            hint="np.where(condition, x, y)",
        )
    tape = tape_of(condition, x, y)
    condition, x, y = (operand(a) for a in (condition, x, y))
    try:
        np.broadcast_shapes(*map(shape_of, (condition, x, y)))
    except ValueError:
        raise BroadcastError("np.where: operands could not be broadcast together") from None
    dtype = common_dtype("np.where", (x, y))
    test = as_value(tape, condition, np.dtype(bool), "where")
    branches = (as_value(tape, a, dtype, "where") for a in (x, y))
    return fresh(tape, tape.emit("where", test, *branches), dtype, (condition, x, y))


@implements("clip")
def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
    max: Any = None,
) -> Any:  # fmt: skip
    """`np.clip`: minimum(maximum(a, low), high)."""
    low: Any = min if a_min is None else a_min
    high: Any = max if a_max is None else a_max
    tape = tape_of(a, low, high, out)
    if out is not None:
        return np.positive(clip(traced(tape, a), low, high), out=out)
    a, *kinds = operand(a), *map(_sample, (a, low, high))
    if low is None and high is None:
        return copied(a)
    makes = resolved("np.clip", lambda: np.clip(*kinds).dtype)
    result: Any = fresh(tape, as_value(tape, a, makes, "np.clip"), makes, (a,))
    for bound, choose in zip((low, high), (np.maximum, np.minimum), strict=True):
        if bound is not None and not _is_beyond(bound, makes):
            result = choose(result, fresh(tape, as_value(tape, bound, makes, "np.clip"), makes))
    return result


def _sample(x: Any) -> Any:
    """An empty array of the operand's dtype, or the Python number."""
    x = x if x is None else operand(x)
    return np.zeros(0, x.dtype) if hasattr(x, "dtype") else x


def _is_beyond(bound: Any, dtype: np.dtype) -> bool:
    """Whether no integer of this dtype reaches the bound."""
    if type(bound) is not int or dtype.kind not in "iu":
        return False
    return not np.iinfo(dtype).min <= bound <= np.iinfo(dtype).max


@implements("nan_to_num")
def _nan_to_num(
    x: Array, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Only what NumPy itself counts as floats: not bfloat16, not fp8."""
    is_number, dtype = x.is_scalar, x.spec.dtype
    x = np.copy(x) if copy or is_number else x
    if issubclass(x.dtype.type, np.inexact):
        x[...] = _finite(x, dtype, nan, posinf, neginf)
    return x[()] if is_number else x


def _finite(x: Array, dtype: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    top = dtype.max if posinf is None else posinf
    low = dtype.min if neginf is None else neginf
    x = np.where(np.isnan(x), nan, x)
    return np.where(x == inf, top, np.where(x == -inf, low, x))


@implements("select")
def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueRangeError("list of cases must be same length as list of conditions")
    for place, condition in enumerate(condlist):
        if as_array(condition).dtype.kind != "b":
            raise ArgumentError(
                f"invalid entry {place} in condlist: should be boolean ndarray",
                got=str(as_array(condition).dtype), operand="condlist",
            )  # fmt: skip
    choices = [_choice(choice) for choice in (*choicelist, default)]
    dtype = resolved("np.select", lambda: np.result_type(*map(_weak_or_dtype, choices)))
    *chosen, last = [
        c.astype(dtype) if hasattr(c, "dtype") else np.asarray(c, dtype) for c in choices
    ]
    pairs = zip(reversed(condlist), reversed(chosen), strict=True)
    return reduce(lambda rest, pair: np.where(*pair, rest), pairs, last)


def _choice(given: Any) -> Any:
    """Python's ints and floats are weak; all else is an array."""
    return given if type(given) in (int, float) else as_array(given)


def _weak_or_dtype(given: Any) -> Any:
    return given.dtype if hasattr(given, "dtype") else given


@implements("copyto")
def _copyto(dst: Array, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    check_casting("np.copyto", operand(src), dst.dtype, casting)
    dst[...] = src if where is True else np.where(where, src, dst)


# ------------------------------------------------------------ equality and closeness


def _distance(a: Array, b: Array) -> Array:
    """|a - b|, as float64 has it: integers of 32 bits exactly, by the bits of their difference."""
    if a.dtype == b.dtype and a.dtype in (np.int32, np.uint32):
        return (np.maximum(a, b) - np.minimum(a, b)).astype(np.uint32)
    return np.abs(a - b.astype(np.result_type(b.dtype, 1.0)))


def _is_same(a: Array, b: Array) -> Array:
    """a == b: whole numbers exactly, others with `b` no narrower than NumPy makes it."""
    is_whole = a.dtype.kind in "iub" and b.dtype.kind in "iub"
    return a == b if is_whole else a == b.astype(np.result_type(b.dtype, 1.0))


@implements("isclose")
def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    given: list[Any] = [traced(tape_of(a, b), v) for v in (a, b)]
    a, b = given
    near = _distance(a, b) <= atol + rtol * np.abs(b.astype(np.result_type(b.dtype, 1.0)))
    close = (near & np.isfinite(b)) | _is_same(a, b)
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


@implements("allclose")
def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return np.all(_isclose(a, b, rtol, atol, equal_nan))


@implements("array_equal")
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """A truth of the kernel's; False at once for other shapes."""
    if shape_of(operand(a1)) != shape_of(operand(a2)):
        return False
    same = np.equal(a1, a2)
    return np.all(same | (np.not_equal(a1, a1) & np.not_equal(a2, a2)) if equal_nan else same)
