"""What the kernel of this folder means, in plain NumPy."""

import numpy as np
from numpy.typing import DTypeLike, NDArray


def causal_softmax(scores: NDArray, scale: float, compute: DTypeLike = np.float64) -> NDArray:
  """softmax(scale * scores) over the keys 0 .. i of row i: [S, S] → [S, S].

  Computes in `compute` and rounds to the dtype of scores once; zero above the diagonal.
  """
  scaled = np.asarray(scale, dtype=compute) * scores.astype(compute, copy=False)
  visible = np.where(np.tri(len(scores), dtype=bool), scaled, -np.inf)
  exponentials = np.exp(visible - visible.max(axis=-1, keepdims=True))
  return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(scores.dtype)
