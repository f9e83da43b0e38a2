"""Two layers of a network, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def mlp_kernel(x_t, w1, w2):
    """relu(x_tᵀ @ w1) @ w2, products accumulated in float32.

    x_t: (D, B), transposed as the tensor engine reads it; w1: (D, H); w2: (H, O); all of one
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

        layer = []
        for left in range(0, hidden, pmax):
            product = multiply(first, x_blocks, left, pmax, 0, width)
            block = nl.ndarray((pmax, width), dtype=x_t.dtype, buffer=nl.sbuf)
            nisa.activation(dst=block, op=nl.relu, data=product)
            layer.append(block)

        for top in range(0, width, pmax):
            for left in range(0, outputs, step):
                wide = min(step, outputs - left)
                product = multiply(layer, second, top, pmax, left, wide)
                tile = nl.ndarray((pmax, wide), dtype=x_t.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=tile, src=product)
                rows = nl.ds(start + top, pmax)
                nisa.dma_copy(dst=out[rows, nl.ds(left, wide)], src=tile)

    return out


def load_blocks(matrix):
    """The rows of a matrix (R, C) in HBM, 128 at a time: R/128 tiles (128, C)."""
    rows, cols = matrix.shape
    pmax = nl.tile_size.pmax
    blocks = []
    for top in range(0, rows, pmax):
        block = nl.ndarray((pmax, cols), dtype=matrix.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=block, src=matrix[nl.ds(top, pmax), :])
        blocks.append(block)
    return blocks


def multiply(stationary, moving, first, height, left, width):
    """`height` columns of stationary, transposed, times `width` columns of moving, in PSUM."""
    product = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
    for b in range(len(stationary)):
        nisa.nc_matmul(
            dst=product,
            stationary=stationary[b][:, nl.ds(first, height)],
            moving=moving[b][:, nl.ds(left, width)],
            accumulate=b > 0,
        )
    return product
