"""Attention in float64."""

from __future__ import annotations

import numpy as np
from normalization import softmax_last_axis
from wide import Array, wide


def unscaled_attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(qᵀ k) vᵀ of (head, sequence) arrays, with no scale: (sequence, head)."""
    return softmax_last_axis(wide(q).T @ wide(k)) @ wide(v).T


def diffusion_attention(q_ref: Array, k_ref: Array, v_ref: Array) -> Array:
    """(softmax(qᵀ k / 8) v)ᵀ per batch; q, k are (batch, head, sequence), v is transposed."""
    weights = softmax_last_axis(wide(q_ref).swapaxes(1, 2) @ wide(k_ref) / 8)
    return (weights @ wide(v_ref)).swapaxes(1, 2)


def attention_of_many_rows(q: Array, k: Array, v: Array, softmax_scale: float) -> Array:
    """softmax(qᵀ k · scale) v per batch of (batch, head, sequence) q and k: 512 rows at a time.

    All the scores of 16,384 rows in float64 would be 2 GiB.
    """
    wide_k, wide_v = wide(k), wide(v)
    parts = [
        softmax_last_axis(wide(q[..., at : at + 512]).swapaxes(1, 2) @ wide_k * softmax_scale)
        @ wide_v
        for at in range(0, q.shape[2], 512)
    ]
    return np.concatenate(parts, axis=1)
