"""Two layers of a network, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def mlp_kernel(x_t, w1, w2):
    """relu(x_tᵀ @ w1) @ w2, products accumulated in float32.

    x_t: (D, B), transposed as the tensor engine wants it; w1: (D, H); w2: (H, O); all of one
    dtype; D, H and B multiples of 128.
    Returns (B, O) in x_t's dtype, to which the hidden layer is rounded too.

    The hidden layer is computed transposed, w1ᵀ @ x_t, and so is ready to be contracted over H.
    """
    inputs, batch = x_t.shape
    hidden, outputs = w2.shape
    pmax, step = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    assert w1.shape[0] == inputs and w1.shape[1] == hidden, "w1 joins x_t and w2"
    assert inputs % pmax == 0 and hidden % pmax == 0 and batch % pmax == 0, "sizes leave a rest"
    out = nl.ndarray((batch, outputs), dtype=x_t.dtype, buffer=nl.shared_hbm)

    first = load_blocks(w1)
    second = load_blocks(w2)
    for start in range(0, batch, step):
        width = min(step, batch - start)
        x_blocks = load_blocks(x_t[:, start : start + width])

        layer = nl.ndarray((pmax, hidden // pmax, width), dtype=x_t.dtype, buffer=nl.sbuf)
        for h in range(hidden // pmax):
            product = multiply(first[:, :, h * pmax : (h + 1) * pmax], x_blocks)
            nisa.activation(dst=layer[:, h, :], op=nl.relu, data=product)

        for top in range(0, width, pmax):
            for left in range(0, outputs, step):
                right = min(left + step, outputs)
                product = multiply(layer[:, :, top : top + pmax], second[:, :, left:right])
                tile = nl.ndarray((pmax, right - left), dtype=x_t.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=tile, src=product)
                rows = nl.ds(start + top, pmax)
                nisa.dma_copy(dst=out[rows, left:right], src=tile)

    return out


def load_blocks(matrix):
    """(R, C) in HBM as (128, R/128, C): row 128*b + p is row b of partition p."""
    rows, cols = matrix.shape
    pmax = nl.tile_size.pmax
    blocks = nl.ndarray((pmax, rows // pmax, cols), dtype=matrix.dtype, buffer=nl.sbuf)
    for b in range(rows // pmax):
        nisa.dma_copy(dst=blocks[:, b, :], src=matrix[nl.ds(b * pmax, pmax), :])
    return blocks


def multiply(stationary, moving):
    """The blocks' stationaryᵀ @ moving, (M, N) float32 in PSUM."""
    blocks = stationary.shape[1]
    shape = (stationary.shape[2], moving.shape[2])
    product = nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)
    for b in range(blocks):
        nisa.nc_matmul(
            dst=product,
            stationary=stationary[:, b, :],
            moving=moving[:, b, :],
            accumulate=b > 0,
        )
    return product
