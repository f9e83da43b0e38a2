"""Matrix product with one factor at rest in SBUF, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul_kernel(lhs_t, rhs):
    """lhs_tᵀ @ rhs, summed in float32 and rounded once.

    lhs_t: (K, M), transposed as the tensor engine reads it; rhs: (K, N); both of one dtype, K a
    multiple of 128. All of rhs stays in SBUF: K * N / 128 elements of a partition.
    Returns (M, N) in lhs_t's dtype. Each factor is read from HBM once.
    """
    depth, rows = lhs_t.shape
    cols = rhs.shape[1]
    pmax, widest = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    assert rhs.shape[0] == depth, f"lhs_t contracts over {depth}, rhs over {rhs.shape[0]}"
    assert depth % pmax == 0, f"{depth} is not a multiple of {pmax}"
    out = nl.ndarray((rows, cols), dtype=lhs_t.dtype, buffer=nl.shared_hbm)

    right = load_blocks(rhs)
    for top in range(0, rows, widest):
        height = min(widest, rows - top)
        left = load_blocks(lhs_t[:, top : top + height])

        for first in range(0, height, pmax):
            last = min(first + pmax, height)
            for start in range(0, cols, widest):
                stop = min(start + widest, cols)
                shape = (last - first, stop - start)
                sums = nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)
                done = nl.ndarray(shape, dtype=lhs_t.dtype, buffer=nl.sbuf)
                for k in range(depth // pmax):
                    nisa.nc_matmul(
                        dst=sums,
                        stationary=left[k][:, first:last],
                        moving=right[k][:, start:stop],
                        accumulate=k > 0,
                    )
                nisa.tensor_copy(dst=done, src=sums)
                nisa.dma_copy(dst=out[top + first : top + last, start:stop], src=done)

    return out


def load_blocks(matrix):
    """The rows of a matrix (K, C) in HBM, 128 at a time: K/128 tiles (128, C)."""
    depth, cols = matrix.shape
    pmax = nl.tile_size.pmax
    blocks = []
    for k in range(depth // pmax):
        block = nl.ndarray((pmax, cols), dtype=matrix.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=block, src=matrix[k * pmax : (k + 1) * pmax, :])
        blocks.append(block)
    return blocks
