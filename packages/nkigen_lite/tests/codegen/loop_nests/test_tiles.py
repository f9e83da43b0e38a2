"""Element-wise operations and row reductions as tiles: right on every shape, small, few."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neuroncore.program import Loop, parse_program, print_program, walk
from nkigen_lite.compiler.compile import compile

EDGES = (1, 127, 128, 129, 513)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def rmsnorm(x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w


def chain(x: Any, y: Any) -> Any:
    return np.sqrt(np.abs((np.exp(np.tanh(x) * y) + x) * (y - x)) + 1.0) * y


def line(x: Any) -> Any:
    return x * 2.0 + 1.0


def layernorm(x: Any, w: Any, b: Any) -> Any:
    mean = np.mean(x, axis=-1, keepdims=True)
    away = x - mean
    variance = np.mean(away * away, axis=-1, keepdims=True)
    return away / np.sqrt(variance + 1e-5) * w + b


@pytest.mark.parametrize("size", [*EDGES, 128 * 2048, 127 * 129, 128 * 2048 * 2 + 77])
def test_a_line_of_any_length(assert_lowers_right, normal, size):
    assert_lowers_right(line, normal(size))


@pytest.mark.parametrize("columns", EDGES)
@pytest.mark.parametrize("rows", EDGES)
def test_softmax_of_any_rows_and_columns(assert_lowers_right, normal, rows, columns):
    assert_lowers_right(softmax, normal(rows, columns))


@pytest.mark.parametrize("columns", EDGES)
@pytest.mark.parametrize("rows", [1, 129, 513])
def test_rmsnorm_of_any_rows_and_columns(assert_lowers_right, normal, rows, columns):
    assert_lowers_right(rmsnorm, normal(rows, columns), normal(columns, seed=1))


@pytest.mark.parametrize("shape", [(3, 5), (2, 129, 7), (2, 3, 4, 130), (1, 1), (300, 2, 1)])
def test_layernorm_of_any_rank(assert_lowers_right, normal, shape):
    gain, bias = normal(shape[-1], seed=1), normal(shape[-1], seed=2)
    assert_lowers_right(layernorm, normal(*shape), gain, bias)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_narrow_floats_round_after_every_operation(assert_lowers_right, normal, dtype):
    assert_lowers_right(chain, normal(130, 40, dtype=dtype), normal(130, 40, seed=1, dtype=dtype))
    assert_lowers_right(softmax, normal(130, 40, dtype=dtype))


def test_numbers_on_either_side(assert_lowers_right, normal):
    x = normal(64, 9)
    assert_lowers_right(
        lambda x: (1 - x, 3 / (np.abs(x) + 1), x / 4, -x, 2 * np.maximum(0.5, x)), x
    )


def test_one_value_per_row_against_tiles(assert_lowers_right, normal):
    x, r = normal(300, 20), normal(300, 1, seed=1)
    assert_lowers_right(lambda x, r: (x - r, r - x, (x + r) * 2 - x, np.tanh(x * r + 0.5)), x, r)


def test_values_without_the_inner_axis_broadcast_over_batches(assert_lowers_right, normal):
    x, y = normal(3, 140, 6), normal(3, 1, 6, seed=1)
    assert_lowers_right(lambda x, y: x * y + 1, x, y)
    assert_lowers_right(lambda x, y: (x * y)[:, :, ::2], x, normal(140, 1, seed=2))


def test_views_of_arguments_are_only_other_accesses(assert_lowers_right, normal):
    kernel = assert_lowers_right(lambda x: np.exp(x.T[1:4, ::2]) * 2, normal(20, 6))

    assert kernel.stats.dmas == 2


def test_a_reduction_without_keepdims_comes_back_by_a_new_axis(assert_lowers_right, normal):
    kernel = assert_lowers_right(lambda x: x - x.max(-1)[:, None], normal(130, 33))

    assert len(kernel.plan.groups) == 1


def test_several_reductions_and_results(assert_lowers_right, normal):
    assert_lowers_right(
        lambda x: (x.sum(-1), x.max(-1, keepdims=True), x.min(-1), x * 2), normal(129, 40)
    )


def test_one_number_computed_beside_many(assert_lowers_right, normal):
    assert_lowers_right(lambda x, y: (x * 2, y * 3, x * (y + 1)), normal(127, 3), normal(1, seed=1))


def test_comparisons_give_booleans(assert_lowers_right, normal):
    assert_lowers_right(
        lambda x, y: (x < y, x >= 0.5, x == x), normal(130, 5), normal(130, 5, seed=1)
    )


def test_a_result_that_is_a_view_is_moved(assert_lowers_right, normal):
    assert_lowers_right(lambda x: (x.T, x[1:]), normal(20, 30))


def test_two_uses_of_a_view_in_another_order_go_through_hbm(assert_lowers_right, normal):
    kernel = assert_lowers_right(lambda x: np.exp(x) + np.exp(x).T, normal(40, 40))

    assert len(kernel.plan.groups) == 2
    assert "another order" in kernel.explain()


def test_code_does_not_grow_with_the_number_of_tiles():
    few, many = (compile(softmax, f"f32[{rows}, 512]") for rows in (2048, 65536))

    assert len(few.source.splitlines()) == len(many.source.splitlines())
    assert sum(isinstance(s, Loop) for s in walk(many.program.body)) == 1


def test_programs_print_and_parse_back():
    program = compile(rmsnorm, "f32[300, 700]", "f32[700]").program

    assert parse_program(print_program(program)) == program


def test_names_inside_the_function_do_not_change_the_kernel():
    first = compile(line, "f32[256]").source
    scope: dict[str, Any] = {}
    exec("def line(zz):\n    qq = zz * 2.0\n    return qq + 1.0\n", scope)

    without = [text.split("#")[0].rstrip() for text in first.splitlines()]
    again = re.sub(r"\bzz(?=\b|_)", "x", compile(scope["line"], "f32[256]").source)
    assert [text.split("#")[0].rstrip() for text in again.splitlines()] == without


@pytest.mark.parametrize(
    ("rows", "most", "mib"), [(softmax, 36, 8.1), (rmsnorm, 38, 8.1), (chain, 53, 12.1)]
)
def test_the_table_of_1024_squared(rows, most, mib):
    more = {softmax: [], rmsnorm: ["f32[1024]"], chain: ["f32[1024, 1024]"]}[rows]
    stats = compile(rows, "f32[1024, 1024]", *more).stats

    assert stats.instructions <= most
    assert stats.hbm_bytes <= mib * 2**20


def test_the_table_of_a_line():
    stats = compile(line, "f32[1048576]").stats

    assert stats.instructions <= 14
    assert stats.hbm_bytes <= 8.1 * 2**20


def test_two_tiles_take_turns_where_steps_go_to_and_fro(assert_lowers_right, normal):
    def chain(x: Any, y: Any) -> Any:
        return np.exp(np.tanh(x) * y) + x

    x, y = normal(700, 512), normal(700, 512, seed=1)

    kernel = assert_lowers_right(chain, x, y)

    assert "two tiles interleaved" in kernel.explain()
    assert "turns" not in compile(lambda x: x * 2 + 1, x).explain()
