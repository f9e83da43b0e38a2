"""Softmax along the last axis, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def softmax(x: Array) -> Array:
    """exp(x) as parts of their sum."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def of_x_ref(x_ref: Array) -> Array:
    """`softmax` of an argument with this name."""
    return softmax(wide(x_ref))
