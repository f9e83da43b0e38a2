"""Inputs that are hard for an operation, then random ones: (generator, dtype) → arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Inputs = Callable[[np.random.Generator, Any], tuple[np.ndarray, ...]]

ROWS, COLUMNS = 128, 96


def _as_tiles(hard: Any, random: np.ndarray, dtype: Any) -> np.ndarray:
    """Hard numbers, their neighbours and then random ones, ROWS x COLUMNS of them."""
    near = np.asarray(hard, np.float32).ravel()
    hard = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
    every = np.concatenate([hard.astype(dtype), random.astype(np.float32).astype(dtype)])
    return every[: ROWS * COLUMNS].reshape(ROWS, COLUMNS)


def _spread(rng: np.random.Generator, dtype: Any, least: float, most: float) -> np.ndarray:
    """Both signs, evenly over the binades from 2^least to 2^most, as far as the dtype goes."""
    info = ml_dtypes.finfo(dtype)
    low = max(least, float(info.minexp) / 2 + 1)
    high = min(most, float(info.maxexp) / 2 - 1)
    size = np.exp2(rng.uniform(low, high, ROWS * COLUMNS))
    return size * rng.choice([-1.0, 1.0], ROWS * COLUMNS)


def anything(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """0, 1, -1 and 2^±60"""
    return (_as_tiles([0, 1, -1], _spread(rng, dtype, -60, 60), dtype),)


def pairs(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """two of 2^±60, half of them alike but for a few bits"""
    (x,) = anything(rng, dtype)
    (y,) = anything(rng, dtype)
    alike = (x.astype(np.float64) * (1 + rng.integers(-3, 4, x.shape) * 2.0**-9)).astype(dtype)
    return x, np.where(rng.integers(0, 2, x.shape) == 1, y, alike)


def divisors(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """two of 2^±40: the engine's reciprocal is documented for 2^±42"""
    x = _as_tiles([1, 3, 10], _spread(rng, dtype, -40, 40), dtype)
    return x, rng.permuted(np.where(x == 0, np.ones_like(x), x)).reshape(x.shape)


def reciprocals(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """1, 3, 10 and their neighbours, and 2^±40: the engine's reciprocal is documented for 2^±42"""
    return divisors(rng, dtype)[:1]


def quotients(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """multiples of y by up to ±2^23 (±127 in narrow formats), rounded; y 1, 3, 0.1, 10 and 2^±6"""
    y = _as_tiles([1, 3, 0.1, 10], _spread(rng, dtype, -6, 6), dtype)
    end = 23 if np.dtype(dtype) == np.float32 else 7
    times = np.rint(np.exp2(rng.uniform(0, end, y.shape))) * rng.choice([-1, 1], y.shape)
    return (y.astype(np.float64) * times).astype(np.float32).astype(dtype), y


def halves(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """halves up to ±32, their neighbours, and 2^-4 to 2^25"""
    hard = np.arange(-64, 64) / 2
    return (_as_tiles(hard, _spread(rng, dtype, -4, 25), dtype),)


def roots(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """1, 2, 4, their neighbours, and 2^±58"""
    return (np.abs(_as_tiles([1, 2, 4], _spread(rng, dtype, -58, 58), dtype)),)


def exponents(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """multiples of ln 2, their neighbours, and ±80 (±9 in float16)"""
    end = 9.0 if np.dtype(dtype) == np.float16 else 80.0
    hard = np.arange(-9, 10) * np.log(2)
    return (_as_tiles(hard, rng.uniform(-end, end, ROWS * COLUMNS), dtype),)


def logarithms(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """around 1, and 2^±60: the engine's logarithm is documented for 2^±64"""
    near = 1 + np.arange(-40, 40) * 2.0**-10
    return (np.abs(_as_tiles(near, _spread(rng, dtype, -60, 60), dtype)),)


def around_zero(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """0 and ±2^-30 to ±10"""
    x = _as_tiles([0, 0.5, 1, 2, 4], _spread(rng, dtype, -30, 3.3), dtype)
    return (x,)


def above_minus_one(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """0, -0.99 to 0 and 2^-30 to 10"""
    (x,) = around_zero(rng, dtype)
    return (np.where(x <= -0.99, np.abs(x), x),)


def angles(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """multiples of pi / 2, their neighbours, and up to ±10^6 (±60000 in float16)"""
    end = 6e4 if np.dtype(dtype) == np.float16 else 1e6
    counts = np.concatenate([np.arange(-40, 41), 2.0 ** np.arange(6, 19), [636618, 318309]])
    hard = counts[np.abs(counts) * (np.pi / 2) <= end] * (np.pi / 2)
    random = _spread(rng, np.float32, -20, 19.9)
    return (_as_tiles(hard, np.clip(random, -end, end), dtype),)


def powers(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """x of ±2^±3, y up to ±4, whole where x is negative"""
    x = _as_tiles([0.5, 1, 2, 10], _spread(rng, dtype, -3, 3), dtype)
    y = rng.uniform(-4, 4, x.shape)
    y = np.where(x < 0, np.rint(y), y).astype(np.float32).astype(dtype)
    return x, y


def cubes(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """0, 1, -1, 3, their neighbours, and 2^±4"""
    return (_as_tiles([0, 1, -1, 3], _spread(rng, dtype, -4, 4), dtype),)


def rows(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """rows of 1024: standard normal, of one sign, with an outlier of 100"""
    x = rng.standard_normal((ROWS, 1024))
    x[1::4] = np.abs(x[1::4])
    x[2::4, 0] *= 100
    return (x.astype(np.float32).astype(dtype),)


def short_rows(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """rows of 16 of ±0.7 to ±1.4"""
    x = rng.uniform(0.7, 1.4, (ROWS, 16)) * rng.choice([-1, 1], (ROWS, 16))
    return (x.astype(np.float32).astype(dtype),)


def matrices(rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, ...]:
    """64 x 512 and 512 x 64, standard normal"""
    a, b = rng.standard_normal((64, 512)), rng.standard_normal((512, 64))
    return a.astype(np.float32).astype(dtype), b.astype(np.float32).astype(dtype)
