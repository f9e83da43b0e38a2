"""A selective scan of rows, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def selective_scan_of_rows(delta: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
    """h = exp(delta·a)·h + delta·u·b from 0 along the columns; the sum over states of c·h.

    delta, u: (channels, time); a: (channels, states); b, c: (states, time).
    """
    step, drive = wide(delta), wide(delta) * wide(u)
    held = np.zeros(a.shape)
    out = np.empty_like(step)
    for t in range(step.shape[1]):
        held = np.exp(step[:, t, None] * wide(a)) * held + drive[:, t, None] * wide(b)[:, t]
        out[:, t] = held @ wide(c)[:, t]
    return out
