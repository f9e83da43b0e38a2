"""Matrix product that can be pipelined: panels of both factors, one PSUM tile per result tile."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def gemm_kernel(lhs_t, rhs, wide=2, tile_n=512):
    """lhs_tᵀ @ rhs, accumulated in float32 and rounded once.

    lhs_t: (K, M), K a multiple of 128, M of 128 * wide; rhs: (K, N), N a multiple of tile_n <= 512.
    Returns (M, N) in lhs_t's dtype.

    A panel is all of K: one DMA brings it, with k = 128 q + partition. Everything that is
    allocated in a loop is new in each iteration, so nothing but the number of places that there
    are for it keeps loads from running ahead.
    """
    depth, rows = lhs_t.shape
    cols = rhs.shape[1]
    part = nl.tile_size.pmax
    deep, high = depth // part, part * wide
    assert depth % part == 0 and rows % high == 0 and cols % tile_n == 0, "sizes leave a rest"
    out = nl.ndarray((rows, cols), dtype=lhs_t.dtype, buffer=nl.shared_hbm)

    for j in range(cols // tile_n):
        right = nl.ndarray((part, deep, tile_n), dtype=rhs.dtype, buffer=nl.sbuf)
        columns = [[cols, part], [cols * part, deep], [1, tile_n]]
        nisa.dma_copy(dst=right, src=rhs.ap(pattern=columns, offset=j * tile_n))

        for p in range(rows // high):
            left = nl.ndarray((part, deep, high), dtype=lhs_t.dtype, buffer=nl.sbuf)
            panel = [[rows, part], [rows * part, deep], [1, high]]
            nisa.dma_copy(dst=left, src=lhs_t.ap(pattern=panel, offset=p * high))

            for i in range(wide):
                sums = nl.ndarray((part, tile_n), dtype=nl.float32, buffer=nl.psum)
                done = nl.ndarray((part, tile_n), dtype=lhs_t.dtype, buffer=nl.sbuf)
                for q in range(deep):
                    weights = left[:, q, i * part : (i + 1) * part]
                    nisa.nc_matmul(dst=sums, stationary=weights, moving=right[:, q, :])
                nisa.tensor_copy(dst=done, src=sums)
                top = p * high + i * part
                nisa.dma_copy(dst=out[top : top + part, j * tile_n : (j + 1) * tile_n], src=done)
    return out
