"""Even blocks are read, odd blocks are written: they never meet, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def even_odd_kernel(a):
    """Block 2k + 1 of a becomes twice block 2k, in place; returns a.

    a: (R, C); blocks are 128 rows, R a multiple of 256.
    """
    rows, cols = a.shape
    pmax = nl.tile_size.pmax
    for k in range(rows // (2 * pmax)):
        even = 2 * k * pmax
        tile = nl.ndarray((pmax, cols), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[even : even + pmax, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=a[even + pmax : even + 2 * pmax, :], src=tile)
    return a
