"""Kernels that the tests of this folder capture, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul(left, right):
    """left.T @ right in tiles: (K, M), (K, N) → (M, N); a column block of right stays in SBUF."""
    contraction, height = left.shape
    width = right.shape[1]
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for n in range(width // 512):
        columns = []
        for k in range(contraction // 128):
            tile = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=right[k * 128 : (k + 1) * 128, n * 512 : (n + 1) * 512])
            columns.append(tile)
        for m in range(height // 128):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(contraction // 128):
                block = nl.ndarray((128, 128), dtype=left.dtype, buffer=nl.sbuf)
                source = left[k * 128 : (k + 1) * 128, m * 128 : (m + 1) * 128]
                nisa.dma_copy(dst=block, src=source)
                nisa.nc_matmul(dst=total, stationary=block, moving=columns[k], accumulate=k > 0)
            result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=result)
    return out


@nki.jit
def nested_lists(x):
    """x doubled, by tiles that are kept in a list of lists. x: (256, 128)."""
    tiles = []
    for i in range(2):
        row = []
        for j in range(4):
            tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[i * 128 : (i + 1) * 128, j * 32 : (j + 1) * 32])
            row.append(tile)
        tiles.append(row)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for j in range(4):
        for i in range(2):
            nisa.tensor_scalar(dst=tiles[i][j], data=tiles[i][j], op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, j * 32 : (j + 1) * 32], src=tiles[i][j])
    return out


@nki.jit
def one_bank_for_all(x):
    """x.T @ x for both halves of x (128, 256), summed twice in one PSUM tile that is used anew."""
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    for half in range(2):
        tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, half * 128 : half * 128 + 128])
        nisa.nc_matmul(dst=total, stationary=tile, moving=tile, accumulate=False)
        nisa.nc_matmul(dst=total, stationary=tile, moving=tile, accumulate=True)
        result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out[:, half * 128 : half * 128 + 128], src=result)
    return out


@nki.jit
def next_tile_made_last(x):
    """x copied by rows; the tile of an iteration is made in the one before."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(4):
        rows = slice(i * 32, i * 32 + 32)
        nisa.dma_copy(dst=tile, src=x[rows, :])
        nisa.dma_copy(dst=out[rows, :], src=tile)
        tile = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
    return out


@nki.jit
def results_of_a_loop(x):
    """Quarters of x, each a result."""
    made = []
    for i in range(4):
        out = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x[i * 32 : i * 32 + 32, :])
        made.append(out)
    return tuple(made)


@nki.jit
def in_place(x, pair, factor=3.0):
    """Writes its argument and returns two others of a tuple."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x, name="fetch")
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(dst=x, src=tile)
    nisa.dma_copy(dst=pair[1], src=pair[0])
    return pair[1], x


@nki.jit
def returns_a_part(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out[:, 0:32]


@nki.jit
def zeros_in_hbm(x):
    return nl.zeros((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)


@nki.jit
def row_of_a_reshaped(table, number, shape, dim):
    """Elements of a table that has been reshaped, from where the number says on."""
    index = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=number)
    row = nl.ndarray((1, 8), dtype=table.dtype, buffer=nl.sbuf)
    seen = table.reshape(shape).ap([[8, 1], [1, 8]], scalar_offset=index, indirect_dim=dim)
    nisa.dma_copy(dst=row, src=seen)
    out = nl.ndarray((1, 8), dtype=table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=row)
    return out


@nki.jit
def difference_of_named(x, first, second):
    """x - 5, both operands of the subtraction in tiles with these names."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    minuend = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, name=first)
    nisa.dma_copy(dst=minuend, src=x)
    subtrahend = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, name=second)
    nisa.memset(subtrahend, value=5.0)
    nisa.tensor_tensor(dst=minuend, data1=minuend, data2=subtrahend, op=nl.subtract)
    nisa.dma_copy(dst=out, src=minuend)
    return out


@nki.jit
def difference_of_parts(x_0, x):
    """x_0 minus the one tensor in x: a tuple, a list or a dict."""
    (key,) = x if isinstance(x, dict) else (0,)
    out = nl.ndarray(x_0.shape, dtype=x_0.dtype, buffer=nl.shared_hbm)
    minuend = nl.ndarray(x_0.shape, dtype=x_0.dtype, buffer=nl.sbuf, name="x_\u03bc")
    nisa.dma_copy(dst=minuend, src=x_0)
    subtrahend = nl.ndarray(x_0.shape, dtype=x_0.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=subtrahend, src=x[key])
    nisa.tensor_tensor(dst=minuend, data1=minuend, data2=subtrahend, op=nl.subtract)
    nisa.dma_copy(dst=out, src=minuend)
    return out
