"""Ten functions for searches: ragged sizes, sums over rows, several outputs, views.

`gym_functions.toml` has their shapes, `python benchmarks/gym.py schedules` the table.
"""

from __future__ import annotations

import numpy as np

EPSILON = np.float32(1e-5)


def layer_norm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """x (M, N), gain and bias (N) → (M, N)."""
    centred = x - x.mean(axis=1, keepdims=True)
    scale = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPSILON)
    return centred / scale * gain + bias


def column_sums(x: np.ndarray) -> np.ndarray:
    """x (M, N) → (N)."""
    return x.sum(axis=0)


def standardised(x: np.ndarray) -> np.ndarray:
    """Each column of x (M, N) with mean 0 and deviation 1."""
    centred = x - x.mean(axis=0)
    return centred / np.sqrt((centred * centred).mean(axis=0) + EPSILON)


def extremes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x (M, N) → (N), (N): of each column."""
    return x.max(axis=0), x.min(axis=0)


def mean_and_variance(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x (M, N) → (M), (M): of each row."""
    mean = x.mean(axis=1)
    centred = x - mean[:, None]
    return mean, (centred * centred).mean(axis=1)


def residual_norm(x: np.ndarray, y: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x, y (M, N), gain (N) → the sum (M, N), and its rows normalised."""
    total = x + y
    scale = np.sqrt((total * total).mean(axis=1, keepdims=True) + EPSILON)
    return total, total / scale * gain


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a (M, K), b (K, N) → (M, N)."""
    return a @ b


def heads(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """x (S, K), weights (K, 8·D) → (8, S, D), a view of the product."""
    return (x @ weights).reshape(x.shape[0], 8, -1).transpose(1, 0, 2)


def log_sum_exp(x: np.ndarray) -> np.ndarray:
    """x (M, N) → (M)."""
    largest = x.max(axis=1)
    return np.log(np.exp(x - largest[:, None]).sum(axis=1)) + largest


def rotary(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """x (M, 2·D), cos and sin (M, D) → (M, 2·D): its halves rotated."""
    half = x.shape[1] // 2
    left, right = x[:, :half], x[:, half:]
    return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=1)
