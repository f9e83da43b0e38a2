"""What the examples of the Neuron SDK compute, in NumPy at float64, and how far 0.6 may be off."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

SINGLE = 2.0**-24
"""Half an ulp of float32 at 1: one rounding of an intermediate."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What comes out, and the error that the formats allow, element by element."""

    values: np.ndarray
    error: np.ndarray


def half_ulp(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Half the distance between neighbours of `dtype` around each value: one rounding to it."""
    info = ml_dtypes.finfo(dtype)
    magnitude = np.maximum(np.abs(values), float(info.smallest_normal))
    return 2.0 ** (np.floor(np.log2(magnitude)) - info.nmant - 1)


def rounded_once(values: np.ndarray, dtype: np.dtype, steps: int, scale: np.ndarray) -> Expected:
    """`steps` roundings to float32 of numbers as large as `scale`, then one to `dtype`."""
    inner = steps * SINGLE * scale
    return Expected(values, inner + half_ulp(np.abs(values) + inner, dtype))


def exactly(values: np.ndarray) -> Expected:
    return Expected(values, np.zeros(values.shape))


def exponential(x: np.ndarray) -> Expected:
    """Four roundings of float32: its exponential is good to two ulps."""
    values = np.exp(x.astype(np.float64))
    return rounded_once(values, x.dtype, 4, values)


def add(a: np.ndarray, b: np.ndarray) -> Expected:
    values = a.astype(np.float64) + b.astype(np.float64)
    return rounded_once(values, a.dtype, 1, np.abs(values))


def even_columns(x: np.ndarray) -> Expected:
    return exactly(x[:, 0::2].astype(np.float64))


def odd_columns(x: np.ndarray) -> Expected:
    return exactly(x[:, 1::2].astype(np.float64))


def _windows(x: np.ndarray, pool: int) -> np.ndarray:
    """(C, H/pool, W/pool, pool²)"""
    c, h, w = x.shape
    parts = x.astype(np.float64).reshape(c, h // pool, pool, w // pool, pool)
    return parts.transpose(0, 1, 3, 2, 4).reshape(c, h // pool, w // pool, pool * pool)


def max_pool(x: np.ndarray, pool: int) -> Expected:
    return exactly(_windows(x, pool).max(axis=-1))


def mean_pool(x: np.ndarray, pool: int) -> Expected:
    """The sum is a tile of x's dtype, the mean another: two roundings to it."""
    windows = _windows(x, pool)
    values, scale = windows.mean(axis=-1), np.abs(windows).mean(axis=-1)
    once = rounded_once(values, x.dtype, pool * pool + 1, scale)
    return Expected(values, once.error + half_ulp(scale, x.dtype))


def transposed_rows(x: np.ndarray, shape: tuple[int, int]) -> Expected:
    rows, columns = shape
    transposed = x.reshape(len(x), rows, columns).transpose(0, 2, 1)
    return exactly(transposed.reshape(len(x), -1).astype(np.float64))


def matmul(lhs_transposed: np.ndarray, rhs: np.ndarray) -> Expected:
    """lhsTᵀ @ rhs, accumulated in float32: K products and sums."""
    a, b = lhs_transposed.T.astype(np.float64), rhs.astype(np.float64)
    return rounded_once(a @ b, rhs.dtype, 2 * a.shape[1], np.abs(a) @ np.abs(b))


def state_space(
    delta: np.ndarray, u: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> Expected:
    """Mamba's selective scan: Σ over states of C · scan(exp(delta · A), delta · B · u).

    A step of the scan rounds seven times what it adds to the state, and the decay by what its
    exponent is off; older errors decay with the state. The sum over states rounds what it sums.
    """
    delta, u, a, b, c = (x.astype(np.float64) for x in (delta, u, a, b, c))
    exponent = delta[:, :, None] * a[None, :, :, None]
    fed = delta[:, :, None] * b[:, None] * u[:, :, None]
    decay = np.exp(exponent)
    scale = _scan(decay, np.abs(fed))
    error = _scan(decay, (7 + np.abs(exponent)) * SINGLE * scale)
    error += (a.shape[-1] + 1) * SINGLE * scale
    values = np.einsum("bsl,bcsl->bcl", c, _scan(decay, fed))
    return Expected(values, np.einsum("bsl,bcsl->bcl", np.abs(c), error))


def _scan(decay: np.ndarray, fed: np.ndarray) -> np.ndarray:
    state, out = np.zeros(fed.shape[:-1]), np.empty(fed.shape)
    for step in range(fed.shape[-1]):
        state = decay[..., step] * state + fed[..., step]
        out[..., step] = state
    return out
