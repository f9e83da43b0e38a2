"""Whole arrays compared: equality and closeness."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import Array
from nkigen_lite.frontend.arrays.promotion import (
    operand,
    shape_of,
    tape_of,
    traced,
)
from nkigen_lite.frontend.arrays.registry import implements


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
