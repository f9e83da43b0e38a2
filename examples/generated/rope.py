"""Rotary position embedding: rotates the halves of every head by angles that grow with position."""

import numpy as np


def rope(x, cos, sin):
    """x: (heads, tokens, d); cos and sin of the angles: (tokens, d / 2)."""
    half = x.shape[-1] // 2
    left, right = x[..., :half], x[..., half:]
    return np.concatenate((left * cos - right * sin, right * cos + left * sin), axis=-1)
