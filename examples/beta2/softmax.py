"""Softmax over the rows of a matrix, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def softmax_kernel(x):
    """exp(x - max(x)) / sum(exp(x - max(x))) over the last axis.

    x: (R, C), any R; C elements have to fit twice in a partition of SBUF.
    Returns (R, C) in x's dtype; everything between is float32.
    """
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    for start in range(0, rows, nl.tile_size.pmax):
        height = min(nl.tile_size.pmax, rows - start)
        tile = nl.ndarray((height, cols), dtype=x.dtype, buffer=nl.sbuf)
        exponentials = nl.ndarray((height, cols), dtype=nl.float32, buffer=nl.sbuf)
        minus_max = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)

        nisa.dma_copy(dst=tile, src=x[start : start + height, :])
        nisa.tensor_reduce(dst=minus_max, op=nl.maximum, data=tile, axis=1, negate=True)

        # One pass of the scalar engine: the exponentials and, on the way, their sum.
        nisa.activation(
            dst=exponentials,
            op=nl.exp,
            data=tile,
            bias=minus_max,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.reciprocal(dst=total, data=total)

        # The input tile is free again and has the output's dtype.
        nisa.tensor_scalar(dst=tile, data=exponentials, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[start : start + height, :], src=tile)

    return out
