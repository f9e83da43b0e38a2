"""Rows of all leading axes at once, wherever a matrix is the same for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile
from nkigen_lite.legalization.rules import in_machine_terms
from nkigen_lite.passes import canonicalize, decompose


def rmsnorm(x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w


def block(x: Any, g: Any, w: Any, u: Any, b: Any) -> Any:
    h = rmsnorm(x, g) @ w
    return x + np.tanh(h) @ u + b


def products(function: Any, *arrays: Any) -> list[tuple[int, ...]]:
    """The shapes of the products that the machine is given."""
    graph = in_machine_terms(decompose(canonicalize(compile(function, *arrays).graph)))
    return [n.spec.shape for n in graph.nodes if n.op == "matmul"]


@pytest.mark.parametrize("lead", [(2, 100), (3, 1), (1, 130), (2, 3, 20)])
def test_a_block_reads_its_weights_once(assert_lowers_right, normal, lead):
    x, g, b = normal(*lead, 96), normal(96, seed=1), normal(1, 96, seed=2)
    w, u = normal(96, 40, seed=3) / 9, normal(40, 96, seed=4) / 6

    kernel = assert_lowers_right(block, x, g, w, u, b)

    copies = 128 if x.size > 96 else 1
    once = 2 * x.nbytes + w.nbytes + u.nbytes
    assert kernel.stats.hbm_bytes == once + copies * (g.nbytes + b.nbytes)
    assert products(block, x, g, w, u, b) == [(x.size // 96, 40), (x.size // 96, 96)]


def test_a_bias_of_each_batch_keeps_the_axes(assert_lowers_right, normal):
    def scaled(x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    x, w, b = normal(2, 30, 16), normal(16, 24, seed=1), normal(2, 1, 24, seed=2)

    assert_lowers_right(scaled, x, w, b)

    assert products(scaled, x, w, b) == [(2, 30, 24)]


def test_transposed_rows_keep_their_axes(assert_lowers_right, normal):
    def heads(x: Any, w: Any) -> Any:
        return np.transpose(x, (1, 0, 2)) @ w

    x, w = normal(4, 30, 16), normal(16, 24, seed=1)

    assert_lowers_right(heads, x, w)

    assert products(heads, x, w) == [(30, 4, 24)]


def test_every_value_may_also_be_a_result(assert_lowers_right, normal):
    x, w = normal(2, 50, 24), normal(24, 24, seed=1)

    def every(x: Any, w: Any) -> Any:
        y = np.exp(-np.abs(x))
        h = y @ w
        return y, h, np.max(h, axis=-1), h.reshape(2, 50, 4, 6)

    assert_lowers_right(every, x, w)


def test_sums_of_other_axes_see_the_axes(assert_lowers_right, normal):
    x, w = normal(3, 20, 24), normal(24, 10, seed=1)

    assert_lowers_right(lambda x, w: np.max(x @ w, axis=(-2, -1)), x, w)
