"""Rotary position embedding, as an NKI 0.1 kernel."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def rope_kernel(x, cos, sin):
  """Turns the two halves of every head's vectors by angles that grow with the position.

  With x = [a | b] along the last axis: [a cos - b sin | b cos + a sin].

  Args:
      x: an input tensor of shape [H, S, D]; D is even
      cos: the cosines of the angles, of shape [S, D / 2]
      sin: the sines of the angles, of shape [S, D / 2]

  Returns:
      a tensor of the shape and dtype of x
  """
  heads, positions, dim = x.shape
  half = dim // 2
  out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

  i_p = nl.arange(128)[:, None]
  i_h = nl.arange(half)[None, :]

  for t in nl.affine_range((positions + 127) // 128):
    # The angles are the same for all heads
    inside = t * 128 + i_p < positions
    cos_tile = nl.load(cos[t * 128 + i_p, i_h], dtype=np.float32, mask=inside)
    sin_tile = nl.load(sin[t * 128 + i_p, i_h], dtype=np.float32, mask=inside)

    for h in nl.affine_range(heads):
      a = nl.load(x[h, t * 128 + i_p, i_h], dtype=np.float32, mask=inside)
      b = nl.load(x[h, t * 128 + i_p, half + i_h], dtype=np.float32, mask=inside)

      rotated_a = nl.multiply(a, cos_tile) - nl.multiply(b, sin_tile)
      rotated_b = nl.multiply(b, cos_tile) + nl.multiply(a, sin_tile)

      nl.store(out[h, t * 128 + i_p, i_h], value=nl.copy(rotated_a, dtype=x.dtype), mask=inside)
      nl.store(
        out[h, t * 128 + i_p, half + i_h], value=nl.copy(rotated_b, dtype=x.dtype), mask=inside
      )

  return out


if __name__ == "__main__":
  x = np.random.rand(2, 200, 64).astype(np.float32)
  angles = np.random.rand(200, 32).astype(np.float32)
  output_nki = rope_kernel(x, np.cos(angles), np.sin(angles))

  a, b = x[..., :32], x[..., 32:]
  c, s = np.cos(angles), np.sin(angles)
  output_np = np.concatenate([a * c - b * s, b * c + a * s], axis=-1)

  allclose = np.allclose(output_nki, output_np, rtol=1e-5, atol=1e-6)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
