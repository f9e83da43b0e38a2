"""Sum of two matrices of ragged sizes, as an NKI 0.1 kernel with masks."""

import math

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def masked_add_kernel(a, b, alpha):
  """Computes a + alpha * b; sizes need not be multiples of the tile's.

  Args:
      a: a first input tensor of shape [R, C]
      b: a second input tensor of the shape of a
      alpha: a number

  Returns:
      a tensor of the shape and dtype of a
  """
  rows, cols = a.shape
  out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)

  for i in nl.affine_range(math.ceil(rows / 128)):
    for j in nl.affine_range(math.ceil(cols / 512)):
      ip = i * 128 + nl.arange(128)[:, None]
      jf = j * 512 + nl.arange(512)[None, :]

      a_tile = nl.load(a[ip, jf], mask=(ip < rows) & (jf < cols))
      b_tile = nl.load(b[ip, jf], mask=(ip < rows) & (jf < cols))

      scaled = b_tile * alpha
      c_tile = nl.add(a_tile, scaled, mask=(ip < rows) & (jf < cols))

      nl.store(out[ip, jf], value=c_tile, mask=(ip < rows) & (jf < cols))

  return out


if __name__ == "__main__":
  a = np.random.rand(300, 700).astype(np.float32)
  b = np.random.rand(300, 700).astype(np.float32)

  output_nki = masked_add_kernel(a, b, 0.5)
  output_np = a + 0.5 * b

  allclose = np.allclose(output_nki, output_np, rtol=1e-6)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
