"""What the kernels of this folder mean, in plain NumPy.

Arguments have the kernels' names, results their shapes and dtypes. Everything is computed in
float64 and rounded to the result's dtype once, at the end, but where a kernel reads what it stored.
"""

import numpy as np
from numpy.typing import NDArray


def stream(x: NDArray) -> NDArray:
    """2 x + 1."""
    return (2 * x.astype(np.float64) + 1).astype(x.dtype)


def even_odd(a: NDArray) -> NDArray:
    """Every second block of 128 rows becomes twice the one before it."""
    blocks = a.copy().reshape(-1, 2, 128, a.shape[1])
    blocks[:, 1] = 2 * blocks[:, 0]
    return blocks.reshape(a.shape)


def recurrence(a: NDArray) -> NDArray:
    """Block k + 1 of 128 rows becomes half of block k plus 1, in order."""
    blocks = a.copy().reshape(-1, 128, a.shape[1])
    for k in range(len(blocks) - 1):
        blocks[k + 1] = 0.5 * blocks[k] + 1
    return blocks.reshape(a.shape)


def gemm(lhs_t: NDArray, rhs: NDArray, tile_n: int = 512) -> NDArray:
    """lhs_tᵀ @ rhs: lhs_t [K, M], rhs [K, N], in lhs_t's dtype, for any tiles."""
    del tile_n
    return (lhs_t.astype(np.float64).T @ rhs.astype(np.float64)).astype(lhs_t.dtype)


def transpose(x: NDArray) -> NDArray:
    """x.T."""
    return x.T.copy()


def gather(table: NDArray, rows: NDArray) -> NDArray:
    """Half of the chosen rows, block after block, stored where the block's number says."""
    state = table.copy()
    for b, index in enumerate(rows[:, :, 0]):
        state[128 * b : 128 * b + 128] = 0.5 * state[index]
    return state


def slots(x: NDArray) -> NDArray:
    """x squared."""
    return (x.astype(np.float64) ** 2).astype(x.dtype)


def attention(q: NDArray, k: NDArray, v: NDArray, scale: float) -> NDArray:
    """softmax(scale qᵀk) v: q [D, Q], k [D, K], v [K, D]."""
    scores = scale * (q.astype(np.float64).T @ k.astype(np.float64))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)).astype(q.dtype)
