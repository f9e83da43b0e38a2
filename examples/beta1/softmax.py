"""Softmax over the rows of a matrix, as an NKI 0.1 kernel."""

import math

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def softmax_kernel(x):
  """Computes exp(x - max(x)) / sum(exp(x - max(x))) along the last axis.

  Args:
      x: an input tensor of shape [R, C]; a row has to fit in SBUF

  Returns:
      a tensor of the shape and dtype of x
  """
  rows, cols = x.shape
  out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

  # A tile is 128 rows; the last one may have fewer
  i_p = nl.arange(128)[:, None]
  i_f = nl.arange(cols)[None, :]

  for t in nl.affine_range(math.ceil(rows / 128)):
    x_tile = nl.load(x[t * 128 + i_p, i_f], mask=(t * 128 + i_p < rows))

    # -max(x), ready to be the bias of the exponential
    neg_max = nisa.tensor_reduce(
      np.max, x_tile, axis=[1], dtype=np.float32, negate=True, mask=(t * 128 + i_p < rows)
    )
    exp_tile = nisa.activation(
      op=nl.exp, data=x_tile, bias=neg_max, dtype=np.float32, mask=(t * 128 + i_p < rows)
    )

    # No mask from here on: the unused rows are not stored
    denominator = nl.sum(exp_tile, axis=[1], keepdims=True)
    y_tile = exp_tile / denominator

    nl.store(out[t * 128 + i_p, i_f], value=y_tile, mask=(t * 128 + i_p < rows))

  return out


if __name__ == "__main__":
  x = np.random.rand(300, 512).astype(np.float32)
  output_nki = softmax_kernel(x)

  numerator = np.exp(x - np.max(x, axis=1, keepdims=True))
  output_np = numerator / np.sum(numerator, axis=1, keepdims=True)

  allclose = np.allclose(output_nki, output_np, rtol=1e-5)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
