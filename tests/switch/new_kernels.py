"""Kernels of 0.2 and later, bound to the backend of `nki` when this file is run."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def double_in_place(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=x, src=tile)
    return x


@nki.jit
def last_row(x):
    """Legal from 0.6 on: earlier versions take no negative index."""
    out = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x[-1, 0 : x.shape[1]].reshape((1, x.shape[1])))
    return out


@nki.jit
def needs_200_kb(x):
    """Fits a partition of SBUF on trn2 and trn3, not on trn1."""
    nl.ndarray((128, 50_000), dtype=nl.float32, buffer=nl.sbuf)
    return x


@nki.jit
def unwritten(x):
    """Gives what new memory holds: an option of the machine."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def imports_late(x):
    """Generated kernels import inside their bodies."""
    import nki.language as late

    out = late.ndarray(x.shape, dtype=x.dtype, buffer=late.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
