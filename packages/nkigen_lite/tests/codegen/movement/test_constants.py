"""Arrays in the program: made by the kernel from runs of numbers, counts and triangles."""

from __future__ import annotations

import numpy as np
import pytest

TYPES = ("float32", "float16", "int8", "uint8", "int16", "int32", "uint32")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 127, 128, 129, 513])
def test_counts_along_columns_and_rows(exactly, dtype, size):
    x = np.zeros((size, 5), dtype)
    with np.errstate(all="ignore"):
        count = np.arange(size).astype(dtype)
    exactly(lambda x: (x | 1) + count[:, None] if x.dtype.kind in "iu" else x + count[:, None], x)
    exactly(lambda x: np.maximum(x, count), x.T)


@pytest.mark.parametrize("size", [2049, 2048 * 2, 2048 * 130 + 7])
def test_long_counts(exactly, size):
    exactly(lambda x: x + np.arange(3, 3 + 2 * size, 2, dtype=np.int32), np.zeros(size, np.int32))


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, -2.25, np.inf, -0.0, 0.0, 7, 7, 7, 3], np.float32),
        np.array([1.5, -2.25, 0, 7, 7, 7, 3], np.float16),
        np.array([2**31, 2**32 - 1, 0, 5, 5, 1, 2, 3], np.uint32),
        np.array([True, False, False, True]),
        np.array([-128, 127, 126, 125, 0, 0], np.int8),
        np.repeat(np.arange(40), 3).astype(np.int32),
        np.arange(12, dtype=np.int32).reshape(3, 4)[:, None] * np.ones((3, 5, 4), np.int32),
        np.arange(5, dtype=np.float32)[:, None] * np.ones((5, 7), np.float32),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_small_arrays_of_any_content(exactly, array):
    x = np.ones((2, *array.shape), bool)
    exactly(lambda x: np.where(x, array, array[..., ::-1]), x)
    exactly(lambda x: np.where(x, array, array[..., ::-1]), ~x)


def test_runs_that_are_longer_than_a_row_on_chip(exactly):
    array = np.concatenate([np.arange(3000), np.full(1200, 7), np.arange(5000, 0, -3)])
    exactly(lambda x: x + array.astype(np.int32), np.zeros(array.size, np.int32))


def test_an_array_may_be_the_result(exactly):
    exactly(lambda x: (x, np.arange(6).reshape(2, 3) + 0 * x[:3]), np.ones(3, np.int32))


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 4, 200])
@pytest.mark.parametrize("shape", [(4, 4), (130, 40), (3, 20, 129), (1, 5)], ids=str)
def test_triangles(exactly, shape, k):
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, shape).astype(np.float32)
    exactly(lambda x: np.tril(x, k), x.astype(np.int8))
    x[..., 0] = np.inf
    exactly(lambda x: (np.tril(x, k), np.triu(x, k)), x)


@pytest.mark.parametrize("k", [-1, 0, 1])
def test_masks_of_attention(exactly, k):
    x = np.random.default_rng(0).integers(-9, 9, (150, 150)).astype(np.float32)
    mask = np.triu(np.full((150, 150), -np.inf, np.float32), k)
    exactly(lambda x: (x + mask).max(-1), x)
    exactly(lambda x: np.where(np.tri(150, 150, k, dtype=bool), x, -1e9), x)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int8", "uint16", "int32", "uint32", "bool"]
)
@pytest.mark.parametrize("shape", [(1, 1), (129, 3), (2, 5, 513), (300,)], ids=str)
def test_places_of_extremes(exactly, dtype, shape):
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 40, shape)
    x = (numbers * 60_000_000).astype(dtype) if "32" in dtype else numbers.astype(dtype)
    exactly(lambda x: (x.argmax(-1), x.argmin(-1)), x)


def test_the_first_nan_is_the_extreme(exactly):
    x = np.array([[1, np.nan, 5, np.nan], [np.inf, 2, np.inf, -np.inf], [3, 3, 3, 3]], np.float32)
    exactly(lambda x: (x.argmax(-1), x.argmin(-1, keepdims=True)), x)
