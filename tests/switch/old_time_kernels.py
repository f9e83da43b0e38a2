"""Kernels of 0.1 whose time is asked for."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


@nki.jit
def repeated(x, count):
    """x doubled as often as the number in count (1, 1) says."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for _ in range(nt.scalar(nl.load(count))):
        tile = nl.add(tile, tile)
    nl.store(out, value=tile)
    return out


@nki.jit
def lower_triangle(x):
    """x (128, 128) where column <= row, written under a mask that is not a rectangle."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.arange(128)[:, None], nl.arange(128)[None, :]
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    tile[rows, columns] = nl.add(nl.load(x), 1.0, mask=columns <= rows)
    nl.store(out, value=tile)
    return out


@nki.jit
def row_that_an_array_names(x, number):
    y = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    row, column = nl.mgrid[0:1, 0 : x.shape[1]]
    nisa.dma_copy(dst=y[row, column], src=x[nl.load(number), column])
    return y


@nki.jit
def row_of_a_reshaped(x, number):
    """A row of x (2, 150, 64) as one of (300, 64)."""
    y = nl.ndarray((1, x.shape[-1]), dtype=x.dtype, buffer=nl.shared_hbm)
    row, column = nl.mgrid[0:1, 0 : x.shape[-1]]
    rows = x.reshape((x.shape[0] * x.shape[1], x.shape[2]))
    nisa.dma_copy(dst=y[row, column], src=rows[nl.load(number), column])
    return y


@nki.jit
def sum_of_flat(x, y):
    """x + y of tensors (n,), each loaded with the same index, a tile (128, n / 128)."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = x.shape[0] // 128
    index = nl.arange(128)[:, None] * width + nl.arange(width)[None, :]
    nl.store(out[index], value=nl.load(x[index]) + nl.load(y[index]))
    return out
