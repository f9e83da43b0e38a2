"""Two places for tiles, made once and used in turn: the order that reuse needs, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def slots_kernel(x):
    """x * x. x: (R, C), R a multiple of 256.

    Even blocks go through the first place, odd blocks through the second; a load waits until the
    store of two blocks before it has left its place.
    """
    rows, cols = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    places = nl.ndarray((pmax, 2, cols), dtype=x.dtype, buffer=nl.sbuf)
    for k in range(rows // (2 * pmax)):
        for place in range(2):
            start = (2 * k + place) * pmax
            tile = places[:, place, :]
            nisa.dma_copy(dst=tile, src=x[start : start + pmax, :])
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.multiply)
            nisa.dma_copy(dst=out[start : start + pmax, :], src=tile)
    return out
