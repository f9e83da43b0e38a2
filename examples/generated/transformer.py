"""A transformer block: RMS norm, causal attention with rotary embedding, gated MLP."""

import numpy as np
from attention import attention
from mlp import mlp
from rope import rope

D = 64


def rmsnorm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight


def heads_of(x):
    """(tokens, heads * D) as (heads, tokens, D)."""
    return x.reshape(x.shape[0], -1, D).swapaxes(0, 1)


def block(x, norm1, wq, wk, wv, wo, cos, sin, norm2, gate, up, down):
    """x: (tokens, W); norms: (W,); wq, wk, wv, wo: (W, W); cos, sin: (tokens, D / 2); gate and up:
    (W, F); down: (F, W)."""
    normed = rmsnorm(x, norm1)
    q, k, v = (heads_of(normed @ w) for w in (wq, wk, wv))
    mixed = attention(rope(q, cos, sin), rope(k, cos, sin), v)
    x = x + mixed.swapaxes(0, 1).reshape(x.shape) @ wo
    return x + mlp(rmsnorm(x, norm2), gate, up, down)
