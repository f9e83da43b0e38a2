"""Attention to chosen keys with a sink, and the scores that choose them, in float64.

A sink is a score per head that takes part in the sum of powers and has no value. Keys serve as
values too where only one of them is given. q_T: (queries, D, heads), scaled already.
"""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def _attended(q_T: Array, keys: Array, values: Array, mask: Array, sink: Array) -> Array:  # noqa: N803
    """keys, values: (queries, K, D), mask: (queries, K), sink: (1, heads). (queries, heads, D)."""
    scores = wide(q_T).swapaxes(1, 2) @ wide(keys).swapaxes(1, 2)
    scores = np.where(wide(mask)[:, None, :] > 0, scores, -np.inf)
    sinks = np.broadcast_to(wide(sink).T, (*scores.shape[:2], 1))
    highest = np.maximum(scores.max(axis=2, keepdims=True), sinks)
    powers = np.exp(scores - highest)
    total = powers.sum(axis=2, keepdims=True) + np.exp(sinks - highest)
    return powers / total @ wide(values)


def queries(q_T: Array, k_T: Array, v_P: Array, mask: Array, sink: Array) -> Array:  # noqa: N803
    """k_T: (queries, D, K); v_P: (queries, K, D)."""
    return _attended(q_T, wide(k_T).swapaxes(1, 2), v_P, mask, sink)


def one_query(q_T: Array, k_T: Array, v_P: Array, mask: Array, sink: Array) -> Array:  # noqa: N803
    """`queries` of a single one, without their axis; mask: (1, K)."""
    return queries(q_T[None], k_T[None], v_P[None], mask, sink)[0]


def paged_queries(
    q_T: Array,  # noqa: N803
    kv_hbm: Array,
    topk_T: Array,  # noqa: N803
    mask: Array,
    sink: Array,
) -> Array:
    """Keys, which are the values, are the rows of kv_hbm that topk_T names: (K, queries)."""
    chosen = kv_hbm[topk_T.T]
    return _attended(q_T, chosen, chosen, mask, sink)


def indexer_scores(q_T: Array, kv_T: Array, w: Array) -> Array:  # noqa: N803
    """Positive scores of the heads, weighted by w (queries, heads) and summed: (queries, K)."""
    scores = np.maximum(wide(q_T).swapaxes(1, 2) @ wide(kv_T), 0)
    return np.einsum("qhk,qh->qk", scores, wide(w))


def sequences(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    """Sequences one after another; a token sees its own sequence up to itself.

    query: (1, heads, S, D); key: (1, shared heads, D, S); value: (1, shared heads, S, D). Scores
    over sqrt(D). Gives the shape of query.
    """
    times = query.shape[1] // key.shape[1]
    keys, values = (np.repeat(wide(x)[0], times, axis=0) for x in (key, value))
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    is_seen = np.tril(sequence == sequence[:, None])
    scores = np.where(is_seen, wide(query)[0] @ keys / np.sqrt(query.shape[3]), -np.inf)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (powers / powers.sum(axis=2, keepdims=True) @ values)[None]
