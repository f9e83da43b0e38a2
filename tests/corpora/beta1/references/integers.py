"""Arithmetic of whole numbers, exact. The second operand is one number; results are (1, n)."""

from __future__ import annotations

import numpy as np
from wide import Array


def remainder(x: Array, y: Array) -> Array:
    """What x / y leaves, the quotient cut toward zero: the sign is x's."""
    return np.fmod(x, y)


def floor_divide(x: Array, y: Array) -> Array:
    """The greatest whole number not above x / y."""
    return x // y


def cumulated(x: Array) -> Array:
    """The sum up to each number."""
    return np.cumsum(x)[None]
