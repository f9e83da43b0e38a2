"""Root-mean-square normalisation, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rmsnorm_kernel(x, gain, eps=1e-6):
    """x / sqrt(mean(x²) + eps) * gain over the last axis.

    x: (R, C), any R; gain: (C,), one factor per column; eps: a positive number.
    Returns (R, C) in x's dtype; everything between is float32.
    """
    rows, cols = x.shape
    assert gain.shape[0] == cols, f"gain has {gain.shape[0]} factors for {cols} columns"
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    # No view can repeat a row over partitions, but a DMA can read it again and again (step 0).
    pmax = nl.tile_size.pmax
    gains = nl.ndarray((pmax, cols), dtype=gain.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=gains, src=gain.ap(pattern=[[0, pmax], [1, cols]], offset=0))

    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        tile = nl.ndarray((height, cols), dtype=x.dtype, buffer=nl.sbuf)
        scratch = nl.ndarray((height, cols), dtype=nl.float32, buffer=nl.sbuf)
        inverse_rms = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)

        nisa.dma_copy(dst=tile, src=x[start : start + height, :])

        # The squares themselves are only by-catch of their sum.
        nisa.activation(
            dst=scratch,
            op=nl.square,
            data=tile,
            reduce_op=nl.add,
            reduce_res=inverse_rms,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.activation(dst=inverse_rms, op=nl.rsqrt, data=inverse_rms, scale=1.0 / cols, bias=eps)

        nisa.tensor_scalar(dst=scratch, data=tile, op0=nl.multiply, operand0=inverse_rms)
        nisa.tensor_tensor(dst=tile, data1=scratch, data2=gains[0:height, :], op=nl.multiply)
        nisa.dma_copy(dst=out[start : start + height, :], src=tile)

    return out
