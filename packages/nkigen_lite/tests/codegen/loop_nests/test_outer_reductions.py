"""Reductions that leave axes behind the reduced ones, and of axes that do not lie together."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.compiler.compile import compile
from nkigen_lite.legalization.reduction_splitting import rows_of, runs_of, split_reductions
from nkigen_lite.passes import canonicalize, check_pass, decompose

EDGES = (1, 127, 128, 129, 513)


@pytest.mark.parametrize("columns", EDGES)
@pytest.mark.parametrize("rows", [2, 127, 129, 300])
def test_sums_and_extremes_over_the_first_axis(assert_lowers_right, normal, rows, columns):
    assert_lowers_right(
        lambda x: (x.sum(0), x.max(0), x.min(0, keepdims=True)), normal(rows, columns),
    )  # fmt: skip


@pytest.mark.parametrize("columns", [3, 2048, 2049, 4100])
def test_rows_of_any_width(assert_lowers_right, normal, columns):
    assert_lowers_right(lambda x: x.sum(0), normal(520, columns))
    assert_lowers_right(lambda x: x.max(0), normal(520, columns), roundings=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("axis", [0, 1, (0, 1), (0, 2), (0, 1, 2)], ids=str)
def test_means_and_extremes_over_any_axes(assert_lowers_right, normal, dtype, axis):
    assert_lowers_right(lambda x: (x.mean(axis), x.max(axis)), normal(5, 130, 67, dtype=dtype))


def test_a_short_axis_over_a_long_line_is_a_loop(assert_lowers_right, normal):
    kernel = assert_lowers_right(lambda x: x.mean(0), normal(3, 128 * 100 + 7))

    assert "a loop over the reduced axis, added on VectorE: " in kernel.explain()
    assert len(kernel.plan.groups) == 1


def test_a_long_axis_lies_on_partitions(assert_lowers_right, normal):
    kernel = assert_lowers_right(lambda x: x.sum(0), normal(9000, 64))

    assert kernel.stats.hbm_bytes == 4 * (9000 * 64 + 64)
    assert "rows on partitions, each tile by ones on TensorE: " in kernel.explain()


def test_narrow_numbers_are_added_in_float32(assert_lowers_right):
    ones = np.ones((4096, 3), ml_dtypes.bfloat16)

    assert_lowers_right(lambda x: x.sum(0), ones, roundings=0)


def test_what_comes_before_is_fused(assert_lowers_right, normal):
    x, w = normal(4, 200, 60), normal(60, seed=1)

    kernel = assert_lowers_right(lambda x, w: (np.tanh(x) * w).sum((0, 1)), x, w)

    assert kernel.stats.hbm_bytes <= 4 * (4 * 200 * 60 + 128 * 60 + 60)


def test_statistics_of_a_batch(assert_lowers_right, normal):
    def normalised(x: Any) -> Any:
        away = x - x.mean(0)
        return away / np.sqrt((away * away).mean(0) + 1e-5)

    assert_lowers_right(normalised, normal(300, 70))
    assert_lowers_right(lambda x: (x.var(0), x.std((0, 2))), normal(30, 7, 5))


def test_softmax_over_the_first_axis(assert_lowers_right, normal):
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(0))
        return e / e.sum(0)

    assert_lowers_right(softmax, normal(129, 260))


def test_a_middle_axis(assert_lowers_right, normal):
    assert_lowers_right(lambda x: x.sum(1), normal(130, 5, 40))
    assert_lowers_right(lambda x: x.max(1), normal(3, 300, 40), roundings=0)
    assert_lowers_right(lambda x: x.sum((1, 3)), normal(3, 20, 4, 6))


@pytest.mark.parametrize("size", [8191, 8192, 13313, 128 * 2048 + 1, 2**20])
def test_all_of_a_long_line(assert_lowers_right, normal, size):
    x = normal(size)

    assert_lowers_right(lambda x: x.max(), x, roundings=0)
    assert_lowers_right(lambda x: np.abs(x).sum(), x)


def test_rows_that_do_not_fit_are_cut(assert_lowers_right, normal):
    assert_lowers_right(lambda x: x.min(-1), normal(200, 30011), roundings=0)


def test_elements_in_another_order_are_reduced_axis_by_axis(assert_lowers_right, normal):
    assert_lowers_right(lambda x: x[:, ::2].T.max(), normal(130, 30), roundings=0)
    assert_lowers_right(lambda x: x[:, ::2, 1:].sum((1, 2)), normal(130, 30, 5))


def test_products_and_integers(assert_lowers_right, normal):
    assert_lowers_right(lambda x: (x.prod(0), x.prod((0, 2))), 1 + normal(20, 9, 5) / 8)
    x = np.arange(-3000, 3000, dtype=np.int32).reshape(40, 3, 50) * 70001
    assert_lowers_right(lambda x: (x.max(0), x.min((0, 2)), x[:, ::2].max()), x)
    assert_lowers_right(lambda x: (x.any((0, 2)), x.all(0), x.any()), x % 3 > 0)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_every_target_takes_the_kernel(assert_lowers_right, normal, target):
    assert_lowers_right(lambda x: (x.sum(0), x.max(0)), normal(200, 140), target=target)


def test_the_fastest_candidate_is_reported_with_the_others():
    explained = compile(lambda x: x.sum(0), "bf16[1024, 1024]").explain()

    assert "each tile by ones on TensorE: " in explained
    assert "(not rows on partitions, added on VectorE: " in explained
    assert "reductions after the last tile: " in explained
    assert "(not reductions of rows: " in explained


def test_what_follows_a_reduction_of_columns_may_join_it():
    """So the columns are transposed into rows."""
    explained = compile(lambda x: np.exp(x - x.max(0)), "f32[512, 512]").explain()

    assert "reductions of rows: " in explained
    assert "columns transposed into rows by TensorE: " in explained


def test_reading_element_by_element_is_left_behind():
    """464 us when the first axis was read as the columns."""
    assert compile(lambda x: x.sum(0), "f32[1024, 1024]").stats.predicted_us < 30
    assert compile(lambda x: x.max(0), "f32[1024, 1024]").stats.predicted_us < 40


# -- the graph ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axes", "runs"),
    [((0, 2), [(0,), (2,)]), ((0, 1), [(0, 1)]), ((1, 4), [(1, 4)]), ((3,), []), ((), [])],
    ids=str,
)
def test_runs_are_what_nothing_kept_lies_between(axes, runs):
    shape = (4, 5, 6, 1, 7) if axes != (1, 4) else (4, 5, 1, 1, 7)
    assert runs_of(shape, axes) == runs


def test_rows_are_enough_for_all_partitions():
    assert rows_of(8192, 1) == 128
    assert rows_of(2**20, 1) == 512
    assert rows_of(8191, 1) == 128  # a prime: 63 left


@pytest.mark.parametrize("separate", [False, True])
def test_splitting_keeps_what_is_computed(normal, separate):
    def function(x: Any, y: Any) -> Any:
        return x.sum((0, 2)), x.max(), y.mean(0), y.astype(np.float16).sum()

    arrays = normal(6, 7, 8), normal(20000, seed=1).reshape(4, 5000)
    graph = decompose(canonicalize(trace(function, *arrays)))

    check_pass("split", graph, split_reductions(graph, separate), arrays)
