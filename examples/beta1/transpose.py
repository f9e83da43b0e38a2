"""Matrix transpose on the tensor engine, as an NKI 0.1 kernel."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def transpose_kernel(x):
  """Swaps the two axes of a matrix, one 128 x 128 tile after the other.

  Args:
      x: an input tensor of shape [R, C], of any size

  Returns:
      a tensor of shape [C, R] and the dtype of x
  """
  rows, cols = x.shape
  out = nl.ndarray((cols, rows), dtype=x.dtype, buffer=nl.shared_hbm)

  ip, jf = nl.mgrid[0:128, 0:128]

  for r in nl.affine_range((rows + 127) // 128):
    for c in nl.affine_range((cols + 127) // 128):
      # The tensor engine multiplies by an identity matrix: stale NaNs in the border of a
      # partial tile would spread over it, zeros do not
      tile = nl.zeros((nl.par_dim(128), 128), dtype=x.dtype, buffer=nl.sbuf)
      tile[ip, jf] = nl.load(
        x[r * 128 + ip, c * 128 + jf],
        mask=(r * 128 + ip < rows) & (c * 128 + jf < cols),
      )

      tile_T = nisa.nc_transpose(tile[ip, jf])

      nl.store(
        out[c * 128 + ip, r * 128 + jf],
        value=nl.copy(tile_T, dtype=out.dtype),
        mask=(c * 128 + ip < cols) & (r * 128 + jf < rows),
      )

  return out


if __name__ == "__main__":
  x = np.random.rand(200, 300).astype(np.float32)
  output_nki = transpose_kernel(x)

  equal = np.array_equal(output_nki, x.T)
  print("NKI and NumPy match" if equal else "NKI and NumPy differ")
  assert equal
