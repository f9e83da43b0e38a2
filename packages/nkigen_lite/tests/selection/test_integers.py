"""Integers through the emitted source: NumPy's numbers, also where they wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
OPERATIONS = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "negative": lambda x, y: -x, "abs": lambda x, y: np.abs(x), "square": lambda x, y: x**2,
    "cube": lambda x, y: x**3, "sign": lambda x, y: np.sign(x),
    "right_shift": lambda x, y: x >> (y & 7), "left_shift": lambda x, y: x << (y & 7),
    "places": lambda x, y: (x >> 3, x << 5, 1 << (y & 7)),
    "bits": lambda x, y: ((x & y) | ~x, x ^ 5, (x ^ y) & 12, ~y),
    "extremes": lambda x, y: (np.maximum(x, y), np.minimum(x, y), np.clip(x, 3, 100)),
    "compare": lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y),
    "compare_with": lambda x, y: (x == 7, x < 100, x >= 127, x != 1),
    "floor_divide": lambda x, y: x // y, "mod": lambda x, y: x % y,
    "by_numbers": lambda x, y: (x // 7, x % 10, x // 16, x % 32, x // 1),
    "with_numbers": lambda x, y: (x + 1, 3 - x, x * 7, x * 100 + y, 5 + x),
    "where": lambda x, y: np.where(x > y, x, np.where(y == 0, 77, y)),
}  # fmt: skip
SHAPES = [(1,), (127,), (129, 3), (2, 130, 5), (513,)]


def adversarial(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Edges of the type and of what float32 holds, and numbers of every size."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng([seed, *shape])
    near = [0, 1, 2, 3, 255, 256, 65535, 65536, 2**24 - 1, 2**24, 2**24 + 1, info.max // 2]
    edges = [info.min, info.min + 1, info.max - 1, info.max, *near, *(-n for n in near)]
    known = np.array([e for e in edges if info.min <= e <= info.max], dtype)
    wide = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    sized = wide >> rng.integers(0, info.bits, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.4, rng.choice(known, shape), sized).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", OPERATIONS.values(), ids=OPERATIONS)
def test_integer_operations(exactly, function, dtype):
    shape = (130, 41)
    exactly(function, adversarial(dtype, shape), adversarial(dtype, shape, seed=1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_integers_of_every_shape(exactly, dtype, shape):
    def function(x: Any, y: Any) -> Any:
        return x * y - x // (y | 1), x << 2 > y, np.where(x < y, x, 3)

    exactly(function, adversarial(dtype, shape), adversarial(dtype, shape, seed=1))


@pytest.mark.parametrize("dtype", TYPES)
def test_integers_per_row_and_per_column(exactly, dtype):
    x, rows = adversarial(dtype, (300, 20)), adversarial(dtype, (300, 1), seed=1)
    columns = adversarial(dtype, (20,), seed=2)

    def function(x: Any, r: Any, c: Any) -> Any:
        return x + r, r - x, x * c, x & r, r << (x & 7), x < r, np.maximum(c, x), r // x

    exactly(function, x, rows, columns)


@pytest.mark.parametrize("dtype", TYPES)
def test_row_reductions_of_integers(exactly, dtype):
    x = adversarial(dtype, (130, 77))
    exactly(lambda x: (x.sum(-1), x.max(-1), x.min(-1, keepdims=True)), x)


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("dtype", [*TYPES, "bool"])
def test_casts_between_integers_wrap(exactly, dtype, target):
    x = adversarial("int32", (129, 33)) > 0 if dtype == "bool" else adversarial(dtype, (129, 33))
    exactly(lambda x: (x.astype(target), x.astype(bool), x.astype(np.float32)), x)


@pytest.mark.parametrize("number", [2**24 - 1, 2**24, 2**24 + 1, 2**31 - 1, -(2**24) - 1, -(2**31)])
def test_numbers_that_float32_does_not_distinguish(exactly, number):
    x = (number + np.arange(-3, 4)).clip(-(2**31), 2**31 - 1).astype(np.int32)[None].repeat(3, 0)
    exactly(lambda x: (x == number, x < number, number < x, x >= number, np.maximum(x, number)), x)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_quotients_next_to_a_multiple(exactly, dtype):
    info = np.iinfo(dtype)
    b = np.array([1, 2, 3, 7, 10, 65535, 65536, 2**24 + 1, info.max // 2, info.max], np.int64)
    times = np.array([0, 1, 2, 3, 255, 65535, 2**20 + 1], np.int64)[:, None, None]
    near = np.array([-1, 0, 1], np.int64)[:, None]
    a = np.minimum(times, info.max // b) * b + near
    a, b = np.broadcast_arrays(a.clip(info.min, info.max), b)
    signed = (1, -1) if info.min < 0 else (1,)
    for one in signed:
        for other in signed:
            exactly(
                lambda x, y: (x // y, x % y),
                *(np.ascontiguousarray(v, np.int64).astype(dtype) for v in (a * one, b * other)),
            )
