"""What kernels that were written as sketches mean to compute, in float64."""

from __future__ import annotations

import numpy as np
from row_softmax import softmax
from wide import Array, wide


def _scores(q: Array, k: Array, scale: float) -> Array:
    return wide(q) @ wide(k).swapaxes(1, 2) * scale


def batched_attention(q_tensor: Array, k_tensor: Array, v_tensor: Array, scale: float) -> Array:
    """softmax(scale · q kᵀ) v for every batch."""
    return softmax(_scores(q_tensor, k_tensor, scale)) @ wide(v_tensor)


def masked_attention(
    q_tensor: Array, k_tensor: Array, v_tensor: Array, attention_mask: Array, scale: float
) -> Array:
    """`batched_attention` over the keys that the mask leaves."""
    scores = np.where(attention_mask != 0, _scores(q_tensor, k_tensor, scale), -np.inf)
    return softmax(scores) @ wide(v_tensor)


def layer_norm_of_three_dimensions(input_tensor: Array, weight: Array, bias: Array) -> Array:
    """The last axis to mean 0 and variance 1 (1e-5 added), times weight, plus bias."""
    x = wide(input_tensor)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * wide(weight) + wide(bias)


def gelu_by_tanh(input_tensor: Array) -> Array:
    """x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³)))."""
    x = wide(input_tensor)
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
