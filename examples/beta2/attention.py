"""Tiled attention, for NKI 0.6.

128 queries at a time meet all the keys they may see. Their scores stay in SBUF as one long row
per query, so the softmax is exact and needs no running maximum; only scores within a causal
tile's reach are computed.
"""

import nki
import nki.isa as nisa
import nki.language as nl

# Finite, so that scaling it stays finite; far below any score, so that its exponential is zero.
HIDDEN = -1.0e30


@nki.jit
def attention_kernel(q, k, v, scale, causal=False):
    """softmax(scale * q.T @ k) @ v for every head.

    q: (H, D, Q), k: (H, D, K), transposed as the tensor engine reads them; v: (H, K, D);
    all of one dtype, D <= 128, K a multiple of 128. scale: a positive number. causal: query i
    sees the keys 0 .. i, and Q == K.
    Returns (H, Q, D) in q's dtype. Scores and sums are float32; the weights are rounded to v's
    dtype before they meet v, because the tensor engine needs operands of one dtype.
    """
    heads, dim, num_queries = q.shape
    num_keys = k.shape[2]
    pmax = nl.tile_size.pmax
    assert dim <= pmax, f"a head of {dim} elements exceeds {pmax} partitions"
    assert num_keys % pmax == 0, f"{num_keys} keys are not a multiple of {pmax}"
    assert scale > 0, "the largest score must stay the largest when scaled"
    assert not causal or num_queries == num_keys, "causal attention has a key for every query"

    out = nl.ndarray((heads, num_queries, dim), dtype=q.dtype, buffer=nl.shared_hbm)

    for head in range(heads):
        queries = nl.ndarray((dim, num_queries), dtype=q.dtype, buffer=nl.sbuf)
        keys = nl.ndarray((dim, num_keys), dtype=k.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=queries, src=q[head, :, :])
        nisa.dma_copy(dst=keys, src=k[head, :, :])
        values = load_values(v, head)

        for start in range(0, num_queries, pmax):
            height = min(pmax, num_queries - start)
            visible = start + pmax if causal else num_keys

            scores = score(queries[:, start : start + height], keys, height, visible)
            if causal:
                hide_the_future(scores[:, start : start + pmax], pmax)

            weights = nl.ndarray((height, visible), dtype=v.dtype, buffer=nl.sbuf)
            total = exponentiate(weights, scores, scale, height)
            weighted = weigh(weights, values, height, visible, dim)

            tile = nl.ndarray((height, dim), dtype=q.dtype, buffer=nl.sbuf)
            nisa.reciprocal(dst=total, data=total)
            nisa.tensor_scalar(dst=tile, data=weighted, op0=nl.multiply, operand0=total)
            nisa.dma_copy(dst=out[head, start : start + height, :], src=tile)

    return out


def load_values(v, head):
    """Head `head` of v as (128, K/128, D): key 128*b + p is row b of partition p."""
    num_keys, dim = v.shape[1], v.shape[2]
    pmax = nl.tile_size.pmax
    blocks = num_keys // pmax
    values = nl.ndarray((pmax, blocks, dim), dtype=v.dtype, buffer=nl.sbuf)
    key_in_block_first = v.ap(
        pattern=[[dim, pmax], [pmax * dim, blocks], [1, dim]], offset=head * num_keys * dim
    )
    nisa.dma_copy(dst=values, src=key_in_block_first)
    return values


def score(queries, keys, height, visible):
    """queries.T @ keys[:, 0:visible] as (height, visible) float32 in SBUF."""
    scores = nl.ndarray((height, visible), dtype=nl.float32, buffer=nl.sbuf)
    step = nl.tile_size.gemm_moving_fmax
    for first in range(0, visible, step):
        last = min(first + step, visible)
        product = nl.ndarray((height, last - first), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=queries, moving=keys[:, first:last])
        nisa.tensor_copy(dst=scores[:, first:last], src=product)
    return scores


def hide_the_future(diagonal, size):
    """Replace the scores of keys j > i in the square where queries and keys meet."""
    nisa.affine_select(
        dst=diagonal,
        pattern=[[-1, size]],
        channel_multiplier=1,
        on_true_tile=diagonal,
        on_false_value=HIDDEN,
        cmp_op=nl.greater_equal,
    )


def exponentiate(weights, scores, scale, height):
    """weights = exp(scale * (scores - max)); returns their sums, (height, 1) float32."""
    bias = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
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
    return total


def weigh(weights, values, height, visible, dim):
    """weights @ values as (height, dim) float32 in PSUM.

    The contraction runs over partitions, so the weights are transposed first, as many blocks of
    128 keys at a time as a PSUM bank holds, to leave PSUM with one copy.
    """
    pmax = nl.tile_size.pmax
    blocks_per_bank = nl.tile_size.gemm_moving_fmax // pmax
    blocks = visible // pmax
    weighted = nl.ndarray((height, dim), dtype=nl.float32, buffer=nl.psum)

    for first in range(0, blocks, blocks_per_bank):
        group = min(blocks_per_bank, blocks - first)
        in_psum = nl.ndarray((pmax, group, height), dtype=weights.dtype, buffer=nl.psum)
        transposed = nl.ndarray((pmax, group, height), dtype=weights.dtype, buffer=nl.sbuf)
        for b in range(group):
            block = weights[:, nl.ds((first + b) * pmax, pmax)]
            nisa.nc_transpose(dst=in_psum[:, b, :], data=block)
        nisa.tensor_copy(dst=transposed, src=in_psum)
        for b in range(group):
            nisa.nc_matmul(
                dst=weighted,
                stationary=transposed[:, b, :],
                moving=values[:, first + b, :],
                accumulate=(first + b) > 0,
            )
    return weighted
