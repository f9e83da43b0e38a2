"""`out=` of reductions: what NumPy keeps there while it adds up, and what no kernel can repeat.

NumPy adds in the common dtype of the elements and of `out=`, and stores what it has so far there
each time that a buffer (8,192 elements) is used up. Sums of floats that are cut off on the way to
integers therefore depend on that buffer: `np.sum(np.full((3, n), 0.6, "f4"), 0, out=int32)` is 1
for n = 5000 and 0 for n = 9000 (measured with NumPy 2.4). Those are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from nkigen_lite.errors import ArgumentError
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.promotion import asked_dtype, narrowed, resolved

Keywords = dict[str, Any]
Adapt = Callable[[str, TracedArray, TracedArray, Any], Keywords]
"""(name, array, out, dtype=) → what the reduction is called with beside the user's arguments."""


def _refuse(name: str, given: np.dtype, out: np.dtype) -> NoReturn:
    raise ArgumentError(
        f"np.{name}: NumPy converts {given} to {out} while it reduces, where its buffers end",
        expected=f"out= of a dtype that holds every {given}", got=str(out), operand="out",
        hint=f"reduce first, convert then: out[...] = np.{name}(x, …) without out=",
    )  # fmt: skip


def _is_float(dtype: np.dtype) -> bool:
    return narrowed(dtype).is_float


def _is_whole(dtype: np.dtype) -> bool:
    return narrowed(dtype).is_integer


def _common(name: str, ufunc: np.ufunc, out: np.dtype, given: np.dtype) -> np.dtype:
    """What NumPy computes in; its refusal where it has no such function."""
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
            _refuse(name, a.dtype if dtype is None else makes, out.dtype)
        return {"dtype": makes}

    return adapt


def joined(ufunc: np.ufunc) -> Adapt:
    """Differences and bits, in the array's own type: modulo the range of `out=`."""

    def adapt(name: str, a: TracedArray, out: TracedArray, _dtype: Any) -> Keywords:
        _common(name, ufunc, out.dtype, a.dtype)
        widens = _is_whole(a.dtype) and _is_float(out.dtype)
        cuts_off = _is_float(a.dtype) and not _is_float(out.dtype)
        if a.dtype != out.dtype and (widens or cuts_off or out.dtype == np.bool_):
            _refuse(name, a.dtype, out.dtype)
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
        _refuse(name, a.dtype, out.dtype)
    return {}


def average(name: str, a: TracedArray, out: TracedArray, dtype: Any) -> Keywords:
    """The sum is rounded to the type of `out=` before it is divided, and the quotient is one."""
    if not _is_float(out.dtype):
        _refuse(name, a.dtype, out.dtype)
    if out.dtype.itemsize < 4:
        return {"stored": out.dtype}
    adds_in = a.dtype if dtype is None else asked_dtype(dtype)[0]
    if dtype is not None and adds_in.itemsize < 4:
        raise ArgumentError(
            f"np.{name}: NumPy adds in {adds_in}, as dtype= asks, and divides in {out.dtype}",
            expected=f"out= of {adds_in}, or no dtype=", got=str(out.dtype), operand="out",
            hint=f"reduce first, convert then: out[...] = np.{name}(x, …) without out=",
        )  # fmt: skip
    return {"dtype": np.dtype(np.float32)} if adds_in.itemsize < 4 and _is_float(adds_in) else {}


def root(name: str, a: TracedArray, out: TracedArray, dtype: Any) -> Keywords:
    """As means; what is no float NumPy refuses itself."""
    if not _is_float(out.dtype):
        raise ArgumentError(
            f"np.{name}: square roots do not go into {out.dtype}",
            expected="out= of floats", got=str(out.dtype), operand="out",
            hint=f"reduce first, convert then: out[...] = np.{name}(x, …) without out=",
        )  # fmt: skip
    return average(name, a, out, dtype)


def floating(name: str, a: TracedArray, out: TracedArray, _dtype: Any) -> Keywords:
    """Results that have fractions."""
    if not _is_float(out.dtype):
        _refuse(name, a.dtype, out.dtype)
    return {}


def place(name: str, _a: TracedArray, out: TracedArray, _dtype: Any) -> Keywords:
    """NumPy takes what int64 holds."""
    resolved(f"np.{name}", lambda: np.zeros(0, out.dtype).astype(np.int64, casting="safe"))
    return {}


def truth(_name: str, _a: TracedArray, _out: TracedArray, _dtype: Any) -> Keywords:
    """False and True become 0 and 1 in any type."""
    return {}
