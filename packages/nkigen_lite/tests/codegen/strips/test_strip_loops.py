"""Strips: products, row reductions and functions of the same rows, on chip from end to end."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkigen_lite.compiler.compile import compile


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    s = np.matmul(q, np.swapaxes(k, -1, -2)) * (1.0 / math.sqrt(q.shape[-1]))
    return np.matmul(softmax(s), v)


def rmsnorm(x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w


def layernorm(x: Any) -> Any:
    x = x - np.mean(x, axis=-1, keepdims=True)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def once(*arrays: Any) -> int:
    """The bytes of every array, once."""
    return sum(a.nbytes for a in arrays)


# ---------------------------------------------------------------------- attention


def test_attention_of_the_table():
    stats = compile(attention, *["f32[1, 8, 512, 64]"] * 3).stats

    assert stats.instructions <= 430
    assert stats.hbm_bytes == 4 * 2**20


def test_tiles_take_turns_so_that_tensor_e_is_busy():
    kernel = compile(attention, *["f32[1, 8, 512, 64]"] * 3)

    assert "strip of 4 x 128 rows, two interleaved" in kernel.explain()
    assert kernel.stats.predicted_us < 1.5 * kernel.stats.bound_us


@pytest.mark.parametrize("heads", [1, 2, 3, 5])
def test_an_odd_number_of_heads(assert_lowers_right, normal, heads):
    q, k, v = (normal(2, heads, 140, 16, seed=s) for s in range(3))

    assert_lowers_right(attention, q, k, v)


@pytest.mark.parametrize("queries", [1, 127, 129, 300])
@pytest.mark.parametrize(("keys", "depth"), [(2, 8), (128, 64), (129, 130), (513, 32), (1100, 16)])
def test_attention_of_any_size(assert_lowers_right, normal, queries, keys, depth):
    q, k, v = normal(2, queries, depth), normal(2, keys, depth, seed=1), normal(2, keys, 40, seed=2)

    kernel = assert_lowers_right(attention, q, k, v)

    assert kernel.stats.hbm_bytes == once(q, k, v) + 2 * queries * 40 * 4


def test_attention_without_batches_and_with_a_mask(assert_lowers_right, normal):
    q, k, v = (normal(200, 48, seed=s) for s in range(3))
    mask = np.where(np.tri(200, dtype=bool), 0, -1e9).astype(np.float32)

    def masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return softmax(q @ k.T / 7 + mask) @ v

    kernel = assert_lowers_right(masked, q, k, v, mask)

    assert kernel.stats.hbm_bytes == once(q, k, v, mask) + q.nbytes


def test_heads_that_share_keys(assert_lowers_right, normal):
    q, k, v = normal(2, 3, 130, 16), normal(2, 1, 140, 16, seed=1), normal(2, 1, 140, 16, seed=2)

    assert_lowers_right(attention, q, k, v)


def test_attention_in_bfloat16(assert_lowers_right, normal):
    q, k, v = (normal(2, 130, 64, seed=s, dtype=ml_dtypes.bfloat16) for s in range(3))

    assert_lowers_right(attention, q, k, v, roundings=8)


def test_long_attention_fits():
    stats = compile(attention, *["f32[16, 2048, 128]"] * 3).stats

    assert stats.hbm_bytes == 4 * 16 * 2048 * 128 * 4


def test_what_is_converted_for_a_strip_comes_before_it():
    kernel = compile(attention, *["bf16[1, 8, 512, 64]"] * 3)

    assert kernel.explain().count("strip of") == 1
    assert kernel.stats.hbm_bytes < 5 * 2**20


@pytest.mark.parametrize("depth", [32, 64])
def test_two_heads_are_transposed_side_by_side(assert_lowers_right, normal, depth):
    q, k, v = (normal(4, 256, depth, seed=s) for s in range(3))

    kernel = assert_lowers_right(attention, q, k, v)

    assert f"(128, 2, {2 * depth})" in kernel.source


def test_nothing_is_said_of_what_the_strip_puts_together():
    explained = compile(attention, *["f32[1, 8, 512, 64]"] * 3).explain()

    assert "not fused" not in explained or "stand alone" not in explained


def test_a_large_logit_does_not_overflow(assert_lowers_right, normal):
    q, k, v = normal(130, 16) * 40, normal(140, 16, seed=1) * 40, normal(140, 16, seed=2)

    assert_lowers_right(attention, q, k, v)  # logits of 10⁴ have absolute errors of 10⁻³


# ------------------------------------------------------------------- other strips


@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 2, 3), (127, 128, 129), (300, 257, 513), (513, 129, 700)]
)
def test_a_norm_before_a_product(assert_lowers_right, normal, m, k, n):
    x, g, w = normal(m, k), normal(k, seed=1), normal(k, n, seed=2)

    kernel = assert_lowers_right(lambda x, g, w: rmsnorm(x, g) @ w, x, g, w)

    replicas = 128 if m > 1 and 128 * k * 4 <= 2**16 else 1
    assert kernel.stats.hbm_bytes == once(x, w) + replicas * g.nbytes + m * n * 4


def test_one_norm_and_three_products(assert_lowers_right, normal):
    x, *ws = normal(200, 96), *(normal(96, 96, seed=s) for s in (1, 2, 3))

    def qkv(x: Any, a: Any, b: Any, c: Any) -> Any:
        n = layernorm(x)
        return n @ a, n @ b, n @ c

    kernel = assert_lowers_right(qkv, x, *ws)

    assert kernel.stats.hbm_bytes == once(x, *ws) + 3 * 200 * 96 * 4


def test_products_of_products(assert_lowers_right, normal):
    a, b, c = normal(300, 40), normal(40, 50, seed=1), normal(50, 600, seed=2)

    kernel = assert_lowers_right(lambda a, b, c: (a @ b) @ c, a, b, c)

    assert kernel.stats.hbm_bytes == once(a, b, c) + 300 * 600 * 4


def test_a_batched_product_with_bias_and_function(assert_lowers_right, normal):
    x, w, b = normal(3, 130, 60), normal(3, 60, 70, seed=1), normal(70, seed=2)

    kernel = assert_lowers_right(lambda x, w, b: np.tanh(x @ w + b), x, w, b)

    assert kernel.stats.hbm_bytes == once(x, w) + 128 * b.nbytes + 3 * 130 * 70 * 4


def test_what_stays_on_chip_may_also_be_a_result(assert_lowers_right, normal):
    q, k, v = (normal(140, 32, seed=s) for s in range(3))

    def both(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.T
        p = softmax(s)
        return s, p, p @ v, np.sum(p * p, axis=-1)

    assert_lowers_right(both, q, k, v)


def test_a_result_is_also_multiplied_for_two_heads(assert_lowers_right, normal):
    x, w = normal(2, 100, 32), normal(2, 32, 40, seed=1)

    assert_lowers_right(lambda x, w: (t := np.tanh(x), t @ w), x, w)


def test_a_product_wider_than_psum(assert_lowers_right, normal):
    x, w = normal(140, 20), normal(20, 5000, seed=1)

    kernel = assert_lowers_right(lambda x, w: softmax(x @ w), x, w)

    assert kernel.stats.hbm_bytes == once(x, w) + 140 * 5000 * 4


def test_what_does_not_fit_goes_through_hbm(assert_lowers_right, normal):
    x, w, u = normal(3, 2000), normal(2000, 2500, seed=1), normal(2500, 2000, seed=2)

    kernel = assert_lowers_right(
        lambda x, w, u: softmax(x @ w / 50) @ u, x, w / 50, u
    )  # fmt: skip

    assert kernel.stats.hbm_bytes > once(x, w, u) + x.nbytes


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_every_target_takes_strips(assert_lowers_right, normal, target):
    q, k, v = (normal(2, 130, 32, seed=s) for s in range(3))

    assert_lowers_right(attention, q, k, v, target=target)


STAGES = {
    "softmax": lambda x, w, g: softmax(x),
    "layernorm": lambda x, w, g: layernorm(x),
    "matmul": lambda x, w, g: (x @ w) / 8,
    "residual": lambda x, w, g: x + np.tanh(x @ w / 8),
    "bias": lambda x, w, g: np.tanh(x + g),
    "row": lambda x, w, g: x - np.max(x, axis=-1, keepdims=True),
}


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    names=st.lists(st.sampled_from(sorted(STAGES)), min_size=2, max_size=6),
    rows=st.sampled_from([1, 3, 127, 129, 257]), batch=st.sampled_from([(), (2,), (1, 3)]),
    width=st.sampled_from([2, 33, 128, 130]),
)  # fmt: skip
def test_any_stages_on_the_same_rows(names, rows, batch, width):
    rng = np.random.default_rng([rows, width, len(names)])
    x, w = rng.standard_normal((*batch, rows, width)), rng.standard_normal((width, width))
    arrays = [a.astype(np.float32) for a in (x, w, rng.standard_normal(width))]

    def stages(x: Any, w: Any, g: Any) -> Any:
        for name in names:
            x = STAGES[name](x, w, g)
        return x

    ours = compile(stages, *arrays)(*arrays)

    exact = stages(*(a.astype(np.float64) for a in arrays))
    assert np.abs(ours - exact).max() <= 2.0**-17 * max(1.0, np.abs(exact).max())


def test_a_number_of_each_row_that_is_read_by_columns_ends_a_strip(assert_lowers_right, normal):
    def correlations(x: Any, y: Any) -> Any:
        covariance = x @ y
        spread = np.sqrt(np.abs(np.diag(covariance)))
        return covariance / np.outer(spread, spread)

    assert_lowers_right(correlations, normal(256, 600), normal(600, 256))
