"""Caches whose rows are written and read by index, and pools of them; sums in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from wide import Array, wide


def rows_gathered(state: Array, row_mapping: Array) -> Array:
    """state[row_mapping]."""
    return state[row_mapping]


def rows_in_slots(kv_buffer: Array, rows: Array, slot_idxs: Array) -> Array:
    """Each row in its slot."""
    kv_buffer[slot_idxs] = rows
    return kv_buffer


def keys_and_values_in_slots(
    key: Array, value: Array, kv_cache: Array, slot_mapping: Array
) -> Array:
    """Keys in the first half of the cache (2, blocks, 1, size, D), values in the second."""
    flat = kv_cache.reshape(2, -1, kv_cache.shape[-1])
    flat[:, slot_mapping] = key[:, 0], value[:, 0]
    return kv_cache


def token_in_caches(
    position_ids: Array, k: Array, v: Array, cache_k: Array, cache_v: Array
) -> tuple[Array, Array]:
    """A token per batch: k (batch, heads, D) in the last axis of its cache, v in the second."""
    batch = np.arange(len(k))
    cache_k[batch, :, :, position_ids] = k
    cache_v[batch, position_ids] = v
    return cache_k, cache_v


def tail_inserted(
    topk_global_t: Array,
    topk_mask: Array,
    topk_lens: Array,
    safe_extra: Array,
    extra_mask: Array,
    extra_lens: Array,
    tail_start: int,
) -> tuple[Array, Array, Array]:
    """More entries per token (tokens, extra) from tail_start on, and as many more in its length."""
    tail = slice(tail_start, tail_start + safe_extra.shape[1])
    topk_global_t[tail] = safe_extra.T
    topk_mask[:, tail] = extra_mask
    return topk_global_t, topk_mask, topk_lens + extra_lens


# -- the compressor's caches: each owner has a block of rows in every one --------------------------


def caches_written(**given: Any) -> tuple[Array, ...]:
    """What the caches among the arguments hold when new rows have been written.

    A window and a ring take a token at its position modulo their size; the ring has its key and
    value first, then its score plus the positional term `ape` at the position modulo its length.
    A compressed cache has a row for every `ratio` positions; in a prefill, row i is column
    i mod clen of request i // clen. Dead rows and columns go to the guard's block.
    """
    written = [
        _window(**given),
        _ring(given, ""),
        _compressed(given, ""),
        _ring(given, "indexer_"),
        _compressed(given, "indexer_"),
    ]
    return tuple(cache for cache in written if cache is not None)


def _tokens(given: dict[str, Any], what: str) -> tuple[Array, Array]:
    """Owner and position of each new token."""
    if "owner_ids" not in given:
        return given[f"{what}_owner_ids"], given[f"{what}_positions"]
    owners, positions = given["owner_ids"], given["positions"]
    if "live_rows" in given:
        is_live = np.arange(len(owners)) < given["live_rows"].item()
        owners = np.where(is_live, owners, given["guard_owner"])
    return owners, positions


def _window(**given: Any) -> Array | None:
    cache = given.get("swa_kv_cache")
    if cache is not None:
        owners, positions = _tokens(given, "swa")
        size = given["window_size"]
        cache[owners * size + positions % size] = given["swa_rows"]
    return cache


def _ring(given: dict[str, Any], prefix: str) -> Array | None:
    state = given.get(f"{prefix}kv_score_state")
    if state is None:
        return None
    state, (owners, positions) = wide(state), _tokens(given, "state")
    size, ape = given[f"{prefix}ring_size"], wide(given[f"{prefix}ape"])
    scores = wide(given[f"{prefix}score_new"]) + ape[positions % len(ape)]
    row = np.concatenate([wide(given[f"{prefix}kv_new"]), scores], axis=1)
    state[owners * size + positions % size] = row
    return state


def _compressed(given: dict[str, Any], prefix: str) -> Array | None:
    cache = given.get(f"{prefix}compressed_kv_cache")
    if cache is None:
        return None
    rows = given[f"{prefix}compressed_rows"]
    if "clen" in given:
        owners, columns = _columns(given, len(rows))
    else:
        owners, positions = _tokens(given, "state")
        columns = positions // given[f"{prefix}ratio"]
    cache[owners * given[f"{prefix}max_clen"] + columns] = rows
    return cache


def _columns(given: dict[str, Any], count: int) -> tuple[Array, Array]:
    requests, columns = np.divmod(np.arange(count), given["clen"])
    owners = given["cache_owner_ids"][requests * given["owner_id_stride"]]
    if "cache_real_clen" in given:
        owners = np.where(columns < given["cache_real_clen"].item(), owners, given["guard_owner"])
    return owners, columns


# -- pools: softmax averages, feature by feature ---------------------------------------------------


def _pool(values: Array, scores: Array) -> Array:
    """The average over the first axis, weighted by the softmax of the scores of each feature."""
    powers = np.exp(scores - scores.max(axis=0))
    return (values * powers).sum(axis=0) / powers.sum(axis=0)


def pooled_from_state(
    kv_score_state: Array,
    owner_ids: Array,
    end_positions: Array,
    ratio: int,
    head_dim: int,
    ring_size: int,
    overlap: bool,
) -> Array:
    """A row per owner: the pool of its last `ratio` positions in its ring.

    With overlap, a position has features for the group after its own first, then for its own; the
    group before, where there is one, takes part with the former.
    """
    values, scores = np.split(wide(kv_score_state), 2, axis=1)
    out = []
    for owner, end in zip(owner_ids, end_positions, strict=True):
        own = [(p, int(overlap)) for p in range(end - ratio + 1, end + 1)]
        before = [(p - ratio, 0) for p, _ in own if p >= ratio] if overlap else []
        parts = [
            [
                table[owner * ring_size + p % ring_size].reshape(-1, head_dim)[half]
                for p, half in before + own
            ]
            for table in (values, scores)
        ]
        out.append(_pool(np.array(parts[0]), np.array(parts[1])))
    return np.stack(out)


def pooled_from_slab(
    kv_new: Array, score_new: Array, ape: Array, groups: int, overlap: bool
) -> Array:
    """As `pooled_from_state`, for each group of len(ape) positions of sequences of `groups`."""
    ratio, width = ape.shape
    half = width // 2 if overlap else width
    values = wide(kv_new).reshape(-1, ratio, width)
    scores = wide(score_new).reshape(-1, ratio, width) + wide(ape)
    out = []
    for group in range(len(values)):
        parts = [[table[group, :, -half:]] for table in (values, scores)]
        if overlap and group % groups:
            parts = [
                [table[group - 1, :, :half], *part]
                for table, part in zip((values, scores), parts, strict=True)
            ]
        out.append(_pool(np.concatenate(parts[0]), np.concatenate(parts[1])))
    return np.stack(out)
