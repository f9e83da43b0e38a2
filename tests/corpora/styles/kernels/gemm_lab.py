# GEMM lab: one optimization per kernel.
from neuronxcc import nki
from neuronxcc.nki import language as nl
from neuronxcc.nki import isa as nisa
import numpy as np

TILE_M = nl.tile_size.gemm_stationary_fmax  # 128
TILE_K = nl.tile_size.pmax  # 128
TILE_N = nl.tile_size.gemm_moving_fmax  # 512


@nki.jit
def gemm_v0(lhsT, rhs):
    """single tile"""
    result = nl.ndarray((64, 512), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    i_lhsT_p, i_lhsT_f = nl.mgrid[0:128, 0:64]
    i_rhs_p, i_rhs_f = nl.mgrid[0:128, 0:512]
    i_out_p, i_out_f = nl.mgrid[0:64, 0:512]
    lhs_tile = nl.load(lhsT[i_lhsT_p, i_lhsT_f])
    rhs_tile = nl.load(rhs[i_rhs_p, i_rhs_f])
    result_psum = nl.zeros((64, 512), nl.float32, buffer=nl.psum)
    result_psum[i_out_p, i_out_f] += nl.matmul(lhs_tile, rhs_tile, transpose_x=True)
    result_sbuf = nl.copy(result_psum, dtype=result.dtype)
    nl.store(result[i_out_p, i_out_f], value=result_sbuf)
    return result


@nki.jit
def gemm_v1(lhsT, rhs):
    K, M = lhsT.shape
    K_, N = rhs.shape
    assert K == K_, "lhsT and rhs must have the same contraction dimension"
    result = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // TILE_M):
        for n in nl.affine_range(N // TILE_N):
            res_psum = nl.zeros((TILE_M, TILE_N), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // TILE_K):
                lhsT_tile = nl.ndarray((TILE_K, TILE_M), dtype=lhsT.dtype, buffer=nl.sbuf)
                rhs_tile = nl.ndarray((TILE_K, TILE_N), dtype=rhs.dtype, buffer=nl.sbuf)
                lhsT_tile[...] = nl.load(lhsT[k * TILE_K:(k + 1) * TILE_K, m * TILE_M:(m + 1) * TILE_M])
                rhs_tile[...] = nl.load(rhs[k * TILE_K:(k + 1) * TILE_K, n * TILE_N:(n + 1) * TILE_N])
                res_psum[...] += nl.matmul(lhsT_tile[...], rhs_tile[...], transpose_x=True)
            res_sb = nl.copy(res_psum, dtype=result.dtype)
            nl.store(result[m * TILE_M:(m + 1) * TILE_M, n * TILE_N:(n + 1) * TILE_N], value=res_sb)
    return result


@nki.jit
def gemm_v2_rowmajor(lhs, rhs):
    """lhs (M, K) not transposed: let matmul transpose"""
    M, K = lhs.shape
    _, N = rhs.shape
    out = nl.ndarray([M, N], dtype=nl.float32, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // 128):
        a = nl.load(lhs[m * 128:(m + 1) * 128, :])
        c = nl.zeros((128, N), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(K // 128):
            c += nl.matmul(a[:, k * 128:(k + 1) * 128], nl.load(rhs[k * 128:(k + 1) * 128, :]))
        nl.store(out[m * 128:(m + 1) * 128, :], c)
    return out


@nki.jit
def gemm_v3_blocked(lhsT, rhs, BM=2, BK=2):
    K, M = lhsT.shape
    _, N = rhs.shape
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    i_k = nl.arange(TILE_K)[:, None]
    i_m = nl.arange(TILE_M)
    for bm in nl.affine_range(M // (BM * TILE_M)):
        acc = nl.zeros((BM, nl.par_dim(TILE_M), N), dtype=nl.float32, buffer=nl.sbuf)
        for bk in nl.sequential_range(K // (BK * TILE_K)):
            a = nl.ndarray((BK, nl.par_dim(TILE_K), BM * TILE_M), dtype=lhsT.dtype, buffer=nl.sbuf)
            b = nl.ndarray((BK, nl.par_dim(TILE_K), N), dtype=rhs.dtype, buffer=nl.sbuf)
            for k in nl.affine_range(BK):
                a[k, :, :] = nl.load(lhsT[(bk * BK + k) * TILE_K + i_k, bm * BM * TILE_M + nl.arange(BM * TILE_M)[None, :]])
                b[k, :, :] = nl.load(rhs[nl.ds((bk * BK + k) * TILE_K, TILE_K), :])
            for m in nl.affine_range(BM):
                ps = nl.zeros((nl.par_dim(TILE_M), N), dtype=nl.float32, buffer=nl.psum)
                for k in nl.affine_range(BK):
                    ps += nisa.nc_matmul(a[k, :, nl.ds(m * TILE_M, TILE_M)], b[k])
                acc[m] += ps
        for m in nl.affine_range(BM):
            nl.store(out[nl.ds((bm * BM + m) * TILE_M, TILE_M), :], value=acc[m])
    return out


@nki.jit
def gemm_ragged(lhsT, rhs):
    """any M and N; K a multiple of 128"""
    K, M = lhsT.shape
    N = rhs.shape[1]
    C = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    i_k, i_m = nl.mgrid[0:128, 0:128]
    i_kk, i_n = nl.mgrid[0:128, 0:512]
    i_mm, i_nn = nl.mgrid[0:128, 0:512]
    for mi in nl.affine_range((M + 127) // 128):
        for ni in nl.affine_range((N + 511) // 512):
            acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for ki in nl.affine_range(K // 128):
                a = nl.load(lhsT[ki * 128 + i_k, mi * 128 + i_m], mask=(mi * 128 + i_m < M))
                b = nl.load(rhs[ki * 128 + i_kk, ni * 512 + i_n], mask=(ni * 512 + i_n < N))
                acc += nisa.nc_matmul(a, b, mask=(mi * 128 + i_m < M) & (ni * 512 + i_n < N))
            nl.store(C[mi * 128 + i_mm, ni * 512 + i_nn], value=acc,
                     mask=(mi * 128 + i_mm < M) & (ni * 512 + i_nn < N))
    return C


@nki.jit
def gemm_bias_act(x_t, w, b, activation="relu"):
    """(x_t.T @ w + b) through an activation that a string names"""
    ACT = {"relu": nl.relu, "sigmoid": nl.sigmoid, "none": None}
    K, M = x_t.shape
    N = w.shape[1]
    y = nl.ndarray((M, N), dtype=x_t.dtype, buffer=nl.shared_hbm)
    bias_row = nl.load(b)
    z = nl.add(nl.matmul(nl.load(x_t), nl.load(w), transpose_x=True), bias_row.broadcast_to((M, N)))
    fn = ACT[activation]
    if fn is not None:
        z = fn(z)
    nl.store(y, z)
    return y
