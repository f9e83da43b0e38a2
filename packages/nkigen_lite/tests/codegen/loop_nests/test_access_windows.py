"""Neighbours in HBM are loaded together and put apart on chip: taps, steps, elements backwards."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neuroncore.program import Access, Affine
from nkigen_lite.codegen.loop_nests.access_windows import window_of
from nkigen_lite.compiler.compile import compile

TOGETHER = "neighbours loaded together"
LINES = "lines of neighbours loaded together: "


def taps(x: Any, w: Any, step: int = 1) -> Any:
    """A depthwise convolution of (N, C, H, W) with C kernels of 3 x 3, by slices."""
    rows, columns = (n - 2 for n in x.shape[2:])
    return sum(
        x[:, :, i : i + rows : step, j : j + columns : step] * w[:, i, j][:, None, None]
        for i in range(3)
        for j in range(3)
    )


def chosen(kernel: Any) -> str:
    """The way that was taken to the last array."""
    ways = [n for n in kernel.plan.notes if " stays in SBUF: " not in n]
    return ways[-1].split(": ", 1)[1]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("channels", [3, 129])
def test_a_depthwise_convolution(assert_lowers_right, normal, channels, step):
    x, w = normal(2, channels, 22, 19), normal(channels, 3, 3, seed=1)

    kernel = assert_lowers_right(lambda x, w: taps(x, w, step), x, w)

    assert chosen(kernel).startswith((TOGETHER, LINES))


def test_a_depthwise_convolution_loads_each_box_once_with_its_border():
    """8,208 DMAs where every tap of every line is one."""
    kernel = compile(taps, "f32[8, 128, 56, 56]", "f32[128, 3, 3]")

    assert chosen(kernel).startswith(LINES)
    assert kernel.stats.dmas == 3 * 8 * 2  # images of two boxes: x, w, the result
    assert kernel.stats.instructions == (9 + 1 + 3) * 8 * 2  # 0 + the first
    once = 4 * 8 * 128 * (56 * 56 + 54 * 54)
    assert once < kernel.stats.hbm_bytes < 1.05 * once


def test_code_does_not_grow_with_the_number_of_boxes():
    few, many = (compile(taps, f"f32[{n}, 128, 56, 56]", "f32[128, 3, 3]") for n in (2, 16))

    assert few.source.count("\n") == many.source.count("\n")


def test_a_convolution_along_lines(assert_lowers_right, normal):
    def along(x: Any, w: Any) -> Any:
        return sum(x[:, k : k + 2046] * w[:, k : k + 1] for k in range(3))

    kernel = assert_lowers_right(along, normal(128, 2048), normal(128, 3, seed=1))

    assert kernel.stats.dmas == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_means_of_four_neighbours(assert_lowers_right, normal, dtype):
    def pooled(x: Any) -> Any:
        return x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2]

    kernel = assert_lowers_right(pooled, normal(130, 32, 32, dtype=dtype), roundings=8)

    assert chosen(kernel).startswith((TOGETHER, LINES))


def test_pooling_by_slices_reads_every_byte_once():
    def pooled(x: Any) -> Any:
        return x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2]

    kernel = compile(pooled, "f32[128, 64, 64]")

    assert kernel.stats.hbm_bytes == 4 * 128 * 64 * 64 * 5 // 4


@pytest.mark.parametrize("size", [2049, 40967, 128 * 300 + 1])
def test_differences_of_a_line(assert_lowers_right, normal, size):
    kernel = assert_lowers_right(lambda x: x[1:] - x[:-1], normal(size), roundings=2)

    assert chosen(kernel).startswith(TOGETHER)


@pytest.mark.parametrize("step", [-1, 2, -3])
def test_an_operation_on_other_steps_reads_them_from_a_tile_in_order(
    assert_lowers_right, normal, step
):
    kernel = assert_lowers_right(lambda x: x[:, ::step] * 2 + 1, normal(260, 700), roundings=2)

    assert chosen(kernel).startswith(TOGETHER)


def test_rows_reduced_backwards(assert_lowers_right, normal):
    assert_lowers_right(lambda x: np.exp(x[:, ::-1]) / np.sum(x[:, ::-1] ** 2, 1, keepdims=True),
           normal(260, 300))  # fmt: skip


def test_an_operation_on_columns_backwards_moves_every_byte_once():
    """474.5 us element by element."""
    kernel = compile(lambda x: x[:, ::-1] + 1, "f32[1024, 1024]")

    assert (kernel.stats.instructions, kernel.stats.dmas) == (12, 8)
    assert kernel.stats.hbm_bytes == 2 * 4 * 1024 * 1024


def test_neighbours_are_one_run_where_what_lies_between_is_less_than_the_overlap():
    def at(offset: int) -> Access:
        return Access("x", Affine(offset), (4, 3, 10), (100, 12, 1))

    window = window_of({"a": at(5), "b": at(18)})

    assert (window.box.shape, window.box.strides) == ((4, 2 * 12 + 10 + 13), (100, 1))
    assert window.box.offset.constant == 5
    assert window.places["b"] == (13, (3, 10), (12, 1))


def test_distant_lines_are_loaded_separately():
    line = Access("x", Affine(5), (4, 3, 10), (100, 30, -1))

    window = window_of({"a": line})

    assert (window.box.shape, window.box.strides) == ((4, 3, 10), (100, 30, 1))
    assert window.box.offset.constant == 5 - 9
    assert window.places["a"] == (9, (3, 10), (10, -1))
