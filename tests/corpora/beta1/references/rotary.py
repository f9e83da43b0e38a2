"""Rotary position embedding, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def rotate_halves(x_in: Array, cos: Array, sin: Array) -> Array:
    """Row r and row r + D/2 of (D, S) are the two coordinates that turn by the angle of row r."""
    first, second = np.split(wide(x_in), 2)
    return np.concatenate(
        [first * wide(cos) - second * wide(sin), second * wide(cos) + first * wide(sin)]
    )


def rotate_queries_and_keys(q: Array, k: Array, cos: Array, sin: Array) -> Array:
    """(2, batch, head, sequence, dim): queries and keys rotated, the same for every head."""
    return np.stack([_rotated(x, wide(cos)[:, None], wide(sin)[:, None]) for x in (q, k)])


def _rotated(x: Array, cos: Array, sin: Array) -> Array:
    """x·cos + (−second half, first half)·sin along the last axis, an angle per coordinate."""
    first, second = np.split(wide(x), 2, axis=-1)
    return wide(x) * cos + np.concatenate([-second, first], axis=-1) * sin


def query_and_key_rotated(
    qkv: Array, sin: Array, cos: Array, position_ids: Array, h: int, k_h: int
) -> tuple[Array, Array, Array]:
    """Heads of a token per row: h queries and k_h keys turn, k_h values stay.

    qkv: (batch, h + 2·k_h, D); sin, cos: (positions, D/2), taken at each token's position.
    """
    sines, cosines = (wide(table)[position_ids][:, None] for table in (sin, cos))

    def rotated(x: Array) -> Array:
        first, second = np.split(wide(x), 2, axis=2)
        parts = (first * cosines - second * sines, second * cosines + first * sines)
        return np.concatenate(parts, axis=2)

    queries, keys, values = np.split(qkv, [h, h + k_h], axis=1)
    return rotated(queries), rotated(keys), wide(values)
