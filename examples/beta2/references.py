"""What the kernels of this folder mean, in plain NumPy.

Arguments have the kernels' names, results their shapes and dtypes. Every function computes in
`compute` (float64 unless told otherwise) and rounds to the result's dtype once, at the end;
`compute=np.float32` gives the program that a NumPy user would write, as a baseline for timing.
"""

import numpy as np
from numpy.typing import DTypeLike, NDArray


def softmax(x: NDArray, compute: DTypeLike = np.float64) -> NDArray:
    """exp(x - max(x)) / sum(exp(x - max(x))) over the last axis of x [R, C]."""
    wide = x.astype(compute, copy=False)
    exponentials = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(x.dtype)


def rmsnorm(
    x: NDArray, gain: NDArray, eps: float = 1e-6, compute: DTypeLike = np.float64
) -> NDArray:
    """x / sqrt(mean(x²) + eps) * gain over the last axis: x [R, C], gain [C]."""
    wide = x.astype(compute, copy=False)
    mean_square = np.mean(wide * wide, axis=-1, keepdims=True)
    normalised = wide / np.sqrt(mean_square + np.asarray(eps, dtype=compute))
    return (normalised * gain.astype(compute, copy=False)).astype(x.dtype)


def rope(x: NDArray, cos: NDArray, sin: NDArray, compute: DTypeLike = np.float64) -> NDArray:
    """[a cos - b sin | b cos + a sin] for x = [a | b]: x [S, H, D]; cos, sin [S, D/2]."""
    half = x.shape[-1] // 2
    wide = x.astype(compute, copy=False)
    a, b = wide[..., :half], wide[..., half:]
    c, s = (angles[:, None, :].astype(compute, copy=False) for angles in (cos, sin))
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1).astype(x.dtype)


def attention(
    q: NDArray,
    k: NDArray,
    v: NDArray,
    scale: float,
    causal: bool = False,
    compute: DTypeLike = np.float64,
) -> NDArray:
    """softmax(scale * q.T @ k) @ v per head: q [H, D, Q], k [H, D, K], v [H, K, D] → [H, Q, D].

    With `causal`, query i weighs the keys 0 .. i only.
    """
    transposed = np.swapaxes(q, 1, 2).astype(compute)
    scores = np.asarray(scale, dtype=compute) * (transposed @ k.astype(compute, copy=False))
    if causal:
        scores[:, ~np.tri(q.shape[2], k.shape[2], dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ v.astype(compute, copy=False)).astype(q.dtype)


def matmul(lhs_t: NDArray, rhs: NDArray, compute: DTypeLike = np.float64) -> NDArray:
    """lhs_t.T @ rhs: lhs_t [K, M], rhs [K, N] → [M, N]."""
    product = lhs_t.T.astype(compute, copy=False) @ rhs.astype(compute, copy=False)
    return product.astype(lhs_t.dtype)


def mlp(x_t: NDArray, w1: NDArray, w2: NDArray, compute: DTypeLike = np.float64) -> NDArray:
    """relu(x_t.T @ w1) @ w2: x_t [D, B], w1 [D, H], w2 [H, O] → [B, O]; the hidden layer rounds.

    What is between the two layers is rounded to x_t's dtype where `compute` is wider than that.
    """
    hidden = np.maximum(x_t.T.astype(compute, copy=False) @ w1.astype(compute, copy=False), 0)
    hidden = hidden.astype(x_t.dtype, copy=False).astype(compute, copy=False)
    return (hidden @ w2.astype(compute, copy=False)).astype(x_t.dtype)


def memories(x: NDArray) -> NDArray:
    """2 * x + 0.5."""
    return (2 * x.astype(np.float64) + 0.5).astype(x.dtype)


def tensor_engine(w: NDArray, x: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """2 * w.T @ x and 3 * w.T @ x in float32, and w.T: w [K, M], x [K, N]."""
    product = w.astype(np.float64).T @ x.astype(np.float64)
    return (2 * product).astype(np.float32), (3 * product).astype(np.float32), w.T.copy()


def vector_engine(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """1 / (1 - (x*y - max(x*y))) beside a column of zeros, and its first 32 x 32 transposed."""
    product = x.astype(np.float64) * y.astype(np.float64)
    inverse = 1 / (1 - (product - product.max(axis=1, keepdims=True)))
    result = np.pad(inverse, [(0, 0), (0, 1)]).astype(np.float32)
    return result, result[:32, :32].T.copy()


def scalar_engine(x: NDArray) -> tuple[NDArray, NDArray]:
    """2 * exp(x/2 + 1/4) + 1 [P, F], and the rows' sums of exp(x/2 + 1/4) [P, 1]."""
    exponentials = np.exp(x.astype(np.float64) / 2 + 0.25)
    total = exponentials.sum(axis=1, keepdims=True)
    return (2 * exponentials + 1).astype(np.float32), total.astype(np.float32)


def gpsimd_engine(x: NDArray) -> tuple[NDArray, NDArray]:
    """2 * (2²⁴ + 1 + position) + 1 in exact integers, and x below its diagonal."""
    position = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    return (2 * (2**24 + 1 + position) + 1).astype(np.int32), np.tril(x)


def indexing(x: NDArray) -> NDArray:
    """Pieces of x [4, 128, 64] side by side: [128, 456]."""
    last = np.zeros((128, 64), dtype=x.dtype)
    last[0] = x[1, 0]
    last[96:] = x[3, 96:]
    pieces = [
        x[0],
        x[1, :, ::2],
        x[2, :, 16:48],
        x[3],
        np.stack([x[0], x[1]], axis=-1).reshape(128, 128),
        np.abs(x[0]),
        np.repeat(x[0, :, 5:6], 8, axis=1),
        last,
    ]
    return np.concatenate(pieces, axis=1)


def dynamic(table: NDArray, rows: NDArray, start: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """table[rows] upside down, table[start:start+4], and table[rows][:, start:start+8]."""
    gathered, first = table[rows[:, 0]], int(start[0, 0])
    return gathered[::-1].copy(), table[first : first + 4].copy(), gathered[:, first : first + 8]


def programs(x: NDArray) -> NDArray:
    """-x, however many programs share the work."""
    return -x
