"""Rows that do not fit: cut where the arrays are read, one pass for each reduction."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import compile


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, gain):
    away = x - x.mean(-1, keepdims=True)
    return away / np.sqrt((away * away).mean(-1, keepdims=True) + 1e-5) * gain


def cross_entropy(x, target):
    top = x.max(-1, keepdims=True)
    total = np.log(np.exp(x - top).sum(-1, keepdims=True)) + top
    is_target = np.arange(x.shape[-1]) == target[:, None]
    return -np.where(is_target, x - total, 0).sum(-1)


@pytest.mark.parametrize(
    "shape", [(3, 16384), (2, 2, 20000), (20480,), (130, 14336), (3, 14347), (2, 30011)]
)
def test_softmax_of_long_rows(assert_lowers_right, normal, shape):
    assert_lowers_right(softmax, normal(*shape))


def test_functions_of_long_rows_and_of_columns(assert_lowers_right, normal):
    assert_lowers_right(layer_norm, normal(5, 16384), normal(16384, seed=1))
    assert_lowers_right(layer_norm, normal(3, 20011), normal(20011, seed=1))


def test_narrow_sums_of_long_rows_are_rounded_once(assert_lowers_right, normal):
    x = normal(3, 16384, dtype=ml_dtypes.bfloat16)

    assert_lowers_right(lambda x: (np.abs(x).sum(-1), (x * 2).max(-1)), x, roundings=2)


def test_cross_entropy_over_a_large_vocabulary(assert_lowers_right, normal):
    target = np.array([0, 1999, 2000, 15999, 7], np.int32)

    assert_lowers_right(cross_entropy, normal(5, 16000), target)


def test_the_first_place_of_the_largest_in_long_rows(exactly, normal):
    x = np.round(normal(6, 16000))
    x[1, 3], x[2, 15999], x[2, 4000] = np.nan, np.nan, np.nan

    exactly(lambda x: (np.argmax(x, -1), np.argmin(x, -1)), x)


def test_several_arrays_of_long_rows(assert_lowers_right, normal):
    x, y, z = (normal(4, 16384, seed=s) for s in range(3))

    def function(x, y, z):
        mixed = x * y + z
        return mixed / np.abs(mixed).sum(-1, keepdims=True), mixed

    assert_lowers_right(function, x, y, z)


def test_a_softmax_reads_its_rows_three_times_and_writes_them_once():
    kernel = compile(softmax, "f32[8, 1000000]")

    passes = kernel.stats.hbm_bytes / (4 * 8_000_000)
    assert passes < 4.01
    assert kernel.stats.instructions < 500


@pytest.mark.parametrize("count", [1048576, 1048577])
def test_a_sum_of_squares_reads_its_array_once(count):
    kernel = compile(lambda x: (x * x).sum(), f"f32[{count}]")

    assert kernel.stats.hbm_bytes < 1.01 * 4 * count


def test_all_elements_of_a_matrix_are_compared_with_another_once(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, y: ((x - y) ** 2).mean(), normal(509, 127), normal(509, 127, seed=1)
    )

    assert kernel.stats.hbm_bytes < 1.01 * 2 * 4 * 509 * 127


@pytest.mark.parametrize("count", [100_003, 16_385])
def test_rows_of_an_odd_length_take_little_more_than_even_ones(count):
    odd, even = (compile(layer_norm, f"f32[7, {n}]", f"f32[{n}]") for n in (count, 100_096))

    assert odd.stats.predicted_us < 1.5 * even.stats.predicted_us


def test_a_sum_of_what_is_computed_reads_its_array_once():
    kernel = compile(lambda x: ((x - 1) ** 2).sum(), "f32[1048576]")

    assert kernel.stats.hbm_bytes < 1.01 * 4 * 1048576
