"""What the kernels of this folder mean, in plain NumPy.

Arguments have the kernels' names, results their shapes and dtypes. Every function computes in
`compute` (float64 unless told otherwise) and rounds to the result's dtype once, at the end;
`compute=np.float32` gives the program that a NumPy user would write, as a baseline for timing.
"""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def softmax(x: NDArray, compute: DTypeLike = np.float64) -> NDArray:
  """exp(x - max(x)) / sum(exp(x - max(x))) over the last axis of x [R, C]."""
  wide = x.astype(compute, copy=False)
  exponentials = np.exp(wide - wide.max(axis=-1, keepdims=True))
  return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(x.dtype)


def matmul_tiled(lhsT: NDArray, rhs: NDArray, compute: DTypeLike = np.float64) -> NDArray:
  """lhsT.T @ rhs: [K, M], [K, N] → [M, N] in lhsT's dtype."""
  product = lhsT.astype(compute, copy=False).T @ rhs.astype(compute, copy=False)
  return product.astype(lhsT.dtype)


def transpose(x: NDArray) -> NDArray:
  """x.T: [R, C] → [C, R]; moves values, computes nothing."""
  return np.ascontiguousarray(x.T)


def masked_add(
  a: NDArray, b: NDArray, alpha: ArrayLike, compute: DTypeLike = np.float64
) -> NDArray:
  """a + alpha * b, element by element, in a's dtype."""
  factor = np.asarray(alpha, dtype=compute)
  return (a.astype(compute, copy=False) + factor * b.astype(compute, copy=False)).astype(a.dtype)


def rmsnorm(
  x: NDArray, gain: NDArray, eps: float = 1e-6, compute: DTypeLike = np.float64
) -> NDArray:
  """x / sqrt(mean(x²) + eps) * gain over the last axis: x [R, C], gain [1, C]."""
  wide = x.astype(compute, copy=False)
  mean_square = np.mean(wide * wide, axis=-1, keepdims=True)
  normalised = wide / np.sqrt(mean_square + np.asarray(eps, dtype=compute))
  return (normalised * gain.astype(compute, copy=False)).astype(x.dtype)


def rope(x: NDArray, cos: NDArray, sin: NDArray, compute: DTypeLike = np.float64) -> NDArray:
  """[a cos - b sin | b cos + a sin] for x = [a | b]: x [H, S, D]; cos, sin [S, D/2]."""
  half = x.shape[-1] // 2
  a, b = x[..., :half].astype(compute), x[..., half:].astype(compute)
  c, s = cos.astype(compute), sin.astype(compute)
  return np.concatenate([a * c - b * s, b * c + a * s], axis=-1).astype(x.dtype)


def flash_attention(
  q: NDArray, k: NDArray, v: NDArray, scale: float, compute: DTypeLike = np.float64
) -> NDArray:
  """softmax(scale * q.T @ k) @ v: q [D, Q], k [D, K], v [K, D] → [Q, D]."""
  product = q.astype(compute, copy=False).T @ k.astype(compute, copy=False)
  scores = np.asarray(scale, dtype=compute) * product
  weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
  weights /= weights.sum(axis=-1, keepdims=True)
  return (weights @ v.astype(compute, copy=False)).astype(q.dtype)


def selective_scan(
  delta: NDArray,
  u: NDArray,
  a: NDArray,
  b: NDArray,
  c: NDArray,
  compute: DTypeLike = np.float64,
) -> NDArray:
  """y[t] = c[t] · state[t], state[t] = exp(delta[t] a) state[t-1] + delta[t] u[t] b[t].

  delta, u [D, T]; a [D, N]; b, c [N, T] → y [D, T]; the state starts with zeros.
  """
  steps, inputs, decay, into, outof = (v.astype(compute, copy=False) for v in (delta, u, a, b, c))
  state = np.zeros(a.shape, dtype=compute)
  y = np.empty(u.shape, dtype=compute)
  for t in range(u.shape[1]):
    step = steps[:, t, None]
    state = np.exp(step * decay) * state + step * inputs[:, t, None] * into[:, t]
    y[:, t] = state @ outof[:, t]
  return y.astype(u.dtype)


def maxpool(x: NDArray, size: int) -> NDArray:
  """The largest of every size x size window, windows side by side: [C, H, W]."""
  channels, height, width = x.shape
  down, right = height // size, width // size
  inside = x[:, : down * size, : right * size]
  return inside.reshape(channels, down, size, right, size).max(axis=(2, 4))
