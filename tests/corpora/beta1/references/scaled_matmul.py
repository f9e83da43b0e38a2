"""Products of activations (K, N) and weights (K, M) in blocks of 128, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide

BLOCK = 128


def weights_times_activations(x_T: Array, w_T: Array) -> Array:  # noqa: N803
    """wᵀ x: (M, N)."""
    return wide(w_T).T @ wide(x_T)


def block_products(x_T: Array, w_T: Array) -> Array:  # noqa: N803
    """The product of each block of K by itself: (K/128, M, N)."""
    starts = range(0, len(x_T), BLOCK)
    return np.stack(
        [weights_times_activations(x_T[k : k + BLOCK], w_T[k : k + BLOCK]) for k in starts]
    )


def by_blocks(x_T: Array, w_T: Array, scale_w: Array) -> Array:  # noqa: N803
    """The product with scale_w[m, k] on block k of K and block m of M."""
    rows = np.repeat(wide(scale_w), BLOCK, axis=0)
    return np.einsum("kmn,mk->mn", block_products(x_T, w_T), rows)
