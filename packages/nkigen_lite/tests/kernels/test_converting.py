"""Narrow floats that become float32 on their way on chip, by DMA, with no array between."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

NARROW = (ml_dtypes.bfloat16, np.float16)
MIXED = {
    "right": lambda x, w: x @ w,
    "left": lambda x, w: w.T @ x.T,
    "norm before": lambda x, w: (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)) @ w,
    "two": lambda x, w: np.tanh(x @ w) @ w.T,
    "part": lambda x, w: x[:, :128] @ w[:128],
}


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("function", MIXED.values(), ids=MIXED)
def test_products_of_float32_and_narrow_matrices(assert_lowers_right, normal, function, dtype):
    assert_lowers_right(function, normal(130, 256), normal(256, 192, dtype=dtype), roundings=1)


def test_a_narrow_matrix_is_read_once_and_never_written_wider(assert_lowers_right, normal):
    x, w = normal(128, 256), normal(256, 512, dtype=ml_dtypes.bfloat16)

    kernel = assert_lowers_right(lambda x, w: x @ w, x, w, roundings=1)

    assert kernel.stats.hbm_bytes == x.nbytes + w.nbytes + 4 * 128 * 512
    assert "in_hbm" not in kernel.source


def layer_norm(x, gain, bias):
    away = x - x.mean(-1, keepdims=True)
    return away / np.sqrt((away * away).mean(-1, keepdims=True) + 1e-5) * gain + bias


def test_gain_and_bias_of_narrow_floats_stay_with_their_rows(assert_lowers_right, normal):
    x = normal(512, 768, dtype=ml_dtypes.bfloat16)
    gain, bias = (normal(768, seed=s, dtype=ml_dtypes.bfloat16) for s in (1, 2))

    kernel = assert_lowers_right(layer_norm, x, gain, bias, roundings=4)

    assert len(kernel.plan.groups) == 1
    least = x.nbytes + gain.nbytes + bias.nbytes + 4 * x.size
    assert kernel.stats.hbm_bytes <= 1.5 * least


def test_what_is_made_on_chip_is_converted_there(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, w: (x + x).astype(np.float32) @ w, normal(128, 128, dtype=np.float16),
        normal(128, 64), roundings=2,
    )  # fmt: skip

    assert kernel.plan.views == {}
