"""Rotary position embedding with its angles: NumPy computes them, the kernel holds the tables."""

import numpy as np


def positions(x):
    """x: (heads, tokens, d), rotated by angles position / 10000^(2 i / d)."""
    tokens, half = x.shape[-2], x.shape[-1] // 2
    angles = np.outer(np.arange(tokens), 10000.0 ** (-np.arange(half) / half))
    cos, sin = np.cos(angles), np.sin(angles)
    left, right = x[..., :half], x[..., half:]
    return np.concatenate((left * cos - right * sin, right * cos + left * sin), axis=-1)
