"""Scans along the free axis."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def first_order_scan(a_tensor: Array, b_tensor: Array) -> Array:
    """state = a[t] * state + b[t] from 0, every state kept."""
    factor, term = wide(a_tensor), wide(b_tensor)
    states = np.empty_like(factor)
    state = np.zeros(len(factor))
    for t in range(factor.shape[1]):
        state = factor[:, t] * state + term[:, t]
        states[:, t] = state
    return states


def running_sum(src_data: Array, imm0: float) -> Array:
    """Sums of x + imm0 so far."""
    return np.cumsum(wide(src_data) + imm0, axis=1)


def running_maximum(src_data: Array, imm0: Array) -> Array:
    """The maximum of x + imm0 so far, imm0 a column."""
    return np.maximum.accumulate(wide(src_data) + wide(imm0), axis=1)


def running_sum_from(src_data: Array, imm0: Array, imm1: Array) -> Array:
    """imm1 plus the sums of x + imm0 so far, both columns."""
    return wide(imm1) + np.cumsum(wide(src_data) + wide(imm0), axis=1)


def second_running_sum(src_data: Array, imm0: float) -> Array:
    """The sums of x + imm0 over the row twice: what the second round has so far."""
    once = wide(src_data) + imm0
    return once.sum(axis=1, keepdims=True) + np.cumsum(once, axis=1)


def running_sum_from_initial(src_data: Array, initial: float) -> Array:
    """The initial value plus the sums of x so far."""
    return initial + np.cumsum(wide(src_data), axis=1)
