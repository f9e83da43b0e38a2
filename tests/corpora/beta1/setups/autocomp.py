"""How the kernels of autocomp that take more than arrays are called."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


def with_pair_of_the_past(
    module: Any,
    Q: Any,  # noqa: N803
    K: Any,  # noqa: N803
    V: Any,  # noqa: N803
    past_key: Any,
    past_value: Any,
    attention_mask: Any,
) -> Any:
    """The past goes in as a tuple of two arrays."""
    return module.ref(Q, K, V, (past_key, past_value), attention_mask)


def online_step(module: Any, q: Any, k: Any, v: Any, olm_prev: Any, tile: int) -> Any:
    """The causal mask of the tile is made on the host; bfloat16 inside, float32 sums."""
    rows, positions = olm_prev.shape[0], k.shape[1]
    queries = np.arange(tile * rows, (tile + 1) * rows)
    return module._flash_attention_core(
        *(q, k, v, olm_prev),
        kernel_dtype=nl.bfloat16,
        acc_type=nl.float32,
        tile_mask=np.arange(positions) <= queries[:, None],
        q_tile_idx=tile,
        Q_TILE_SIZE=rows,
        LARGE_KV_TILE_SIZE=positions,
    )


def transposed_in_sbuf(module: Any, p_local: Any) -> Any:
    """The kernel works on tiles of its caller's: load, call, store."""

    @nki.jit
    def caller(p_local: Any) -> Any:
        rows, columns = p_local.shape
        given = nl.load(p_local)
        made = nl.ndarray(
            (nl.par_dim(128), columns // 128 * rows), dtype=p_local.dtype, buffer=nl.sbuf
        )
        module.transpose_p_local_reference_version(
            p_local_transposed=made, p_local=given, Q_TILE_SIZE=rows, LARGE_KV_TILE_SIZE=columns
        )
        out = nl.ndarray(made.shape, dtype=made.dtype, buffer=nl.shared_hbm)
        nl.store(out, made)
        return out

    return caller(p_local)
