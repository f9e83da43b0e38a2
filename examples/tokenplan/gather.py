"""Rows that are chosen on the device: which ones is not known before it runs, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def gather_kernel(table, rows):
    """Block b of the result is half of table[rows[b]], read after blocks before b were stored back.

    table: (N, C); rows: (B, 128, 1) int32 below N, N at least 128 * B. The blocks go one after the
    other to a copy of the table, rows 128 * b on, from which the next ones are gathered.
    Returns that copy.
    """
    height, width = table.shape
    pmax = nl.tile_size.pmax
    state = nl.ndarray((height, width), dtype=table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=state, src=table)
    for b in range(rows.shape[0]):
        index = nl.ndarray((pmax, 1), dtype=rows.dtype, buffer=nl.sbuf)
        tile = nl.ndarray((pmax, width), dtype=table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=index, src=rows[b, :, :])
        chosen = state.ap(
            pattern=[[width, pmax], [1, width]], offset=0, vector_offset=index, indirect_dim=0
        )
        nisa.dma_copy(dst=tile, src=chosen)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
        nisa.dma_copy(dst=state[b * pmax : (b + 1) * pmax, :], src=tile)
    return state
