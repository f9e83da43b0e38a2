"""Kernels of 0.6 whose time is estimated, bound to the backend of `nki` when this file is run."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rows_doubled(x, factor=2.0):
    """x (R, F) times factor, 128 rows at a time; the last tile is written in part."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, free = x.shape
    for start in range(0, rows, 128):
        count = min(128, rows - start)
        tile = nl.ndarray((128, free), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:count, :], src=x[start : start + count, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
        nisa.dma_copy(dst=out[start : start + count, :], src=tile[0:count, :])
    return out


@nki.jit
def in_place(x, pair):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=pair[0])
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=x, src=tile)
    return x


@nki.jit
def product(stationary, moving):
    """stationary.T @ moving for (128, 128) and (128, 512)."""
    left = nl.ndarray((128, 128), dtype=stationary.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 512), dtype=moving.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=stationary, name="weights")
    nisa.dma_copy(dst=right, src=moving)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(3):
        nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=k > 0)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def too_much(x):
    """Ten tiles of 64 KiB per partition that are all alive at once."""
    tiles = []
    for _ in range(10):
        tile = nl.ndarray((128, 16384), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=0.0)
        tiles.append(tile)
    for tile in tiles:
        nisa.dma_copy(dst=x, src=tile[:, 0:1])
    return x


@nki.jit
def zeros_in_hbm(x):
    return nl.zeros(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)


@nki.jit
def without_its_tensor(x):
    return x.shape.nothing


@nki.jit
def waits(x):
    """One copy told to wait for the other, which touches nothing of it."""
    out = nl.ndarray((2, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
    first = nisa.dma_copy(dst=out[0], src=x)
    nisa.dma_copy(dst=out[1], src=x).depends_on(first)
    return out


@nki.jit
def counted(n):
    """As many copies as a register says that is loaded from the parameter."""
    out = nl.ndarray(n.shape, dtype=n.dtype, buffer=nl.shared_hbm)
    count = nisa.register_alloc()
    nisa.register_load(count, n)
    for _ in nl.dynamic_range(0, count):
        nisa.dma_copy(dst=out, src=n)
    return out


@nki.jit
def left_half(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[:, 0:32], src=x[:, 0:32])
    return out[:, 0:32]


@nki.jit
def halves_as_rows(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out.reshape((2 * x.shape[0], x.shape[1] // 2))


def copied_rows(x, out, first, count):
    """Rows of x, 128 at a time, through one tile each; the last tile."""
    for row in range(first, first + count, 128):
        tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[row : row + 128, :])
        nisa.dma_copy(dst=out[row : row + 128, :], src=tile)
    return tile


@nki.jit
def copied(x):
    """All rows on one core, or a half on each of two."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    count = x.shape[0] // nl.num_programs(0) if nl.program_ndim() else x.shape[0]
    copied_rows(x, out, nl.program_id(0) * count if nl.program_ndim() else 0, count)
    return out


@nki.jit
def second_core_more(x):
    """Core 1 copies all rows but the first tile, core 0 that one."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if nl.program_id(0):
        copied_rows(x, out, 128, x.shape[0] - 128)
    else:
        copied_rows(x, out, 0, 128)
    return out


@nki.jit
def exchanged(x):
    """Each core stores the tile of the other, and waits for it."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    mine = copied_rows(x, out, 128 * core, 128)
    other = nl.ndarray(mine.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.sendrecv(src=mine, dst=other, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.dma_copy(dst=out[128 * core : 128 * core + 128, :], src=other)
    nisa.core_barrier(out, (0, 1))
    return out
