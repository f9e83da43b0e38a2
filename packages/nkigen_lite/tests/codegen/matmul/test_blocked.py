"""Products of matrices: blocked, accumulated in PSUM, with what follows them done there."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.codegen.matmul import blocked
from nkigen_lite.compiler.compile import compile


def mm(a: Any, b: Any) -> Any:
    return np.matmul(a, b)


def gated(x: Any, wg: Any, wu: Any, wd: Any) -> Any:
    g = np.matmul(x, wg)
    return np.matmul(g / (1 + np.exp(-g)) * np.matmul(x, wu), wd)


@pytest.mark.parametrize("m", [1, 127, 129, 200])
@pytest.mark.parametrize("k", [1, 128, 257])
@pytest.mark.parametrize("n", [1, 129, 513])
def test_a_product_of_any_size(assert_lowers_right, normal, m, k, n):
    assert_lowers_right(mm, normal(m, k), normal(k, n, seed=1))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrow_matrices_go_to_tensor_e_as_they_are(assert_lowers_right, normal, dtype):
    a, b = normal(130, 200, dtype=dtype), normal(200, 520, seed=1, dtype=dtype)

    kernel = assert_lowers_right(mm, a, b)

    assert kernel.stats.hbm_bytes == 2 * (130 * 200 + 200 * 520) + kernel(a, b).nbytes


def test_batches_broadcast(assert_lowers_right, normal):
    assert_lowers_right(mm, normal(2, 3, 40, 50), normal(3, 50, 70, seed=1))
    assert_lowers_right(mm, normal(50, 20), normal(4, 20, 30, seed=1))


def test_transposed_arguments_are_read_as_they_lie(assert_lowers_right, normal):
    assert_lowers_right(lambda a, b: np.matmul(a.T, b), normal(130, 140), normal(130, 60, seed=1))
    assert_lowers_right(lambda a, b: np.matmul(a, b.T), normal(140, 130), normal(200, 130, seed=1))


def test_matrices_that_do_not_fit_come_in_blocks(assert_lowers_right, normal):
    kernel = assert_lowers_right(mm, normal(140, 1024), normal(1024, 8192, seed=1))

    assert kernel.stats.peak_sbuf_bytes_per_partition <= 212_984


def test_a_bias_and_a_function_are_applied_in_psum(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, w, b: np.tanh(x @ w + b), normal(200, 300), normal(300, 700, seed=1) / 16,
        normal(700, seed=2),  # 300 terms of size 1 before a function of slope 1
    )  # fmt: skip

    assert kernel.stats.hbm_bytes == 4 * (200 * 300 + 300 * 700 + 700 + 200 * 700)


def test_a_sum_over_rows_of_a_product_stays_on_chip(assert_lowers_right, normal):
    x, w = normal(200, 30) / 16, normal(30, 70, seed=1)

    kernel = assert_lowers_right(lambda x, w: (h := np.exp(x @ w), h.sum(-1)), x, w)

    assert kernel.stats.hbm_bytes == x.nbytes + w.nbytes + 4 * (200 * 70 + 200)


def test_a_product_that_is_also_a_result(assert_lowers_right, normal):
    assert_lowers_right(
        lambda a, b: (np.exp(a @ b), a @ b), normal(20, 30) / 16, normal(30, 40, seed=1)
    )


def test_two_products_of_different_left_matrices(assert_lowers_right, normal):
    assert_lowers_right(
        lambda a, b, c: (a @ b) * (c @ b), normal(130, 30), normal(30, 40, seed=1),
        normal(130, 30, seed=2),
    )  # fmt: skip


@pytest.mark.parametrize(("m", "d", "h"), [(130, 140, 300), (512, 128, 256), (2, 3, 5)])
def test_a_gated_mlp_keeps_its_hidden_values_on_chip(assert_lowers_right, normal, m, d, h):
    x, wg, wu, wd = (normal(*s, seed=i) for i, s in enumerate([(m, d), (d, h), (d, h), (h, d)]))

    kernel = assert_lowers_right(gated, x, wg / d**0.5, wu / d**0.5, wd / h**0.5)

    assert kernel.stats.hbm_bytes == 4 * (2 * m * d + 3 * d * h)


@pytest.mark.parametrize(
    ("function", "specs", "most", "mib", "microseconds"),
    [
        (mm, ["f32[2048, 2048]"] * 2, 1500, 49, None),
        (
            gated,
            ["f32[512, 1024]", "f32[1024, 4096]", "f32[1024, 4096]", "f32[4096, 1024]"],
            1025, 53, None,
        ),
        (mm, ["bf16[1, 2048]", "bf16[2048, 128256]"], 5000, 511, 1640),
    ],
    ids=["matmul", "gated MLP", "LM head"],
)  # fmt: skip
def test_the_table(function, specs, most, mib, microseconds):
    stats = compile(function, *specs).stats

    assert stats.instructions <= most
    assert stats.hbm_bytes <= mib * 2**20
    assert microseconds is None or stats.predicted_us <= microseconds


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_every_target_takes_the_kernel(assert_lowers_right, normal, target):
    x, w, b = normal(130, 140), normal(140, 300, seed=1) / 12, normal(300, seed=2)

    assert_lowers_right(lambda x, w, b: np.exp(np.tanh(x @ w + b) * 2 + 1), x, w, b, target=target)


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.4", "0.5"])
def test_every_version_has_source_of_its_own(version):
    kernel = compile(gated, "f32[64, 70]", "f32[70, 80]", "f32[70, 80]", "f32[80, 70]", nki=version)

    assert f"NKI {version}." in kernel.source


@pytest.mark.parametrize(("m", "n"), [(1, 3), (130, 513), (400, 1100)])
def test_a_contracted_axis_beyond_sbuf_comes_by_in_parts(
    assert_lowers_right, normal, m, n, monkeypatch
):
    monkeypatch.setattr(blocked, "LONG_TERMS", 256)
    monkeypatch.setattr(blocked.Products, "block", lambda products: None)
    a, b = normal(m, 600), normal(600, n, seed=1)

    assert_lowers_right(lambda a, b: np.tanh(a @ b / 64), a, b)


def test_a_very_long_contracted_axis_fits():
    stats = compile(mm, "f32[128, 65536]", "f32[65536, 512]").stats

    assert stats.hbm_bytes == 4 * (128 * 65536 + 65536 * 512 + 128 * 512)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, a, b: (x @ a) * (x @ b),
        lambda x, a, b: (x @ a) + (x @ a),
        lambda x, a, b: np.where(x @ a > x @ b, x @ b, x @ a),
        lambda x, a, b: (x @ a) * (x @ b) - np.max(x @ a, axis=-1, keepdims=True),
    ],
    ids=["both", "twice", "chosen", "rows"],
)
def test_an_instruction_reads_psum_once(assert_lowers_right, normal, function):
    assert_lowers_right(function, normal(300, 40), normal(40, 50, seed=1), normal(40, 50, seed=2))
