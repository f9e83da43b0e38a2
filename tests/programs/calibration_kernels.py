"""Calibration programs of the closed compiler as the 0.1 kernels that a person would write."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

TILE = 128


@nki.jit
def attention(q, k, v):
    """Program s5: softmax(q kᵀ / 8) v with q and k loaded transposed, of rows (4096, 64)."""
    rows, width = q.shape
    tiles = rows // TILE
    out = nl.ndarray((rows, width), dtype=q.dtype, buffer=nl.shared_hbm)
    p, f = nl.arange(TILE)[:, None], nl.arange(TILE)[None, :]
    h, w = nl.arange(width)[:, None], nl.arange(width)[None, :]

    values = nl.ndarray((TILE, tiles, width), dtype=nl.bfloat16)
    queries = nl.ndarray((width, tiles, TILE), dtype=nl.bfloat16)
    keys = nl.ndarray((width, tiles, TILE), dtype=nl.bfloat16)
    for j in nl.affine_range(tiles):
        values[p, j, w] = nl.load(v[TILE * j + p, w], dtype=nl.bfloat16)
        query = nl.load_transpose2d(q[TILE * j + p, w])
        queries[h, j, f] = nl.multiply(query, 0.125, dtype=nl.bfloat16)
        keys[h, j, f] = nl.load_transpose2d(k[TILE * j + p, w])

    for i in nl.affine_range(tiles):
        scores = nl.ndarray((TILE, rows), dtype=nl.bfloat16)
        largest = nl.ndarray((TILE, tiles), dtype=nl.float32)
        for j in nl.affine_range(tiles):
            product = nisa.nc_matmul(queries[h, i, f], keys[h, j, f])
            scores[p, TILE * j + f] = nl.copy(product, dtype=nl.bfloat16)
            largest[p, j] = nisa.tensor_reduce(
                np.max, scores[p, TILE * j + f], axis=[1], negate=True, dtype=nl.float32
            )
        shift = nisa.tensor_reduce(np.min, largest, axis=[1])
        total = nl.ndarray((TILE, 1), dtype=nl.float32)
        powers = nisa.activation_reduce(
            np.exp, scores, bias=shift, scale=1.0, reduce_op=np.add, reduce_res=total,
            dtype=nl.bfloat16,
        )  # fmt: skip
        inverse = nl.reciprocal(total)
        transposed = nl.ndarray((TILE, tiles, TILE), dtype=nl.bfloat16)
        for j in nl.affine_range(tiles):
            transposed[p, j, f] = nisa.nc_transpose(powers[p, TILE * j + f])
        attended = nl.zeros((TILE, width), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(tiles):
            attended += nisa.nc_matmul(transposed[p, j, f], values[p, j, w])
        nl.store(out[TILE * i + p, w], attended * inverse)
    return out


@nki.jit
def selective_scan(delta, u, a, b, c):
    """Program mamba_v2: channels (D, T) in tiles, 16 states; rows of b and c (16, T) broadcast."""
    channels, steps = delta.shape
    out = nl.ndarray((channels, steps), dtype=u.dtype, buffer=nl.shared_hbm)
    p, t = nl.arange(TILE)[:, None], nl.arange(steps)[None, :]
    first = nl.arange(1)[:, None]
    for tile in nl.affine_range(channels // TILE):
        total = nl.zeros((TILE, steps), dtype=nl.float32, buffer=nl.sbuf)
        delta_i, u_i = nl.load(delta[TILE * tile + p, t]), nl.load(u[TILE * tile + p, t])
        for state in nl.affine_range(a.shape[1]):
            decay = nl.load(a[TILE * tile + p, state])
            power = nisa.activation(np.exp, delta_i, scale=decay)
            row_b, row_c = nl.load(b[state + first, t]), nl.load(c[state + first, t])
            fed = nl.multiply(nl.multiply(delta_i, u_i), row_b.broadcast_to((TILE, steps)))
            scanned = nisa.tensor_tensor_scan(power, fed, initial=0.0, op0=np.multiply, op1=np.add)
            seen = nl.multiply(scanned, row_c.broadcast_to((TILE, steps)))
            total[p, t] = nl.add(total, seen)
        nl.store(out[TILE * tile + p, t], total)
    return out
