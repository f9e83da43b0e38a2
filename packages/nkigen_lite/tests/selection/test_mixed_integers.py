"""uint32 beside signed integers, and powers to exponents that are arrays: NumPy's numbers."""

from __future__ import annotations

import operator

import numpy as np
import pytest

COMPARISONS = {
    o.__name__: o
    for o in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
}
EDGES = np.array([0, 1, 5, 2**31 - 1, 2**31, 2**31 + 5, 2**32 - 5, 2**32 - 1], np.uint32)
UNSIGNED = np.ascontiguousarray(np.broadcast_to(EDGES, (8, 8)))
SIGNED = np.ascontiguousarray(UNSIGNED.T.view(np.int32))


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_uint32_compared_with_signed_integers(exactly, compare, dtype):
    exactly(lambda x, y: (compare(x, y), compare(y, x)), UNSIGNED, SIGNED.astype(dtype))


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
def test_uint32_compared_with_signed_numbers_of_the_program(exactly, compare):
    def function(x):
        numbers = (np.int64(-3), np.int64(5), np.int64(2**40), np.int32(-1))
        return *(compare(x, n) for n in numbers), *(compare(n, x) for n in numbers)

    exactly(function, UNSIGNED)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_powers_of_32_bit_integers(exactly, dtype):
    rng = np.random.default_rng(0)
    shape = (129, 5)
    base = rng.integers(0, 2**32, shape).astype(np.uint32) >> rng.choice([0, 8, 20, 29], shape)
    exponent = rng.integers(0, 2**32, shape) >> rng.integers(0, 33, shape)
    exponent[:3], exponent[3:6] = [0], [2**14]

    exactly(lambda x, y: x**y, base.astype(np.uint32).view(dtype), exponent.astype(np.uint32))


def test_a_number_to_the_power_of_an_array(exactly):
    exactly(lambda y: np.power(3, y), np.arange(40, dtype=np.uint32))


def test_an_array_to_the_power_of_a_large_number(exactly):
    exactly(lambda x: x**1001, np.arange(-20, 20, dtype=np.int32))
