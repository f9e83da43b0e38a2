"""`out=`: results written to an array that exists.

NumPy's reductions add in the common dtype of the elements and of `out=`, and store the partial sum
there each time that a buffer (8,192 elements) is used up. Sums of floats that are cut off on the
way to integers therefore depend on that buffer:
`np.sum(np.full((3, n), 0.6, "f4"), 0, out=int32)` is 1 for n = 5000 and 0 for n = 9000 (measured
with NumPy 2.4). Those are rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import (
    asked_dtype,
    dtype_of,
    narrowed,
    operand,
    resolved,
    shape_of,
)
from nkigen_lite.frontend.arrays.views import broadcast_to
from nkigen_lite.frontend.indexing.subscripts import put
from nkigen_lite.tensors.errors import ArgumentError, BroadcastError


def broadcast_into(target: Any, result: TracedArray, name: str, where: Any) -> TracedArray:
    """`out=` of a universal function: its operands and its mask are broadcast to it."""
    check_mask(where, f"np.{name}")
    if not isinstance(target, TracedArray):
        return into(target, result, name)
    if target.is_scalar:
        raise ArgumentError(f"np.{name}: return arrays must be of ArrayType", got="a number")
    if _broadcast(result.shape, shape_of(where), target.shape) == target.shape:
        result = broadcast_to(result, target.shape)
    _check_into(target, result, name)
    if where is not True:
        given: Any = result.astype(target.dtype)
        chosen: Any = np.where(where, given, target)
        result = chosen
    return into(target, result, name)


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def check_mask(where: Any, name: str) -> None:
    """Raises ArgumentError for what is not an array of bool."""
    if dtype_of(operand(where)) not in (bool, np.bool_):
        raise ArgumentError(f"{name}: where= is not an array of bool", got=str(dtype_of(where)))


def into(target: Any, result: TracedArray, name: str, casting: Any = "same_kind") -> TracedArray:
    """`out=`: what an in-place operation does."""
    if not isinstance(target, TracedArray):
        result.__array__()
    _check_into(target, result, name, casting)
    put(target, ..., result)
    return target


def _check_into(
    target: TracedArray, result: TracedArray, name: str, casting: Any = "same_kind"
) -> None:
    """Raises what NumPy raises for a result of another kind or shape."""
    if not np.can_cast(result.dtype, target.dtype, casting):
        raise ArgumentError(
            f"np.{name}: {result.dtype} results do not go into {target.dtype} in place",
            hint="write x = x + y, or convert with .astype first",
        )
    if result.shape != target.shape:
        raise BroadcastError(
            f"np.{name}: the result does not have the shape of the output",
            expected=str(target.shape), got=str(result.shape),
        )  # fmt: skip


Keywords = dict[str, Any]
Adapt = Callable[[str, TracedArray, TracedArray, Any], Keywords]
"""(name, array, out, dtype=) → what the reduction is called with beside the user's arguments."""


def _reject(name: str, out: np.dtype, what: str, expected: str) -> NoReturn:
    raise ArgumentError(
        f"np.{name}: {what}", expected=expected, got=str(out), operand="out",
        hint=f"reduce first, convert then: out[...] = np.{name}(x, …) without out=",
    )  # fmt: skip


def _reject_conversion(name: str, given: np.dtype, out: np.dtype) -> NoReturn:
    what = f"NumPy converts {given} to {out} while it reduces, where its buffers end"
    _reject(name, out, what, f"out= of a dtype that holds every {given}")


def _is_float(dtype: np.dtype) -> bool:
    return narrowed(dtype).is_float


def _is_whole(dtype: np.dtype) -> bool:
    return narrowed(dtype).is_integer


def _common(name: str, ufunc: np.ufunc, out: np.dtype, given: np.dtype) -> np.dtype:
    """The dtype that NumPy computes in; its error where it has no such function."""
    return resolved(f"np.{name}", lambda: ufunc.resolve_dtypes((out, given, None)))[0]


def added(ufunc: np.ufunc) -> Adapt:
    """Sums and products: of integers modulo the range of `out=`, of floats in the wider type."""

    def adapt(name: str, a: TracedArray, out: TracedArray, dtype: Any) -> Keywords:
        if dtype is not None:
            makes = asked_dtype(dtype)[0]
        else:
            makes = _common(name, ufunc, out.dtype, a.dtype)
            if _is_whole(out.dtype) and not _is_float(a.dtype):
                makes = out.dtype
        same_kind = _is_float(makes) == _is_float(out.dtype)
        if makes != out.dtype and (not same_kind or out.dtype == np.bool_):
            _reject_conversion(name, a.dtype if dtype is None else makes, out.dtype)
        return {"dtype": makes}

    return adapt


def joined(ufunc: np.ufunc) -> Adapt:
    """Differences and bits, in the array's own type: modulo the range of `out=`."""

    def adapt(name: str, a: TracedArray, out: TracedArray, _dtype: Any) -> Keywords:
        _common(name, ufunc, out.dtype, a.dtype)
        widens = _is_whole(a.dtype) and _is_float(out.dtype)
        cuts_off = _is_float(a.dtype) and not _is_float(out.dtype)
        if a.dtype != out.dtype and (widens or cuts_off or out.dtype == np.bool_):
            _reject_conversion(name, a.dtype, out.dtype)
        return {}

    return adapt


def extreme(name: str, a: TracedArray, out: TracedArray, _dtype: Any) -> Keywords:
    """The converted extreme is the extreme of what is converted, if order survives."""
    given, held = narrowed(a.dtype), narrowed(out.dtype)
    keeps = (
        np.can_cast(a.dtype, out.dtype, "safe") or given is held or held.is_float
        or (given.is_float and held is narrowed(np.dtype(np.int32)))
    )  # fmt: skip
    if not keeps:
        _reject_conversion(name, a.dtype, out.dtype)
    return {}


def average(name: str, a: TracedArray, out: TracedArray, dtype: Any) -> Keywords:
    """The sum is rounded to the type of `out=` before it is divided, and the quotient is one."""
    if not _is_float(out.dtype):
        _reject_conversion(name, a.dtype, out.dtype)
    if out.dtype.itemsize < 4:
        return {"stored": out.dtype}
    adds_in = a.dtype if dtype is None else asked_dtype(dtype)[0]
    if dtype is not None and adds_in.itemsize < 4:
        what = f"NumPy adds in {adds_in}, as dtype= requests, and divides in {out.dtype}"
        _reject(name, out.dtype, what, f"out= of {adds_in}, or no dtype=")
    return {"dtype": np.dtype(np.float32)} if adds_in.itemsize < 4 and _is_float(adds_in) else {}


def root(name: str, a: TracedArray, out: TracedArray, dtype: Any) -> Keywords:
    """As means; NumPy itself rejects what is not a float."""
    if not _is_float(out.dtype):
        _reject(name, out.dtype, f"square roots do not go into {out.dtype}", "out= of floats")
    return average(name, a, out, dtype)


def floating(name: str, a: TracedArray, out: TracedArray, _dtype: Any) -> Keywords:
    """Results that have fractions."""
    if not _is_float(out.dtype):
        _reject_conversion(name, a.dtype, out.dtype)
    return {}


def place(name: str, _a: TracedArray, out: TracedArray, _dtype: Any) -> Keywords:
    """NumPy takes what int64 holds."""
    resolved(f"np.{name}", lambda: np.zeros(0, out.dtype).astype(np.int64, casting="safe"))
    return {}


def truth(_name: str, _a: TracedArray, _out: TracedArray, _dtype: Any) -> Keywords:
    """False and True become 0 and 1 in any type."""
    return {}
