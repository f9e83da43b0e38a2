"""
Homework 3, part 1 - vectors on the accelerator
"""
import numpy as np
from neuronxcc import nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa

ROW_CHUNK = 128
FREE_DIM = 200


@nki.jit
def vector_add_whole(a_vec, b_vec):
    # Allocate space for the output vector in HBM
    out = nl.ndarray(shape=a_vec.shape, dtype=a_vec.dtype, buffer=nl.hbm)

    a = nl.load(a_vec)
    b = nl.load(b_vec)
    res = nisa.tensor_tensor(a, b, op=nl.add)
    nl.store(out, value=res)
    return out


@nki.jit
def vector_add_tiled(a_vec, b_vec):
    out = nl.ndarray(shape=a_vec.shape, dtype=a_vec.dtype, buffer=nl.hbm)

    # Get the total number of vector rows
    M = a_vec.shape[0]
    for m in nl.affine_range((M // ROW_CHUNK)):
        # Allocate row-chunk sized tiles for the input vectors
        a_tile = nl.ndarray((ROW_CHUNK, 1), dtype=a_vec.dtype, buffer=nl.sbuf)
        b_tile = nl.ndarray((ROW_CHUNK, 1), dtype=b_vec.dtype, buffer=nl.sbuf)

        # Load a chunk of rows
        a_tile[...] = nl.load(a_vec[m * ROW_CHUNK : (m + 1) * ROW_CHUNK])
        b_tile[...] = nl.load(b_vec[m * ROW_CHUNK : (m + 1) * ROW_CHUNK])

        # Add the row chunks together
        res = nisa.tensor_tensor(a_tile, b_tile, op=nl.add)

        # Store the result chunk into HBM
        nl.store(out[m * ROW_CHUNK : (m + 1) * ROW_CHUNK], value=res)
    return out


@nki.jit
def vector_add_stream(a_vec, b_vec):
    M = a_vec.shape[0]
    TILE_M = ROW_CHUNK * FREE_DIM

    # Reshape the vectors
    a_vec_re = a_vec.reshape((M // TILE_M, ROW_CHUNK, FREE_DIM))
    b_vec_re = b_vec.reshape((M // TILE_M, ROW_CHUNK, FREE_DIM))
    out = nl.ndarray(shape=a_vec_re.shape, dtype=a_vec_re.dtype, buffer=nl.hbm)

    for m in nl.affine_range((M // TILE_M)):
        a_tile = nl.load(a_vec_re[m])
        b_tile = nl.load(b_vec_re[m])
        res = nisa.tensor_tensor(a_tile, b_tile, op=nl.add)
        nl.store(out[m], value=res)

    # Reshape the output vector into its original shape
    out = out.reshape((M,))
    return out


@nki.jit
def saxpby(x, y, a=2.0, b=-0.5):
    P, F = x.shape
    result = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(P // 128):          # plain python loop is fine here
        rows = slice(i * 128, i * 128 + 128)
        xt = nl.load(x[rows, :]); yt = nl.load(y[rows, :])
        nl.store(result[rows, :], value=a * xt + b * yt)
    return result


@nki.jit
def dot_product(u, v):
    """u, v: (n,), n a multiple of 128"""
    n, = u.shape
    cols = n // 128
    out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    ut = nl.load(u.reshape((128, cols)))
    vt = nl.load(v.reshape((128, cols)))
    prod = ut * vt
    partial = nl.sum(prod, axis=1, keepdims=True)
    ones = nl.ones((128, 1), dtype=nl.float32)
    total = nl.matmul(partial, ones, transpose_x=True)
    nl.store(out, total)
    return out


def matrix_transpose(a_tensor):
    M, N = a_tensor.shape
    out = nl.ndarray((N, M), dtype=a_tensor.dtype, buffer=nl.hbm)
    tile_dim = nl.tile_size.pmax  # this should be 128

    assert M % tile_dim == N % tile_dim == 0, "Matrix dimensions not divisible by tile dimension!"

    for m in nl.affine_range(M // tile_dim):
        for n in nl.affine_range(N // tile_dim):
            tile = nl.load(a_tensor[m * tile_dim:(m + 1) * tile_dim, n * tile_dim:(n + 1) * tile_dim])
            t_psum = nisa.nc_transpose(tile)
            nl.store(out[n * tile_dim:(n + 1) * tile_dim, m * tile_dim:(m + 1) * tile_dim], value=t_psum)

    return out


matrix_transpose = nki.jit(matrix_transpose)
