"""Tiles of arrays in another order: transposed on chip, copied into order, or read by element."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile

TRANSPOSED = "columns transposed into rows by TensorE: "
IN_ORDER = "arrays put in order in HBM: "


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


@pytest.mark.parametrize("columns", [1, 127, 129, 513, 1100])
@pytest.mark.parametrize("rows", [2, 128, 129, 300])
def test_a_transposed_argument_beside_another(assert_lowers_right, normal, rows, columns):
    assert_lowers_right(
        lambda x, y: x.T + y, normal(columns, rows), normal(rows, columns, seed=1), roundings=1
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_narrow_floats(assert_lowers_right, normal, dtype):
    x, y = normal(260, 140, dtype=dtype), normal(140, 260, seed=1, dtype=dtype)

    assert TRANSPOSED in assert_lowers_right(lambda x, y: x.T * y, x, y, roundings=2).explain()


@pytest.mark.parametrize("size", [2, 127, 129, 513])
def test_rows_and_results_in_columns(assert_lowers_right, normal, size):
    assert_lowers_right(softmax, normal(size, 260))
    assert_lowers_right(softmax, normal(130, size))


def test_batches_of_transposed_matrices(assert_lowers_right, normal):
    x, y = normal(5, 130, 70), normal(5, 70, 130, seed=1)

    assert (
        TRANSPOSED
        in assert_lowers_right(lambda x, y: x.transpose(0, 2, 1) - y, x, y, roundings=1).explain()
    )


def test_several_rows_in_each_partition(assert_lowers_right, normal):
    x, y = normal(40, 1500), normal(1500, 40, seed=1)

    assert TRANSPOSED in assert_lowers_right(lambda x, y: x.T + y, x, y, roundings=1).explain()


def test_what_no_transpose_of_rows_and_columns_is_is_put_in_order(assert_lowers_right, normal):
    x, y = normal(70, 130, 5), normal(5, 130, 70, seed=1)

    assert (
        IN_ORDER
        in assert_lowers_right(lambda x, y: x.transpose(2, 1, 0) + y, x, y, roundings=1).explain()
    )


def test_every_other_element(assert_lowers_right, normal):
    assert_lowers_right(lambda x: np.exp(x[::3]) * 2, normal(30000))
    assert_lowers_right(lambda x, y: x[:, ::2] + y, normal(300, 140), normal(70, seed=1))


def test_transposed_integers_are_exact(assert_lowers_right):
    x = np.arange(-20000, 19000, dtype=np.int32).reshape(300, 130) * 50001

    assert_lowers_right(lambda x: x.T + 3, x)


def test_transposition_is_not_slower_than_reading_rows():
    specs = ["f32[1024, 1024]"] * 2
    across = compile(lambda x, y: x.T + y, *specs).stats
    along = compile(lambda x, y: x + y, *specs).stats

    assert across.hbm_bytes == along.hbm_bytes
    assert across.predicted_us < 1.05 * along.predicted_us


def test_softmax_of_columns_moves_every_byte_once():
    """926.7 us element by element."""
    stats = compile(softmax, "f32[1024, 1024]").stats

    assert stats.hbm_bytes == 2 * 4 * 1024 * 1024
    assert stats.predicted_us < 60


@pytest.mark.parametrize("target", ["trn1", "trn3"])
def test_every_target_takes_the_kernel(assert_lowers_right, normal, target):
    assert_lowers_right(softmax, normal(140, 200), target=target)
