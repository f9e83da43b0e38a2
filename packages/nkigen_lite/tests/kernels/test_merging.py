"""Products of matrices that are one product, and one that is several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.compiler.compile import compile
from nkigen_lite.passes import canonicalize


def convolved(x: Any, w: Any, bias: Any = 0) -> Any:
    """(N, C, H, W) with (O, C, 3, 3), tap by tap."""
    rows, columns = (n - 2 for n in x.shape[2:])
    made = bias
    for i in range(3):
        for j in range(3):
            taps = x[:, :, i : i + rows, j : j + columns]
            made = made + np.einsum("nchw,oc->nohw", taps, w[:, :, i, j])
    return made


def experts(x: Any, w: Any) -> Any:
    return np.einsum("td,edf->etf", x, w)


def products(function: Any, *specs: Any) -> int:
    return sum(n.op == "matmul" for n in canonicalize(trace(function, *specs)).nodes)


@pytest.mark.parametrize("channels, filters", [(3, 5), (32, 64)])
def test_taps_of_a_convolution_are_one_product(assert_lowers_right, normal, channels, filters):
    x, w = normal(2, channels, 12, 9), normal(filters, channels, 3, 3, seed=1)

    assert_lowers_right(convolved, x, w)
    assert_lowers_right(convolved, x, w, normal(filters, 1, 1, seed=2))

    assert products(convolved, x, w) == 1


def test_a_convolution_tap_by_tap_takes_little_more_than_one_of_columns():
    """339 us and 857 lines as nine products; 40 us with hand-written columns."""
    kernel = compile(convolved, "f32[2, 32, 32, 32]", "f32[64, 32, 3, 3]")

    assert kernel.stats.predicted_us < 60
    assert kernel.source.count("\n") < 500


def test_products_of_arrays_in_place_stay_separate(assert_lowers_right, normal):
    """Their weights would be copied."""
    given = normal(130, 20), normal(20, 30), normal(130, 10, seed=1), normal(10, 30, seed=1)

    def cell(x: Any, w: Any, h: Any, u: Any) -> Any:
        return x @ w + h @ u

    assert_lowers_right(cell, *given)
    assert products(cell, *given) == 2


@pytest.mark.parametrize("tokens, terms, columns", [(128, 256, 512), (5, 130, 7)])
def test_experts_are_products_of_their_own(assert_lowers_right, normal, tokens, terms, columns):
    kernel = assert_lowers_right(experts, normal(tokens, terms), normal(3, terms, columns))

    assert kernel.stats.hbm_bytes <= 4 * 3 * (tokens * terms + terms * columns + tokens * columns)


def test_other_orders_of_experts(assert_lowers_right, normal):
    x, w = normal(20, 12), normal(3, 12, 10)

    assert_lowers_right(lambda x, w: np.einsum("td,edf->tef", x, w), x, w)
    assert_lowers_right(lambda x, w: np.einsum("td,edf->fte", x, w), x, w)
    assert_lowers_right(lambda x, w: np.einsum("td,def->etf", x, w.transpose(1, 0, 2).copy()), x, w)
