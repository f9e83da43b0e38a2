"""One or two element-wise operations, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def sum_of_two(a_tensor: Array, b_tensor: Array) -> Array:
    """a + b, broadcast."""
    return wide(a_tensor) + wide(b_tensor)


def plus_2_2(a_tensor: Array) -> Array:
    """a + 2.2."""
    return wide(a_tensor) + 2.2


def inverted(in_tensor: Array) -> Array:
    """1 / x."""
    return 1.0 / wide(in_tensor)


def exponential(a_ptr: Array) -> Array:
    """e to the x."""
    return np.exp(wide(a_ptr))


def three_scalar_operations(
    a_tensor: Array, c_tensor: Array, e_tensor: Array, f_tensor: Array
) -> tuple[Array, Array, Array]:
    """a - 1, 1 - c, and e times a column, plus 2.5."""
    scaled = wide(e_tensor) * wide(f_tensor) + 2.5
    return wide(a_tensor) - 1.0, 1.0 - wide(c_tensor), scaled


def weighted_without_norm(input_tensor: Array, weight: Array, eps: float) -> Array:
    """x / (1 + eps) * weight: the kernel normalizes by a constant, as it says."""
    return wide(input_tensor) / (1.0 + eps) * wide(weight)


def dot_product(a_tensor: Array, b_tensor: Array) -> Array:
    """The sum of products of two vectors."""
    return np.asarray((wide(a_tensor) * wide(b_tensor)).sum())
