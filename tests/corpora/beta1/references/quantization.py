"""Rows quantized to float8 and multiplied by their scale again, in float64."""

from __future__ import annotations

import numpy as np
from normalization import rms_norm
from wide import Array, wide

E4M3_LARGEST = 240.0  # of the format with infinities


def _rows(hidden: Array, ln_w: Array, lower_bound: float, kernel_name: str) -> Array:
    rows = wide(hidden)
    if kernel_name == "RMSNormQuant":
        rows = rms_norm(rows) * wide(ln_w)
    return np.clip(rows, -lower_bound, lower_bound) if lower_bound > 0 else rows


def fp8_rows(hidden: Array, ln_w: Array, lower_bound: float, kernel_name: str) -> Array:
    """The rows themselves (normalized or not, clipped or not): quantizing loses digits only."""
    return _rows(hidden, ln_w, lower_bound, kernel_name)


def fp8_scales(hidden: Array, ln_w: Array, lower_bound: float, kernel_name: str) -> Array:
    """The largest magnitude of each row over the largest float8."""
    rows = _rows(hidden, ln_w, lower_bound, kernel_name)
    return np.abs(rows).max(axis=-1, keepdims=True) / E4M3_LARGEST
