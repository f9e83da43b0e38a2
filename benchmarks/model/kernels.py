"""left.T @ right in the 0.6 language, (K, M) and (K, N), in the forms that people write: their
estimates are timed.
"""

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def plain(left: Any, right: Any) -> Any:
    """Both sides are loaded in the innermost loop."""
    contraction, height = left.shape
    width = right.shape[1]
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(height // 128):
        for n in nl.affine_range(width // 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(contraction // 128):
                rows = slice(k * 128, (k + 1) * 128)
                block = nl.ndarray((128, 128), dtype=left.dtype, buffer=nl.sbuf)
                moving = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=block, src=left[rows, m * 128 : (m + 1) * 128])
                nisa.dma_copy(dst=moving, src=right[rows, n * 512 : (n + 1) * 512])
                nisa.nc_matmul(dst=total, stationary=block, moving=moving)
            result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=result)
    return out


@nki.jit
def kept(left: Any, right: Any) -> Any:
    """A column block of the moving side stays in SBUF, in one tile."""
    contraction, height = left.shape
    width = right.shape[1]
    depth = contraction // 128
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(width // 512):
        columns = nl.ndarray((128, depth, 512), dtype=right.dtype, buffer=nl.sbuf)
        for k in nl.affine_range(depth):
            source = right[k * 128 : (k + 1) * 128, n * 512 : (n + 1) * 512]
            nisa.dma_copy(dst=columns[:, k, :], src=source)
        for m in nl.affine_range(height // 128):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(depth):
                block = nl.ndarray((128, 128), dtype=left.dtype, buffer=nl.sbuf)
                source = left[k * 128 : (k + 1) * 128, m * 128 : (m + 1) * 128]
                nisa.dma_copy(dst=block, src=source)
                nisa.nc_matmul(dst=total, stationary=block, moving=columns[:, k, :])
            result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=result)
    return out


@nki.jit
def listed(left: Any, right: Any) -> Any:
    """A column block of the moving side stays in SBUF, in a list of tiles."""
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
                nisa.nc_matmul(dst=total, stationary=block, moving=columns[k])
            result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=result)
    return out


@nki.jit
def reloaded(left: Any, right: Any) -> Any:
    """A row block of the stationary side stays in one tile; each product first fills a list."""
    contraction, height = left.shape
    width = right.shape[1]
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for m in range(height // 128):
        rows = nl.ndarray((128, contraction // 128, 128), dtype=left.dtype, buffer=nl.sbuf)
        for k in range(contraction // 128):
            source = left[k * 128 : (k + 1) * 128, m * 128 : (m + 1) * 128]
            nisa.dma_copy(dst=rows[:, k, :], src=source)
        for n in range(width // 512):
            columns = []
            for k in range(contraction // 128):
                tile = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=tile, src=right[k * 128 : (k + 1) * 128, n * 512 : (n + 1) * 512])
                columns.append(tile)
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(contraction // 128):
                nisa.nc_matmul(dst=total, stationary=rows[:, k, :], moving=columns[k])
            result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128, n * 512 : (n + 1) * 512], src=result)
    return out


@nki.jit
def square(left: Any, right: Any) -> Any:
    """Four sums at a time, two row blocks by two column blocks."""
    contraction, height = left.shape
    width = right.shape[1]
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for m in range(0, height, 256):
        for n in range(0, width, 1024):
            totals = [
                [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(2)]
                for _ in range(2)
            ]
            for k in range(0, contraction, 128):
                blocks = nl.ndarray((128, 256), dtype=left.dtype, buffer=nl.sbuf)
                moving = nl.ndarray((128, 1024), dtype=right.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=blocks, src=left[k : k + 128, m : m + 256])
                nisa.dma_copy(dst=moving, src=right[k : k + 128, n : n + 1024])
                for i in range(2):
                    for j in range(2):
                        nisa.nc_matmul(
                            dst=totals[i][j],
                            stationary=blocks[:, i * 128 : (i + 1) * 128],
                            moving=moving[:, j * 512 : (j + 1) * 512],
                        )
            for i in range(2):
                for j in range(2):
                    row, column = m + i * 128, n + j * 512
                    result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=result, src=totals[i][j])
                    nisa.dma_copy(dst=out[row : row + 128, column : column + 512], src=result)
    return out


@nki.jit
def column(left: Any, right: Any) -> Any:
    """Four sums at a time, of four row blocks and one column block."""
    contraction, height = left.shape
    width = right.shape[1]
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for m in range(0, height, 512):
        for n in range(0, width, 512):
            totals = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(4)]
            for k in range(0, contraction, 128):
                blocks = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
                moving = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=blocks, src=left[k : k + 128, m : m + 512])
                nisa.dma_copy(dst=moving, src=right[k : k + 128, n : n + 512])
                for i in range(4):
                    block = blocks[:, i * 128 : (i + 1) * 128]
                    nisa.nc_matmul(dst=totals[i], stationary=block, moving=moving)
            for i in range(4):
                row = m + i * 128
                result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=result, src=totals[i])
                nisa.dma_copy(dst=out[row : row + 128, n : n + 512], src=result)
    return out


@nki.jit
def added(left: Any, right: Any) -> Any:
    """The contraction outside: each product is added to one of a list of sums in SBUF."""
    contraction, height = left.shape
    width = right.shape[1]
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for m in range(0, height, 128):
        sums = []
        for _ in range(width // 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=total, value=0.0)
            sums.append(total)
        for k in range(0, contraction, 128):
            block = nl.ndarray((128, 128), dtype=left.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=block, src=left[k : k + 128, m : m + 128])
            for n in range(width // 512):
                moving = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=moving, src=right[k : k + 128, n * 512 : (n + 1) * 512])
                product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=product, stationary=block, moving=moving)
                nisa.tensor_tensor(dst=sums[n], data1=sums[n], data2=product, op=nl.add)
        for n in range(width // 512):
            result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=sums[n])
            nisa.dma_copy(dst=out[m : m + 128, n * 512 : (n + 1) * 512], src=result)
    return out


@nki.jit
def transposed(left: Any, right: Any) -> Any:
    """left @ right: the blocks of a row of left are transposed through PSUM into a list."""
    height, contraction = left.shape
    width = right.shape[1]
    out = nl.ndarray((height, width), dtype=left.dtype, buffer=nl.shared_hbm)
    for m in range(0, height, 128):
        rows = nl.ndarray((128, contraction), dtype=left.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=left[m : m + 128, :])
        blocks = []
        for k in range(0, contraction, 128):
            transposed = nl.ndarray((128, 128), dtype=left.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=transposed, data=rows[:, k : k + 128])
            block = nl.ndarray((128, 128), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=block, src=transposed)
            blocks.append(block)
        for n in range(0, width, 512):
            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k, block in enumerate(blocks):
                moving = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=moving, src=right[k * 128 : (k + 1) * 128, n : n + 512])
                nisa.nc_matmul(dst=total, stationary=block, moving=moving)
            result = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m : m + 128, n : n + 512], src=result)
    return out
