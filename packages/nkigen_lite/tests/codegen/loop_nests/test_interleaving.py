"""Even and odd elements made by one kernel part: loaded together, stored together."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile

TOGETHER = "neighbours loaded together"
ROTATED = ("f32[2, 4, 300, 64]", "f32[300, 32]", "f32[300, 32]")
# x is read and the result written once; cos and sin are read once for all 2 x 4 heads.
ROTATED_BYTES = 4 * (2 * 2 * 4 * 300 * 64 + 2 * 300 * 32)


def by_steps(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding of neighbours, written element by element."""
    even, odd = x[..., ::2], x[..., 1::2]
    rotated = np.empty_like(x)
    rotated[..., ::2] = even * cos - odd * sin
    rotated[..., 1::2] = even * sin + odd * cos
    return rotated


def by_pairs(x: Any, cos: Any, sin: Any) -> Any:
    """The same with pairs on an axis of their own."""
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    even, odd = pairs[..., 0], pairs[..., 1]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def by_halves(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding of the first half with the second."""
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


@pytest.mark.parametrize("rotary", [by_steps, by_pairs])
@pytest.mark.parametrize("heads, tokens, width", [(8, 300, 64), (3, 129, 10), (1, 513, 2)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_neighbours_are_rotated(assert_lowers_right, normal, rotary, heads, tokens, width, dtype):
    x = normal(heads, tokens, width, dtype=dtype)
    angles = [normal(tokens, width // 2, seed=n, dtype=dtype) for n in (1, 2)]

    assert_lowers_right(rotary, x, *angles)


@pytest.mark.parametrize("rotary", [by_steps, by_pairs])
def test_rotated_neighbours_are_read_and_written_once(rotary):
    """No slower than halves, which take as many operations; 195 us put in order in HBM."""
    kernel = compile(rotary, *ROTATED)

    assert kernel.stats.hbm_bytes == ROTATED_BYTES
    assert kernel.stats.instructions <= 3 + 6 + 1  # loads, operations, one store
    assert kernel.stats.predicted_us <= compile(by_halves, *ROTATED).stats.predicted_us
    assert TOGETHER in kernel.plan.notes[-1]


def test_three_results_that_alternate(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x: np.stack([x * 2, x + 1, np.maximum(x, 0)], -1), normal(130, 200), roundings=2
    )

    assert kernel.stats.dmas == 2
    assert kernel.stats.hbm_bytes == 4 * 4 * 130 * 200


def test_results_that_alternate_with_what_comes_from_elsewhere(assert_lowers_right, normal):
    assert_lowers_right(
        lambda x, y: np.stack([x * 2, y], -1), normal(130, 64), normal(130, 64, seed=1)
    )
    assert_lowers_right(lambda x: np.stack([x * 2, x.sum(1, keepdims=True) * np.ones_like(x)], -1),
           normal(130, 64))  # fmt: skip
    assert_lowers_right(lambda x: np.stack([x * 2, x * 2], -1), normal(130, 64), roundings=2)


def test_results_that_alternate_along_rows(assert_lowers_right, normal):
    def along(x: Any) -> Any:
        made = np.empty_like(x, shape=(2 * x.shape[0], x.shape[1]))
        made[1::2] = x + 1
        made[::2] = x * 2
        return made

    assert_lowers_right(along, normal(130, 65), roundings=2)


def test_columns_of_few_rows_lie_on_all_partitions(assert_lowers_right, normal):
    """134 us with a row on a partition each."""
    x, y = normal(8, 9600), normal(9600, seed=1)

    kernel = assert_lowers_right(lambda x, y: x[:, ::2] * y[::2] + x[:, 1::2] * y[1::2], x, y)

    assert "columns on all partitions" in kernel.plan.notes[-1]


def test_what_all_columns_share_is_made_once_a_row(assert_lowers_right, normal):
    function = lambda x, s: x[:, ::2] * np.exp(s) + x[:, 1::2]  # noqa: E731
    assert_lowers_right(function, normal(8, 9600), normal(8, 1, seed=1))


@pytest.mark.parametrize("reduction", [np.max, np.min, np.sum, np.mean])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("size", [2, 3])
def test_pooling_of_squares(assert_lowers_right, normal, reduction, dtype, size):
    def pooled(x: Any) -> Any:
        n, rows, columns = x.shape
        cells = x.reshape(n, rows // size, size, columns // size, size)
        return reduction(cells, axis=(2, 4))

    assert_lowers_right(pooled, normal(130, 12, 6 * size, dtype=dtype))


def test_pooling_keeps_what_is_not_a_number(normal):
    def pooled(x: Any) -> Any:
        return x.reshape(130, 6, 2, 6, 2).max((2, 4), keepdims=True)

    x = normal(130, 12, 12)
    x[3, 4, 5] = np.nan

    assert np.array_equal(compile(pooled, x)(x), pooled(x), equal_nan=True)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_pooling_reads_every_byte_once(dtype):
    """47 us by one axis after the other."""
    kernel = compile(lambda x: x.reshape(8, 64, 28, 2, 28, 2).max((3, 5)), f"{dtype}[8,64,56,56]")
    once = kernel.graph.inputs[0].spec.dtype.itemsize * 8 * 64 * 56 * 56 * 5 // 4

    assert kernel.stats.hbm_bytes == once
    assert kernel.stats.predicted_us < once / 368e3 + 8  # bytes per us of HBM; first and last tile
