"""Softmax and the normalizations, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def softmax_last_axis(x: Array) -> Array:
    """exp(x) / sum(exp(x)) along the last axis, the maximum taken out first."""
    values = wide(x)
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def softmax_of_a_tensor(a_tensor: Array) -> Array:
    """`softmax_last_axis` of an argument with this name."""
    return softmax_last_axis(a_tensor)


def layer_norm(
    input_tensor: Array, epsilon: float, gamma_vector: Array, beta_vector: Array
) -> Array:
    """Each row to mean 0 and variance 1 (of the population, epsilon added), then gamma and beta."""
    rows = wide(input_tensor)
    centred = rows - rows.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon)
    return centred / deviation * wide(gamma_vector) + np.asarray(beta_vector, np.float64)


def rms_norm(x: Array, eps: float = 1e-6) -> Array:
    """Rows divided by the root of their mean square (eps added under the root)."""
    rows = wide(x)
    return rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + eps)


def rms_norm_then_linear(hidden: Array, weights: Array, eps: float = 1e-6) -> Array:
    """`rms_norm` of (batch, sequence, dim), times (dim, head)."""
    return rms_norm(hidden, eps) @ wide(weights)
