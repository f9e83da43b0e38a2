"""Selective scans of state-space models, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def selective_scan(delta: Array, u: Array, A: Array, B: Array, C: Array) -> Array:  # noqa: N803
    """h[t] = exp(delta[t]·A)·h[t-1] + delta[t]·u[t]·B[t], y[t] = sum over states of C[t]·h[t].

    delta, u: (batch, channels, time); A: (channels, states); B, C: (batch, states, time).
    """
    step, signal = wide(delta), wide(u)
    state = np.zeros((step.shape[0], *np.shape(A)))
    out = np.empty_like(step)
    for t in range(step.shape[2]):
        decay = np.exp(step[:, :, t, None] * wide(A))
        drive = (step * signal)[:, :, t, None] * wide(B)[:, None, :, t]
        state = decay * state + drive
        out[:, :, t] = (state * wide(C)[:, None, :, t]).sum(axis=2)
    return out


def selective_scan_of_one(delta: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
    """`selective_scan` of a single sequence, without the axis of batches."""
    return selective_scan(delta[None], u[None], a, b[None], c[None])[0]
