"""bool through the emitted source: comparisons, logic, reductions, conditions per row."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

SHAPES = [(1,), (129,), (130, 40), (2, 129, 5), (513, 1)]


def truths(*shape: int, seed: int = 0) -> np.ndarray:
    """Half of them true, but for whole rows of either."""
    rng = np.random.default_rng([seed, *shape])
    found = rng.random(shape) < 0.5
    found[0] = True
    found[-1] = shape[0] == 1
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_logic(exactly, shape):
    def function(x, y):
        return ~x, np.logical_not(y), x & y, x | y, x ^ y, x == y, x < y, np.where(x, y, ~x)

    exactly(function, truths(*shape), truths(*shape, seed=1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_all_and_counts(exactly, shape):
    def function(x):
        return x.any(-1), x.all(-1, keepdims=True), x.sum(-1), x.max(-1), x.min(-1)

    exactly(function, truths(*shape))


def test_bool_of_numbers(exactly, normal):
    x = normal(130, 20)
    x[3, :4] = 0, -0.0, np.inf, np.nan
    exactly(lambda x: (x.astype(bool), (x > 0).any(-1), (x == x).all(-1), np.isnan(x)), x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint32", "int8", "bool"])
def test_conditions_and_choices_per_row_and_per_column(exactly, dtype):
    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    x = np.arange(300 * 20).reshape(300, 20).astype(kind)
    rows, columns = np.arange(300)[:, None].astype(kind), np.arange(20).astype(kind)
    holds, by_row, by_column = truths(300, 20), truths(300, 1), truths(20)

    def function(x, r, c, holds, by_row, by_column):
        return (
            np.where(by_row, x, r), np.where(by_column, r, c), np.where(holds, r, c),
            np.where(holds, c, 1), np.where(by_row, 0, x), np.where(holds & by_row, c, x),
        )  # fmt: skip

    exactly(function, x, rows, columns, holds, by_row, by_column)


def test_a_row_that_is_masked_by_its_own_extreme(exactly):
    x = np.random.default_rng(0).integers(-50, 50, (200, 30)).astype(np.float32)
    exactly(lambda x: np.where(x.max(-1, keepdims=True) > 45, x, x.min(-1, keepdims=True)), x)
