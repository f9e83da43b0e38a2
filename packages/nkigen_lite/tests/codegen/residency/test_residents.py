"""Arrays between the parts of a kernel stay in SBUF: HBM is read and written once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkigen_lite.codegen import kernel as kernels
from nkigen_lite.codegen.emission import candidates
from nkigen_lite.codegen.residency import keep_on_chip
from nkigen_lite.compiler.compile import Compiled, compile


def moved(kernel: Compiled) -> float:
    """HBM bytes for each byte of arguments and results."""
    graph = kernel.graph
    results = [graph.specs[r] for r in graph.results]
    specs = [*(v.spec for v in graph.inputs), *results]
    return kernel.stats.hbm_bytes / sum(s.size * s.dtype.itemsize for s in specs)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def test_a_value_that_several_products_read(assert_lowers_right, normal):
    def experts(x: Any, a: Any, b: Any) -> Any:
        h = np.tanh(x)
        return np.maximum(h @ a, 0) * softmax(h @ b) + np.abs(h @ a)

    kernel = assert_lowers_right(
        experts, normal(128, 256), normal(256, 128), normal(256, 128, seed=1)
    )

    assert moved(kernel) == 1


def test_a_matrix_and_its_transpose(assert_lowers_right, normal):
    def both(a: Any, b: Any) -> Any:
        s = a @ b.T
        return softmax(s) + softmax(s.T).T

    kernel = assert_lowers_right(both, normal(256, 128), normal(256, 128, seed=1))

    assert moved(kernel) == 1


def test_the_diagonal_of_a_computed_matrix(assert_lowers_right, normal):
    def trace_of_product(a: Any, b: Any) -> Any:
        s = a @ b.T
        return np.diagonal(s) - np.diagonal(s.T) / 2 + np.max(s, -1)

    kernel = assert_lowers_right(trace_of_product, normal(256, 64), normal(256, 64, seed=1))

    assert moved(kernel) == 1


@pytest.mark.parametrize("shape", [(4, 64, 32, 32), (2, 64, 8, 8), (4, 32, 7, 5)])
def test_groups_of_channels_and_the_scale_of_each(assert_lowers_right, normal, shape):
    def groupnorm(x: Any, w: Any) -> Any:
        g = x.reshape(shape[0], 32, -1)
        g = g / np.sqrt(np.mean(g * g, -1, keepdims=True) + 1e-5)
        return g.reshape(shape) * w[:, None, None]

    kernel = assert_lowers_right(groupnorm, normal(*shape), normal(shape[1], seed=1))

    assert moved(kernel) < 1.05


def test_an_argument_that_is_read_twice_is_loaded_once(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, w: softmax(x @ w) @ w.T + x, normal(256, 128), normal(128, 128)
    )

    assert moved(kernel) == 1


def test_a_result_that_is_read_again(assert_lowers_right, normal):
    def both(x: Any, w: Any) -> Any:
        y = x @ w
        return y, softmax(y) @ w

    kernel = assert_lowers_right(both, normal(128, 256), normal(256, 256))

    assert moved(kernel) == 1


def test_masks_stay_on_chip_too(assert_lowers_right, normal):
    def chosen(x: Any, w: Any) -> Any:
        positive = x @ w > 0
        return np.where(positive, x, 0) @ w + np.where(positive, 1, x)

    kernel = assert_lowers_right(chosen, normal(128, 128), normal(128, 128))

    assert moved(kernel) == 1


@pytest.fixture(name="through_hbm")
def _through_hbm(monkeypatch):
    """The program of a function before arrays stay on chip; from then on no time is predicted."""

    def make(function: Any, *arrays: np.ndarray) -> candidates.TimedProgram:
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "keep_on_chip", lambda timed, _: (timed, []))
            program = compile(function, *arrays).program
        monkeypatch.delattr(candidates, "time_of")
        return candidates.TimedProgram(program)

    return make


def test_no_time_is_predicted_where_transfers_go_and_none_is_of_shorter_runs(through_hbm, normal):
    def scaled_twice(x: Any, w: Any) -> Any:
        y = softmax(x * 2)
        return (y.reshape(64, 2, 64) * w).reshape(x.shape)

    timed = through_hbm(scaled_twice, normal(128, 64), normal(64, 2, 64))
    new, kept = keep_on_chip(timed)

    assert len(kept) > 0
    assert new is not timed


def test_an_argument_of_few_bytes_is_loaded_where_it_is_read(through_hbm, normal):
    timed = through_hbm(lambda x, y, n: (x * n, y + n), normal(128, 64), normal(3, 5), normal(1))

    assert keep_on_chip(timed) == (timed, [])


def test_what_does_not_fit_goes_through_hbm(assert_lowers_right, normal):
    x, w = normal(128, 3000), normal(3000, 3000)

    kernel = assert_lowers_right(lambda x, w: softmax(softmax(x @ w) @ w) + x, x, w)

    assert 1 < moved(kernel) < 2


def test_explain_says_what_stays(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, w: softmax(x @ w) @ w.T + x, normal(128, 128), normal(128, 128)
    )

    assert "w stays in SBUF: 65,536 B of HBM less" in kernel.explain()


def test_several_results_of_one_element(assert_lowers_right):
    assert_lowers_right(lambda x: (np.abs(x), np.abs(x), np.abs(x)), np.array(-1.25, np.float32))


def test_rows_of_any_number_are_put_together_on_chip(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, y: np.concatenate([x, y]) * 2, normal(1021, 64), normal(1021, 64)
    )

    assert moved(kernel) == 1


def test_unrelated_arrays_of_one_loop_nest_beside_a_mask_of_rows(bitwise):
    a = np.arange(36, dtype=np.float32).reshape(2, 3, 3, 2)

    bitwise(lambda a, b: (np.tril(a, 1), b.T * b + 1), a, a.T.reshape(a.shape).copy())
    bitwise(lambda a, b: (np.tril(a, 1), (b + np.arange(2, dtype=b.dtype)) ** 2), a, a + 1)
