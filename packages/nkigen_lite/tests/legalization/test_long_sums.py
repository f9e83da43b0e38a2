"""Sums of more integers than float32 counts, through the emitted source."""

from __future__ import annotations

import numpy as np
import pytest


def test_more_than_2_to_the_24_truths_are_counted(exactly):
    x = np.ones((4100, 4099), np.int8)
    x[7, 11] = 0  # 16,805,899 of them are left: an odd number that float32 does not hold

    kernel = exactly(lambda x: (x > 0).sum(), x)

    assert kernel(x) == 16_805_899


@pytest.mark.parametrize("count", [65_536, 65_537, 131_071, 300_001])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_a_long_line_of_the_largest_numbers(exactly, dtype, count):
    exactly(lambda x: x.sum(), np.full(count, np.iinfo(dtype).max, dtype))


@pytest.mark.parametrize("axis", [0, (0, 2), None])
def test_long_sums_over_axes(exactly, axis):
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**31), 2**31, (66_000, 3, 2)).astype(np.int32)

    exactly(lambda x: x.sum(axis), x)


def test_the_truths_of_long_rows_are_counted_row_by_row(exactly, normal):
    exactly(lambda x: (x > 0).sum(-1, keepdims=True), normal(3, 70_001))
