"""Root-mean-square normalisation of rows, as an NKI 0.1 kernel."""

import math

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def rmsnorm_kernel(x, gain, eps=1e-6):
  """Computes x / sqrt(mean(x²) + eps) * gain along the last axis.

  Args:
      x: an input tensor of shape [R, C]; a row has to fit in SBUF
      gain: one factor per column, of shape [1, C]
      eps: a small number under the root

  Returns:
      a tensor of the shape and dtype of x
  """
  rows, cols = x.shape
  out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

  i_p = nl.arange(128)[:, None]
  i_one = nl.arange(1)[:, None]
  i_f = nl.arange(cols)[None, :]

  # The factors of the columns, loaded once for all rows
  gain_tile = nl.load(gain[i_one, i_f])

  for t in nl.affine_range(math.ceil(rows / 128)):
    x_tile = nl.load(x[t * 128 + i_p, i_f], mask=(t * 128 + i_p < rows))

    squares = nl.square(x_tile, dtype=np.float32)
    sum_of_squares = nl.sum(squares, axis=[1], keepdims=True)
    mean_square = sum_of_squares / cols
    inverse_rms = nl.rsqrt(mean_square + eps)

    # One number per row beside the tile, one row of factors beside its rows
    normalised = nl.multiply(x_tile, inverse_rms, dtype=np.float32)
    y_tile = nl.multiply(normalised, gain_tile.broadcast_to((128, cols)), dtype=x.dtype)

    nl.store(out[t * 128 + i_p, i_f], value=y_tile, mask=(t * 128 + i_p < rows))

  return out


if __name__ == "__main__":
  x = np.random.rand(300, 512).astype(np.float32)
  gain = np.random.rand(1, 512).astype(np.float32)
  output_nki = rmsnorm_kernel(x, gain)

  output_np = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6) * gain

  allclose = np.allclose(output_nki, output_np, rtol=1e-5)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
