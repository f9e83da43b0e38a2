"""Attention that never holds a whole row of scores, as an NKI 0.1 kernel."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def flash_attention_kernel(q, k, v, scale):
  """Computes softmax(scale * q.T @ k) @ v for one head, 128 queries by 512 keys at a time.

  For every row of scores, the largest one so far and the sum of the exponentials so far are kept;
  when a larger score turns up, what has been added up shrinks accordingly.

  Args:
      q: the queries, of shape [D, Q]; D is at most 128, Q a multiple of 128
      k: the keys, of shape [D, K]; K is a multiple of 512
      v: the values, of shape [K, D]
      scale: a number that the scores are multiplied by

  Returns:
      a tensor of shape [Q, D] and the dtype of q
  """
  dim, n_queries = q.shape
  _, n_keys = k.shape
  out = nl.ndarray((n_queries, dim), dtype=q.dtype, buffer=nl.shared_hbm)

  i_d = nl.arange(dim)[:, None]
  i_q = nl.arange(128)[:, None]
  i_one = nl.arange(1)[None, :]
  i_128 = nl.arange(128)[None, :]
  i_512 = nl.arange(512)[None, :]
  i_v = nl.arange(dim)[None, :]

  for t in nl.affine_range(n_queries // 128):
    q_tile = nl.load(q[i_d, t * 128 + i_128])

    # What a pass over the keys leaves behind for the next one
    row_max = nl.full((nl.par_dim(128), 1), -3.0e38, dtype=np.float32, buffer=nl.sbuf)
    row_sum = nl.zeros((nl.par_dim(128), 1), dtype=np.float32, buffer=nl.sbuf)
    result = nl.zeros((nl.par_dim(128), dim), dtype=np.float32, buffer=nl.sbuf)

    for b in nl.sequential_range(n_keys // 512):
      k_tile = nl.load(k[i_d, b * 512 + i_512])
      scores_psum = nl.zeros((nl.par_dim(128), 512), dtype=np.float32, buffer=nl.psum)
      scores_psum[i_q, i_512] += nisa.nc_matmul(q_tile, k_tile)
      scores = nl.multiply(scores_psum, scale, dtype=np.float32)

      block_max = nisa.tensor_reduce(np.max, scores, axis=[1], dtype=np.float32)
      new_max = nl.maximum(row_max, block_max)
      neg_max = nl.multiply(new_max, -1.0)
      shrink = nisa.activation(op=nl.exp, data=row_max, bias=neg_max, dtype=np.float32)
      weights = nisa.activation(op=nl.exp, data=scores, bias=neg_max, dtype=np.float32)
      block_sum = nisa.tensor_reduce(np.add, weights, axis=[1], dtype=np.float32)

      # The weights times the values: 128 keys at a time, with the weights transposed
      product = nl.zeros((nl.par_dim(128), dim), dtype=np.float32, buffer=nl.psum)
      for s in nl.affine_range(4):
        transposed_psum = nisa.nc_transpose(weights[i_q, s * 128 + i_128])
        transposed = nl.copy(transposed_psum, dtype=np.float32)
        v_tile = nl.load(v[b * 512 + s * 128 + i_q, i_v], dtype=np.float32)
        product[i_q, i_v] += nisa.nc_matmul(transposed, v_tile)

      kept = nl.multiply(result, shrink)
      result[i_q, i_v] = nl.add(kept, product)
      kept_sum = nl.multiply(row_sum, shrink)
      row_sum[i_q, i_one] = nl.add(kept_sum, block_sum)
      row_max[i_q, i_one] = nl.copy(new_max)

    inverse = nl.reciprocal(row_sum)
    out_tile = nl.multiply(result, inverse, dtype=q.dtype)
    nl.store(out[t * 128 + i_q, i_v], value=out_tile)

  return out


if __name__ == "__main__":
  q = np.random.randn(64, 256).astype(np.float32)
  k = np.random.randn(64, 1024).astype(np.float32)
  v = np.random.randn(1024, 64).astype(np.float32)
  output_nki = flash_attention_kernel(q, k, v, 0.125)

  scores = 0.125 * (q.T @ k)
  weights = np.exp(scores - scores.max(axis=1, keepdims=True))
  output_np = weights / weights.sum(axis=1, keepdims=True) @ v

  allclose = np.allclose(output_nki, output_np, rtol=1e-4, atol=1e-5)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
