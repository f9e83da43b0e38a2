"""Many rows of few numbers times a small matrix: sums of products on VectorE."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile

GREY = np.array([0.299, 0.587, 0.114], np.float32)


def product(x: Any, w: Any) -> Any:
    return x @ w


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("rows, terms, columns", [(1024, 2, 1), (3001, 3, 3), (2, 8, 8)])
def test_rows_of_few_numbers(assert_lowers_right, normal, rows, terms, columns, dtype):
    x, w = normal(rows, terms, dtype=dtype), normal(terms, columns, seed=1, dtype=dtype)

    assert_lowers_right(product, x, w)


@pytest.mark.parametrize("shape", [(2, 700, 3), (3, 20, 40, 3)])
def test_known_numbers_and_batches(assert_lowers_right, normal, shape):
    assert_lowers_right(lambda x: (x @ GREY, x @ np.diag(GREY)), normal(*shape))


def test_what_is_not_a_number_stays_in_its_row():
    x = np.ones((2048, 3), np.float32)
    x[7, 1], x[9, 2] = np.inf, np.nan
    w = np.ones((3, 2), np.float32)

    found = compile(product, x, w)(x, w)

    assert np.isposinf(found[7]).all()
    assert np.isnan(found[9]).all()
    assert (np.delete(found, [7, 9], 0) == 3).all()


def test_an_image_in_grey_is_read_once():
    """1,569 instructions, 785 DMAs and 153 us where TensorE receives three numbers a column."""
    kernel = compile(lambda x: x @ GREY, "f32[224, 224, 3]")

    assert kernel.stats.hbm_bytes == 4 * 224 * 224 * 4
    assert (kernel.stats.instructions, kernel.stats.dmas) == (5, 2)
    assert kernel.stats.predicted_us < 10


def test_other_colours_are_written_once():
    kernel = compile(product, "f32[224, 224, 3]", "f32[3, 3]")

    assert kernel.stats.hbm_bytes == 4 * (224 * 224 * 6 + 128 * 9)
    assert kernel.stats.dmas == 3
    assert kernel.stats.predicted_us < 20
