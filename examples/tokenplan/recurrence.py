"""Each block is made of the one before it: a true order from iteration to iteration, NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def recurrence_kernel(a):
    """Block k + 1 of a becomes half of block k plus 1, one after the other, in place; returns a.

    a: (R, C); blocks are 128 rows, R a multiple of 128.
    """
    rows, cols = a.shape
    pmax = nl.tile_size.pmax
    for k in range(rows // pmax - 1):
        start = k * pmax
        tile = nl.ndarray((pmax, cols), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[start : start + pmax, :])
        nisa.tensor_scalar(
            dst=tile, data=tile, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=1.0
        )
        nisa.dma_copy(dst=a[start + pmax : start + 2 * pmax, :], src=tile)
    return a
