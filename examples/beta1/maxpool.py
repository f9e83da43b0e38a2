"""Max-pooling of images, as an NKI 0.1 kernel with index tensors of rank five."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def maxpool_kernel(x, size):
  """Takes the largest number of every window of size x size; what is left over is left out.

  Args:
      x: the images, of shape [C, H, W]; an image has to fit in a partition of SBUF
      size: the side of a window, and the step from one to the next

  Returns:
      a tensor of shape [C, H // size, W // size] and the dtype of x
  """
  channels, height, width = x.shape
  out_height, out_width = height // size, width // size
  out = nl.ndarray((channels, out_height, out_width), dtype=x.dtype, buffer=nl.shared_hbm)

  # One channel per partition, images along the free axes
  i_p, i_y, i_x = nl.mgrid[0:128, 0:height, 0:width]
  o_p, o_y, o_x = nl.mgrid[0:128, 0:out_height, 0:out_width]

  # Windows and what is in them: channel, window down, window right, row, column
  w_p = nl.arange(128)[:, None, None, None, None]
  w_y = nl.arange(out_height)[None, :, None, None, None]
  w_x = nl.arange(out_width)[None, None, :, None, None]
  w_row = nl.arange(size)[None, None, None, :, None]
  w_col = nl.arange(size)[None, None, None, None, :]

  for t in nl.affine_range((channels + 127) // 128):
    images = nl.load(x[t * 128 + i_p, i_y, i_x], mask=(t * 128 + i_p < channels))

    pooled = nl.max(images[w_p, size * w_y + w_row, size * w_x + w_col], axis=[3, 4])

    nl.store(out[t * 128 + o_p, o_y, o_x], value=pooled, mask=(t * 128 + o_p < channels))

  return out


if __name__ == "__main__":
  x = np.random.rand(200, 17, 12).astype(np.float32)
  output_nki = maxpool_kernel(x, 3)

  windows = x[:, :15, :12].reshape(200, 5, 3, 4, 3)
  output_np = windows.max(axis=(2, 4))

  allclose = np.allclose(output_nki, output_np)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
