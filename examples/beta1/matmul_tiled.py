"""Tiled matrix multiplication, as an NKI 0.1 kernel with block dimensions."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def matmul_tiled_kernel(lhsT, rhs):
  """Computes lhsT.T @ rhs, 128 x 512 outputs at a time.

  Args:
      lhsT: the left-hand side, transposed, of shape [K, M]; K and M are multiples of 128
      rhs: the right-hand side, of shape [K, N]; N is a multiple of 512

  Returns:
      a tensor of shape [M, N] and the dtype of lhsT
  """
  K, M = lhsT.shape
  K_, N = rhs.shape

  TILE_K = nl.tile_size.pmax  # 128
  TILE_M = nl.tile_size.gemm_stationary_fmax  # 128
  TILE_N = nl.tile_size.gemm_moving_fmax  # 512

  assert K == K_, f"lhsT contracts over {K}, rhs over {K_}"
  assert K % TILE_K == 0 and M % TILE_M == 0 and N % TILE_N == 0

  n_k = K // TILE_K
  result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)

  i_lhs = nl.mgrid[0:128, 0:128]
  i_rhs = nl.mgrid[0:128, 0:512]
  i_res = nl.mgrid[0:128, 0:512]

  for n in nl.affine_range(N // TILE_N):
    # A column block of rhs stays in SBUF for all of lhsT
    rhs_tiles = nl.ndarray((n_k, nl.par_dim(128), TILE_N), dtype=rhs.dtype, buffer=nl.sbuf)
    for k in nl.affine_range(n_k):
      rhs_tiles[k, i_rhs.p, i_rhs.x] = nl.load(rhs[k * TILE_K + i_rhs.p, n * TILE_N + i_rhs.x])

    for m in nl.affine_range(M // TILE_M):
      lhsT_tiles = nl.ndarray((n_k, nl.par_dim(128), TILE_M), dtype=lhsT.dtype, buffer=nl.sbuf)
      for k in nl.affine_range(n_k):
        lhsT_tiles[k, i_lhs.p, i_lhs.x] = nl.load(lhsT[k * TILE_K + i_lhs.p, m * TILE_M + i_lhs.x])

      # The partial products add up in PSUM, always in float32
      res_psum = nl.zeros((nl.par_dim(128), TILE_N), dtype=np.float32, buffer=nl.psum)
      for k in nl.affine_range(n_k):
        res_psum[i_res.p, i_res.x] += nisa.nc_matmul(
          lhsT_tiles[k, i_lhs.p, i_lhs.x], rhs_tiles[k, i_rhs.p, i_rhs.x]
        )

      res_sbuf = nl.copy(res_psum, dtype=result.dtype)
      nl.store(result[m * TILE_M + i_res.p, n * TILE_N + i_res.x], value=res_sbuf)

  return result


if __name__ == "__main__":
  lhs = np.random.rand(256, 384).astype(np.float32)
  rhs = np.random.rand(384, 1024).astype(np.float32)

  output_nki = matmul_tiled_kernel(np.ascontiguousarray(lhs.T), rhs)
  output_np = lhs @ rhs

  allclose = np.allclose(output_nki, output_np, atol=1e-4, rtol=1e-4)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
