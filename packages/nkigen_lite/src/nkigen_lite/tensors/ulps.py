"""Distances of results from references, in units in the last place of the results' format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest differences of an array from the truth.

    `ulps` counts each in units of its own element, `ulps_of_largest` in units of the largest
    element, which says more where large numbers cancel. Both are None for integers and bool. An
    element that is finite where the truth is not, or the other way round, differs by infinity. `at`
    is where the largest absolute difference is.
    """

    largest: float
    ulps: float | None
    ulps_of_largest: float | None
    at: tuple[int, ...]

    def __str__(self) -> str:
        if self.largest == 0:
            return "equal"
        where = f" at {list(self.at)}" if self.at else ""
        if self.ulps is None:
            return f"{self.largest:.3g}{where}"
        return (
            f"{self.largest:.3g}{where}; at most {self.ulps:.3g} ulps of the element, "
            f"{self.ulps_of_largest:.3g} of the largest"
        )


def difference(ours: Any, exact: Any) -> Difference:
    """Of `ours` from `exact`: float64, or integers where `ours` are integers; of one shape."""
    ours, exact = np.asarray(ours), np.asarray(exact)
    if not ours.size:
        return Difference(0.0, 0.0, 0.0, ())
    integers = ours.dtype.kind in "iub"
    with np.errstate(all="ignore"):
        gap = np.abs(ours.astype(np.float64) - exact.astype(np.float64))
        if not integers:
            gap = np.where(
                _both_infinite(ours, exact), 0.0, np.where(np.isfinite(gap), gap, np.inf)
            )
        at = np.unravel_index(int(np.argmax(gap)), gap.shape)
        largest, where = float(gap[at]), tuple(map(int, at))
        if integers:
            return Difference(largest, None, None, where)
        units = ulp(exact, ours.dtype)
        finite = units[np.isfinite(exact)].max(initial=units.min())
        return Difference(largest, float(np.max(gap / units)), largest / float(finite), where)


def ulp(values: Any, dtype: Any) -> np.ndarray:
    """The distance of neighbours of the format at each of `values` (float64): of the binade that
    holds it; at zero and below, that of subnormals; at infinity, that of the largest number."""
    info = ml_dtypes.finfo(dtype)
    size = np.minimum(np.abs(np.asarray(values, np.float64)), float(info.max))
    _, exponent = np.frexp(np.where(size > 0, size, float(info.smallest_subnormal)))
    return np.exp2(np.maximum(exponent - 1, float(info.minexp)) - float(info.nmant))


def _both_infinite(ours: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Where both are NaN, or the truth rounds to the infinity that is there."""
    rounded = exact.astype(np.float64).astype(ours.dtype).astype(np.float64)
    wide = ours.astype(np.float64)
    return (np.isnan(wide) & np.isnan(rounded)) | (np.isinf(wide) & (wide == rounded))
