"""Attention of one head, a block of queries at a time, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def attention_kernel(q, k, v, scale):
    """softmax(scale * q.T @ k) @ v.

    q: (D, Q), k: (D, K), transposed as the tensor engine reads them; v: (K, D); D <= 128, Q and K
    multiples of 128, K <= 512. scale: a positive number. Returns (Q, D); sums are float32.
    """
    dim, num_queries = q.shape
    num_keys = k.shape[1]
    pmax = nl.tile_size.pmax
    blocks = num_keys // pmax
    out = nl.ndarray((num_queries, dim), dtype=q.dtype, buffer=nl.shared_hbm)

    keys = nl.ndarray((dim, num_keys), dtype=k.dtype, buffer=nl.sbuf)
    values = nl.ndarray((pmax, blocks, dim), dtype=v.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=keys, src=k)
    for b in range(blocks):
        nisa.dma_copy(dst=values[:, b, :], src=v[b * pmax : (b + 1) * pmax, :])

    for i in range(num_queries // pmax):
        queries = nl.ndarray((dim, pmax), dtype=q.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=queries, src=q[:, i * pmax : (i + 1) * pmax])
        scores = nl.ndarray((pmax, num_keys), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=scores, stationary=queries, moving=keys)

        weights = nl.ndarray((pmax, num_keys), dtype=v.dtype, buffer=nl.sbuf)
        bias = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=bias, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_scalar(dst=bias, data=bias, op0=nl.multiply, operand0=-scale)
        nisa.activation(
            dst=weights,
            op=nl.exp,
            data=scores,
            scale=scale,
            bias=bias,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )

        weighted = nl.ndarray((pmax, dim), dtype=nl.float32, buffer=nl.psum)
        for b in range(blocks):
            bank = nl.ndarray((pmax, pmax), dtype=v.dtype, buffer=nl.psum)
            transposed = nl.ndarray((pmax, pmax), dtype=v.dtype, buffer=nl.sbuf)
            nisa.nc_transpose(dst=bank, data=weights[:, b * pmax : (b + 1) * pmax])
            nisa.tensor_copy(dst=transposed, src=bank)
            nisa.nc_matmul(dst=weighted, stationary=transposed, moving=values[:, b, :])

        tile = nl.ndarray((pmax, dim), dtype=q.dtype, buffer=nl.sbuf)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=weighted, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[i * pmax : (i + 1) * pmax, :], src=tile)
    return out
