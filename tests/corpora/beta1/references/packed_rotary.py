"""Rotary embedding of rows: the two halves are rows, positions are columns; in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def rotate_rows(x_in: Array, cos: Array, sin: Array) -> Array:
    """(a, b) becomes (a·cos − b·sin, a·sin + b·cos), a and b the upper and the lower half."""
    x = wide(x_in)
    upper, lower = x[: len(x) // 2], x[len(x) // 2 :]
    c, s = wide(cos), wide(sin)
    return np.concatenate([upper * c - lower * s, upper * s + lower * c])
