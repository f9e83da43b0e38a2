"""Tiles that change places: tile (m, n) is read, tile (n, m) is written, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def transpose_kernel(x):
    """x.T. x: (R, C), both multiples of 128."""
    rows, cols = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray((cols, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(rows // pmax):
        for n in range(cols // pmax):
            tile = nl.ndarray((pmax, pmax), dtype=x.dtype, buffer=nl.sbuf)
            bank = nl.ndarray((pmax, pmax), dtype=x.dtype, buffer=nl.psum)
            transposed = nl.ndarray((pmax, pmax), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[m * pmax : (m + 1) * pmax, n * pmax : (n + 1) * pmax])
            nisa.nc_transpose(dst=bank, data=tile)
            nisa.tensor_copy(dst=transposed, src=bank)
            nisa.dma_copy(
                dst=out[n * pmax : (n + 1) * pmax, m * pmax : (m + 1) * pmax], src=transposed
            )
    return out
