"""Every tile on its own: nothing of one iteration waits for another, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def stream_kernel(x):
    """2 * x + 1. x: (R, C), R a multiple of 128."""
    rows, cols = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for k in range(rows // pmax):
        tile = nl.ndarray((pmax, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[k * pmax : (k + 1) * pmax, :])
        nisa.tensor_scalar(
            dst=tile, data=tile, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0
        )
        nisa.dma_copy(dst=out[k * pmax : (k + 1) * pmax, :], src=tile)
    return out
