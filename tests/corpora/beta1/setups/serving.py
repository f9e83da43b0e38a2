"""How the kernels of nkipy that functions make, or that take derived arguments, are called."""

from __future__ import annotations

from typing import Any

import numpy as np


def tail_insert(module: Any, tail_start: int, **arrays: Any) -> Any:
    """The tail's start is fixed when the kernel is made."""
    return module._make_topk_tail_insert_kernel(tail_start)(**arrays)


def sample_filtered(module: Any, **arrays: Any) -> Any:
    """The kernel with thresholds."""
    return module._sample_tokens_filtered(**arrays)


def sample_unfiltered(module: Any, **arrays: Any) -> Any:
    """The kernel that leaves every token."""
    return module._sample_tokens_unfiltered(**arrays)


def pool_from_state(module: Any, ratio: int, head_dim: int, **given: Any) -> Any:
    """Sizes are fixed when the kernel is made; with overlap a row has two heads."""
    ring_size, overlap = given.pop("ring_size"), given.pop("overlap")
    kernel = module._make_decode_pool_from_state_kernel(
        ratio=ratio,
        head_dim=head_dim,
        state_width=head_dim * (2 if overlap else 1),
        ring_size=ring_size,
        overlap=overlap,
    )
    return kernel(**given)


def pool_from_slab(
    module: Any, kv_new: Any, score_new: Any, ape: Any, groups: int, overlap: bool
) -> Any:
    """Where each group of positions starts, and the one before it, are told by row."""
    ratio, width = ape.shape
    base = np.arange(0, len(kv_new), ratio, dtype=np.int32)
    has_before = (np.arange(len(base)) % groups > 0).astype(np.int32)
    kernel = module._make_prefill_pool_from_slab_kernel(
        ratio=ratio,
        head_dim=width // (2 if overlap else 1),
        state_width=width,
        overlap=overlap,
    )
    return kernel(kv_new, score_new, ape, base, np.maximum(base - ratio, 0), has_before)


def attention_without_context(module: Any, query: Any, key: Any, value: Any, lengths: Any) -> Any:
    """Sequences that start here, one after another: nothing in the cache, no tiles, no sink."""
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.arange(len(starts))
    is_seen = (places <= places[:, None]) & (places >= starts[:, None])
    cache = np.zeros((4, key.shape[1], 32, key.shape[2]), key.dtype)
    return module.flash_paged_attention_varlen[key.shape[1]](
        *(query, key, value, cache, cache, is_seen.astype(np.uint8), None),
        **dict.fromkeys(_CONTEXT),
    )


_CONTEXT = tuple(
    f"{phase}_{what}"
    for phase in ("prefill", "decode")
    for what in (
        *("tile_q_indices", "tile_block_tables", "tile_masks"),
        *("num_dynamic_loop_steps", "q_update_pred", "last_tile_indices"),
    )
)
