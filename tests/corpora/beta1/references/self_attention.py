"""Attention, whole and in steps of an online softmax, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def softmax(scores: Array) -> Array:
    """Along the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def softmax_of_in_tensor(in_tensor: Array) -> Array:
    """`softmax`, of an argument with this name."""
    return softmax(wide(in_tensor))


def unscaled_columns(q: Array, k: Array, v: Array) -> Array:
    """q, k, v: (D, S), a column per position; no scale, no mask. Gives (S, D)."""
    return softmax(wide(q).T @ wide(k)) @ wide(v).T


def scaled_columns(q_ref: Array, k_ref: Array, v_ref: Array) -> Array:
    """q, k: (B, D, S), v: (B, S, D), scores over 8. Gives (B, D, S)."""
    scores = wide(q_ref).swapaxes(1, 2) @ wide(k_ref) / 8
    return (softmax(scores) @ wide(v_ref)).swapaxes(1, 2)


def causal_of_shared_heads(q: Array, k: Array, v: Array, sliding_window: int) -> Array:
    """A query sees itself and what is before it, `sliding_window` keys in all (0: every key).

    q: (heads, S, D); k, v: (shared heads, S, D), each for as many neighbouring heads. No scale.
    Gives (heads, D, S).
    """
    keys, values = (np.repeat(wide(x), len(q) // len(x), axis=0) for x in (k, v))
    distance = np.arange(q.shape[1])[:, None] - np.arange(k.shape[1])
    is_seen = (distance >= 0) & ((distance < sliding_window) if sliding_window else True)
    scores = np.where(is_seen, wide(q) @ keys.swapaxes(1, 2), -np.inf)
    return (softmax(scores) @ values).swapaxes(1, 2)


def one_token_of_shared_heads(
    Q: Array,  # noqa: N803
    K: Array,  # noqa: N803
    V: Array,  # noqa: N803
    past_key: Array,
    past_value: Array,
    attention_mask: Array,
) -> Array:
    """A query attends to its own key and to the past keys that the mask allows.

    Q: (B, heads, 1, D); K, V: (B, shared heads, 1, D), the past likewise with T positions; a shared
    head serves heads / shared heads neighbours. The mask speaks about the past only.
    """
    times = Q.shape[1] // K.shape[1]
    keys, values = (
        np.repeat(np.concatenate([wide(past), wide(own)], axis=2), times, axis=1)
        for past, own in ((past_key, K), (past_value, V))
    )
    scores = wide(Q) @ keys.swapaxes(2, 3) / np.sqrt(Q.shape[-1])
    scores[..., :-1] = np.where(attention_mask, scores[..., :-1], -np.inf)
    return softmax(scores) @ values


def one_online_step(q: Array, k: Array, v: Array, olm_prev: Array, tile: int) -> Array:
    """A step of online softmax: rows of (output, sum, maximum) after the keys that are visible.

    q, k: (D, S); v: (128, S/128, D) with position 128·j + p at [p, j]; olm: (128, D + 2). Query
    row r of tile `tile` is at position 128·tile + r and sees the keys up to itself.
    """
    rows, depth = olm_prev.shape[0], olm_prev.shape[1] - 2
    before = wide(olm_prev)
    queries = np.arange(tile * rows, (tile + 1) * rows)
    scores = wide(q)[:, queries].T @ wide(k)
    scores[np.arange(k.shape[1]) > queries[:, None]] = -np.inf
    highest = np.maximum(scores.max(axis=1), before[:, depth + 1])
    powers = np.exp(scores - highest[:, None])
    fade = np.exp(before[:, depth + 1] - highest)[:, None]
    values = wide(v).swapaxes(0, 1).reshape(-1, depth)
    output = before[:, :depth] * fade + powers @ values
    sums = before[:, depth] * fade[:, 0] + powers.sum(axis=1)
    return np.column_stack([output, sums, highest])


def tiles_transposed(p_local: Array) -> Array:
    """(R, 128·n) → (128, n·R): each block of 128 columns becomes R columns of its transpose."""
    blocks = np.split(p_local, p_local.shape[1] // 128, axis=1)
    return np.concatenate([block.T for block in blocks], axis=1)
