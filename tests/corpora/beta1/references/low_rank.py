"""A matrix product with a correction of low rank, in float64."""

from __future__ import annotations

from wide import Array, wide


def with_low_rank_of_tiles(v1: Array, v2: Array, v3: Array, v4: Array) -> Array:
    """x @ w + (x @ a) @ b, operands cut into tiles of 128.

    x: (.., .., 128, K/128, 128), w: (K/128, 128, N), a: (K/128, 128, R), b: (R, N). Gives
    (.., .., 128, N/128, 128), rows as in x.
    """
    rows = wide(v1).reshape(-1, v1.shape[3] * v1.shape[4])
    weights, down = (wide(w).reshape(rows.shape[1], -1) for w in (v2, v3))
    result = rows @ weights
    result += (rows @ down) @ wide(v4)
    return result.reshape(*v1.shape[:3], -1, 128)
