"""Attention to a context in blocks of a cache, in float64."""

from __future__ import annotations

import numpy as np
from normalization import softmax_last_axis
from wide import Array, wide


def new_tokens_after_a_context(
    query: Array, key: Array, value: Array, key_cache: Array, value_cache: Array, order: Array
) -> Array:
    """One sequence: each new token sees the whole context, and the new ones up to itself."""
    count = query.shape[2]
    seen = np.tril(np.ones((count, count), bool))
    keys = _after(_context(key_cache, order), wide(key)[0].swapaxes(1, 2))
    values = _after(_context(value_cache, order), wide(value)[0])
    hidden = np.concatenate([np.zeros((count, keys.shape[1] - count), bool), ~seen], axis=1)
    return _attended(wide(query)[0], keys, values, hidden)[None]


def one_token_per_context(
    query: Array, key: Array, value: Array, key_cache: Array, value_cache: Array, order: Array
) -> Array:
    """Token i sees the i-th of as many equal contexts, and itself."""
    count = query.shape[2]
    context = [np.split(_context(c, order), count, axis=1) for c in (key_cache, value_cache)]
    out = np.empty(query.shape)
    for i, (keys, values) in enumerate(zip(*context, strict=True)):
        keys = _after(keys, wide(key)[0, :, :, i : i + 1].swapaxes(1, 2))
        values = _after(values, wide(value)[0, :, i : i + 1])
        hidden = np.zeros((1, keys.shape[1]), bool)
        out[0, :, i : i + 1] = _attended(wide(query)[0, :, i : i + 1], keys, values, hidden)
    return out


def _context(cache: Array, order: Array) -> Array:
    """(blocks, heads, size, D) → (heads, tokens, D), blocks as `order` sorts them."""
    blocks = wide(cache)[np.argsort(order, kind="stable")]
    return blocks.swapaxes(0, 1).reshape(cache.shape[1], -1, cache.shape[3])


def _after(first: Array, second: Array) -> Array:
    return np.concatenate([first, second], axis=1)


def _attended(queries: Array, keys: Array, values: Array, hidden: Array) -> Array:
    """(heads, tokens, D): softmax(q kᵀ / sqrt(D)) v, several query heads to a key head."""
    times = len(queries) // len(keys)
    keys, values = (np.repeat(x, times, axis=0) for x in (keys, values))
    scores = queries @ keys.swapaxes(1, 2) / np.sqrt(queries.shape[2])
    return softmax_last_axis(np.where(hidden, -np.inf, scores)) @ values
