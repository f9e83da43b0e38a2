"""left.T @ right in the 0.6 language, (K, M) and (K, N), of which the estimate is timed."""

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
