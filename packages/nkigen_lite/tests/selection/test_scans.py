"""Running sums, products and extremes of rows beside operations that take more axes together."""

from __future__ import annotations

import numpy as np
import pytest

BESIDE = {
    "a whole sum": lambda x: (np.cumsum(x, -1), np.sum(x)),
    "a whole mean": lambda x: np.cumsum(x - x.mean(), -1),
    "a largest of all": lambda x: np.cumsum(x / np.abs(x).max(), -1),
    "a norm": lambda x: np.cumsum(x, -1) / np.linalg.norm(x),
    "extremes": lambda x: np.maximum.accumulate(x, -1) - x.max(),
    "a product": lambda x: (np.cumprod(x, -1), x.min()),
    "sums of batches": lambda x: np.cumsum(x, -1) / np.abs(x).sum((-2, -1), keepdims=True),
    "rows and all": lambda x: (np.cumsum(x, -1), x.sum(-1), x.max()),
}


@pytest.mark.parametrize("shape", [(2, 4), (129, 33), (4, 511), (4, 3, 5), (16, 20, 8)], ids=str)
@pytest.mark.parametrize("function", BESIDE.values(), ids=BESIDE)
def test_rows_begin_anew(assert_lowers_right, normal, function, shape):
    assert_lowers_right(function, normal(*shape))


def test_truths_of_rows_begin_anew(exactly, normal):
    exactly(lambda x: (np.cumsum(x > 0, 1), (x > 0).all()), normal(8, 16))
