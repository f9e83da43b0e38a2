"""Comparison of two results: equality and distance.

Differences are taken in float64 (integers: exactly). An element is accepted when
|a − e| ≤ atol + rtol·|e|, or, with `ulps`, when |a − e| ≤ ulps units in the last place of `e` in
the output's dtype. NaN equals NaN, an infinity equals itself.

A case without a tolerance gets 32 epsilons of the output dtype, relative to the largest
magnitude expected: 3.8e-6 for float32, at most a quarter of it for formats of few bits. Summing
in another order moves a result by a few epsilons of its largest addend; a wrong element moves it
by a part of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from nki_migrate.verify.arrays import Array, is_float

DEFAULT_EPSILONS, LARGEST_DEFAULT = 32, 0.25


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The tolerance of a case; all None means the default."""

    rtol: float | None = None
    atol: float | None = None
    ulps: float | None = None

    @property
    def is_default(self) -> bool:
        """Whether the case names no tolerance at all."""
        return self.rtol is None and self.atol is None and self.ulps is None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far an array is from what was expected; `why` is set when it is not equal."""

    max_error: float
    max_ulps: float
    why: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.why is None


def compare(actual: Array, expected: Array, tolerance: Tolerance) -> Difference:
    """Compare one result with one expectation; `actual`'s dtype is the output dtype."""
    if actual.shape != expected.shape:
        why = f"shape {list(actual.shape)}, expected {list(expected.shape)}"
        return Difference(np.inf, np.inf, why)
    if not is_float(actual.dtype) and not is_float(expected.dtype):
        return _exact(actual, expected)
    return _close(actual, expected, tolerance)


def less_exact(actual: Array, expected: Array) -> str | None:
    """Why a result cannot replace another one: its format is a float one of fewer digits."""
    formats = (actual.dtype, expected.dtype)
    if not all(map(is_float, formats)):
        return None
    got, wanted = (float(ml_dtypes.finfo(dtype).eps) for dtype in formats)
    return f"dtype {actual.dtype}, expected {expected.dtype}" if got > wanted else None


def _exact(actual: Array, expected: Array) -> Difference:
    wrong = actual != expected
    if not wrong.any():
        return Difference(0.0, 0.0)
    gap = abs(actual[wrong].astype(object) - expected[wrong].astype(object)).max()
    return Difference(float(gap), float(gap), _describe(wrong, actual, expected, float(gap)))


def _close(actual: Array, expected: Array, tolerance: Tolerance) -> Difference:
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    comparable = np.isfinite(a) & np.isfinite(e)
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.where(comparable, np.abs(a - e), np.inf))
    unit = _unit_in_last_place(e, actual.dtype)
    wrong = error > _allowed(e, actual.dtype, unit, tolerance)
    worst = float(error.max(initial=0.0))
    worst_ulps = float((error / unit).max(initial=0.0))
    why = _describe(wrong, actual, expected, worst) if wrong.any() else None
    return Difference(worst, worst_ulps, why)


def _allowed(expected: Array, dtype: np.dtype[Any], unit: Array, tolerance: Tolerance) -> Array:
    magnitude = np.where(np.isfinite(expected), np.abs(expected), 0.0)
    if tolerance.is_default:
        eps = float(ml_dtypes.finfo(dtype).eps) if is_float(dtype) else 0.0
        relative = min(DEFAULT_EPSILONS * eps, LARGEST_DEFAULT)
        return np.full_like(expected, relative * magnitude.max(initial=0.0))
    close = (tolerance.atol or 0.0) + (tolerance.rtol or 0.0) * magnitude
    return np.maximum(close, (tolerance.ulps or 0.0) * unit)


def _unit_in_last_place(expected: Array, dtype: np.dtype[Any]) -> Array:
    """The spacing of `dtype` at each expected value; 1 for integers."""
    if not is_float(dtype):
        return np.ones_like(expected)
    info = ml_dtypes.finfo(dtype)
    tiny = float(info.smallest_normal)
    magnitude = np.where(np.isfinite(expected), np.abs(expected), tiny)
    _, exponent = np.frexp(np.maximum(magnitude, tiny))  # magnitude = m · 2^exponent, m in [½, 1)
    return np.ldexp(np.full_like(magnitude, float(info.eps)), exponent - 1)


def _describe(wrong: Array, actual: Array, expected: Array, worst: float) -> str:
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ by up to {worst:.3g}; "
        f"first at {list(first)}: got {actual[first]}, expected {expected[first]}"
    )
