"""Sampling of tokens from logits by the inverse of their cumulated probabilities, in float64."""

from __future__ import annotations

import numpy as np
from wide import Array, wide

BISECTIONS = 12


def cumulated(x_tensor: Array) -> Array:
    """Sums along the last axis."""
    return wide(x_tensor).cumsum(axis=1)


def _powers(logits: Array, temperatures: Array) -> Array:
    """exp(logit / temperature), 1 for the likeliest token of each row."""
    scaled = wide(logits) / wide(temperatures)
    return np.exp(scaled - scaled.max(axis=1, keepdims=True))


def _drawn(powers: Array, uniform: Array) -> Array:
    """The first token at which the cumulated share reaches the uniform number, per row."""
    shares = powers.cumsum(axis=1)
    return (shares < wide(uniform) * shares[:, -1:]).sum(axis=1, keepdims=True).astype(np.float64)


def unfiltered_tokens(logits: Array, temperatures: Array, uniform_u: Array) -> Array:
    """A token per row, as a float32 number: (rows, 1)."""
    return _drawn(_powers(logits, temperatures), uniform_u)


def _bisected(powers: Array, measure: Array, wanted: Array) -> Array:
    """A power below which tokens are dropped, per row, found by halving [0, 1] 12 times.

    It rises as long as the tokens at or above it still measure at least what is wanted.
    """
    low, high = np.zeros((len(powers), 1)), np.ones((len(powers), 1))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        is_enough = np.where(powers >= middle, measure, 0).sum(axis=1, keepdims=True) >= wanted
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle)
    return low


def filtered_tokens(
    logits: Array,
    temperatures: Array,
    top_ks: Array,
    top_ps: Array,
    min_ps: Array,
    uniform_u: Array,
) -> Array:
    """As `unfiltered_tokens`, among the tokens that top-k, top-p and min-p leave.

    Thresholds of the first two come from `_bisected`, min-p's is relative to the likeliest.
    """
    powers = _powers(logits, temperatures)
    by_count = _bisected(powers, np.ones_like(powers), wide(top_ks))
    by_mass = _bisected(powers, powers, wide(top_ps) * powers.sum(axis=1, keepdims=True))
    least = np.maximum(np.maximum(by_count, by_mass), wide(min_ps))
    return _drawn(np.where(powers >= least, powers, 0), uniform_u)
