"""Attention in float64."""

from __future__ import annotations

from normalization import softmax_last_axis
from wide import Array, wide


def unscaled_attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(qᵀ k) vᵀ of (head, sequence) arrays, with no scale: (sequence, head)."""
    return softmax_last_axis(wide(q).T @ wide(k)) @ wide(v).T


def diffusion_attention(q_ref: Array, k_ref: Array, v_ref: Array) -> Array:
    """(softmax(qᵀ k / 8) v)ᵀ per batch; q, k are (batch, head, sequence), v is transposed."""
    weights = softmax_last_axis(wide(q_ref).swapaxes(1, 2) @ wide(k_ref) / 8)
    return (weights @ wide(v_ref)).swapaxes(1, 2)
