"""Root-mean-square norms with what they are fused with, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def rms_normed(x: Array, eps: float = 0.0) -> Array:
    """Each row over the square root of its mean square plus eps."""
    x = wide(x)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)


def rms_norm_scaled(a_tensor: Array, g_tensor: Array) -> Array:
    """`rms_normed`, times g along the last axis."""
    return rms_normed(a_tensor) * wide(g_tensor)


def rms_norm_with_eps(x: Array, w: Array, eps: float) -> Array:
    """`rms_normed`, times w along the last axis."""
    return rms_normed(x, eps) * wide(w)


def rms_norm_linear(hidden: Array, weights: Array, eps: float) -> Array:
    """`rms_normed` times a matrix."""
    return rms_normed(hidden, eps) @ wide(weights)


def rms_norm_linear_of_lhs(lhs: Array, rhs: Array, eps: float) -> Array:
    """`rms_norm_linear`, by these names."""
    return rms_norm_linear(lhs, rhs, eps)


def rms_norm_only(hidden: Array, eps: float) -> Array:
    """`rms_normed` by this name."""
    return rms_normed(hidden, eps)


def sum_normed_times_matrix(
    x_tensor: Array, w_tensor: Array, eps: float, z_tensor: Array, g_tensor: Array
) -> Array:
    """The norm of x + z, times g along its last axis, times the matrix w."""
    return (rms_normed(wide(x_tensor) + wide(z_tensor), eps) * wide(g_tensor)) @ wide(w_tensor)
