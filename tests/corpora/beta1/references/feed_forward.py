"""Feed-forward layers and their gates, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def swish(x: Array) -> Array:
    """x / (1 + exp(-x))."""
    return x / (1.0 + np.exp(-x))


def product(lhs: Array, rhs: Array) -> Array:
    """lhs @ rhs."""
    return wide(lhs) @ wide(rhs)


def gated(x: Array, gate: Array, up: Array, down: Array) -> Array:
    """(swish(x @ gate) * (x @ up)) @ down, the last axis of x contracted."""
    x = wide(x)
    return (swish(x @ wide(gate)) * (x @ wide(up))) @ wide(down)


def swish_of_v1(v1: Array) -> Array:
    """`swish`, of an argument with this name."""
    return swish(wide(v1))


def gated_of_tiles(v1: Array, v2: Array, v3: Array, v4: Array) -> Array:
    """`gated` of operands cut into tiles of 128 rows: v4 is the gate, v2 up, v3 down.

    v1: (M/512, 4, 128, K/128, 128); v2, v4: (K/128, 128, N); v3: (N/128, 128, K). Gives
    (M/128, 128, K).
    """
    rows = v1.reshape(-1, v1.shape[-2] * v1.shape[-1])
    gate, up, down = (w.reshape(-1, w.shape[-1]) for w in (v4, v2, v3))
    return gated(rows, gate, up, down).reshape(-1, 128, down.shape[-1])


def gated_of_a_token(lhs: Array, up_w: Array, gate_w: Array, down_w: Array) -> Array:
    """`gated`, by these names."""
    return gated(lhs, gate_w, up_w, down_w)
