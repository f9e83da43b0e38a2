"""Causal softmax, as an NKI 0.1 kernel whose mask is not a rectangle."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def causal_softmax_kernel(scores, scale):
  """Computes softmax(scale * scores) along the last axis over the keys a query may see.

  Query i sees the keys 0 .. i, as in autoregressive attention.

  Args:
      scores: an input tensor of shape [S, S], one row per query; S is a multiple of 128
      scale: a positive number

  Returns:
      a tensor of the shape and dtype of scores, zero above the diagonal
  """
  S, S_ = scores.shape
  assert S == S_ and S % 128 == 0

  out = nl.ndarray(scores.shape, dtype=scores.dtype, buffer=nl.shared_hbm)

  ip = nl.arange(128)[:, None]
  jf = nl.arange(S)[None, :]

  for t in nl.affine_range(S // 128):
    s_tile = nl.load(scores[t * 128 + ip, jf])

    visible = nl.full((nl.par_dim(128), S), -1e30, dtype=np.float32, buffer=nl.sbuf)
    visible[ip, jf] = nl.multiply(s_tile[ip, jf], scale, mask=(t * 128 + ip >= jf))

    neg_max = nisa.tensor_reduce(np.max, visible, axis=[1], dtype=np.float32, negate=True)
    exp_tile = nisa.activation(op=nl.exp, data=visible, bias=neg_max, dtype=np.float32)
    denominator = nl.sum(exp_tile, axis=[1], keepdims=True)

    # The mask is a triangle: no slice of the tensor says the same
    nl.store(out[t * 128 + ip, jf], value=nl.zeros((nl.par_dim(128), S), dtype=scores.dtype))
    nl.store(out[t * 128 + ip, jf], value=exp_tile / denominator, mask=(t * 128 + ip >= jf))

  return out


if __name__ == "__main__":
  scores = np.random.rand(256, 256).astype(np.float32)
  output_nki = causal_softmax_kernel(scores, 0.125)

  numerator = np.tril(np.exp(0.125 * scores))
  output_np = numerator / np.sum(numerator, axis=1, keepdims=True)

  allclose = np.allclose(output_nki, output_np, rtol=1e-5)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
