"""Arrays put together and written in part: one array in HBM, its parts written in place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile

EDGES = (1, 127, 128, 129, 513)
DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int8, np.uint16, np.bool_]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("size", EDGES)
def test_arguments_are_concatenated_along_any_axis(moves, normal, axis, size):
    shape = [3, 5, 7]
    shape[axis] = size

    kernel = moves(lambda x, y: np.concatenate([x, y, x], axis), normal(3, 5, 7), normal(*shape))

    assert kernel.stats.dmas == 3


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_every_dtype_is_moved_bit_for_bit(moves, normal, dtype):
    x, y = (normal(9, 6) * 4).astype(dtype), (normal(9, 6, seed=1) * 4).astype(dtype)

    moves(lambda x, y: (np.stack([x, y], axis=1), np.concatenate([x.T, y.T])), x, y)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arrays_are_stacked_along_any_axis(moves, normal, axis):
    moves(lambda x, y: np.stack([x, y], axis), normal(129, 5), normal(129, 5, seed=1))


def test_parts_of_an_array_are_views(moves, normal):
    kernel = moves(lambda x: tuple(np.split(x, 3, axis=1)), normal(20, 12))

    assert kernel.stats.dmas == 3


def test_what_is_made_for_a_joined_array_alone_is_made_in_its_place(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, y: np.concatenate([np.exp(x), y * 2]), normal(130, 40), normal(20, 40, seed=1)
    )

    assert kernel.stats.dmas == 4
    assert kernel.stats.hbm_bytes == 2 * 4 * (130 + 20) * 40
    assert "is written into its place" in kernel.explain()


def test_a_rotation_of_halves_is_one_group_without_a_copy(assert_lowers_right, normal):
    def rope(x: Any, cos: Any, sin: Any) -> Any:
        a, b = x[..., :32], x[..., 32:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    kernel = assert_lowers_right(
        rope, normal(4, 129, 64), normal(129, 32, seed=1), normal(129, 32, seed=2)
    )

    array, angles = 4 * 129 * 64, 129 * 32
    assert kernel.stats.hbm_bytes == 4 * (2 * array + 2 * angles)  # angles: once for 4 heads


def test_a_product_is_made_in_its_place(assert_lowers_right, normal):
    x, w = normal(130, 64), normal(64, 70, seed=1)

    kernel = assert_lowers_right(lambda x, w: np.concatenate([x @ w, x], axis=1), x, w)

    assert kernel.stats.hbm_bytes == 4 * (130 * 64 + 64 * 70 + 130 * 70 + 2 * 130 * 64)


def test_what_is_needed_elsewhere_is_copied(assert_lowers_right, normal):
    assert_lowers_right(lambda x: (h := np.exp(x), np.concatenate([h, x, h])), normal(130, 7))
    assert_lowers_right(lambda x: np.concatenate([h := np.exp(x), h[:4] + 1]), normal(130, 7))
    assert_lowers_right(lambda x: np.concatenate([np.exp(x)] * 2, axis=1) * 2, normal(130, 7))


def test_joined_arrays_are_joined_again(assert_lowers_right, normal):
    kernel = assert_lowers_right(
        lambda x, y: np.concatenate([np.concatenate([x * 2, y + 1], 1), np.exp(y), x], 1),
        normal(40, 10), normal(40, 9, seed=1),
    )  # fmt: skip

    assert "in_hbm" not in kernel.source


def test_numbers_fill_what_nothing_else_does(moves, normal):
    moves(lambda x: np.concatenate([x, np.zeros((7, 513), np.float32)]), normal(130, 513))
    moves(lambda x: np.concatenate([np.full((5, 3), 7, np.int32), x], 1), np.ones((5, 9), np.int32))
    moves(lambda x: (x, np.full(5003, 2.5, np.float32)), normal(3))


def test_a_reshape_that_no_strides_say_is_an_array(moves, normal):
    moves(lambda x: x.T.reshape(-1), normal(129, 5))
    moves(lambda x: x.transpose(2, 0, 1).reshape(6, 35)[1:, ::2], normal(5, 7, 6))
    moves(lambda x: x[::2].reshape(2, 9, 2).reshape(18, 2).T, normal(6, 6, 2))


# -- writes ------------------------------------------------------------------------------------


def test_a_written_part_of_a_copy(moves, normal):
    def patched(x: Any, y: Any) -> Any:
        z = x.copy()
        z[1:4, ::2] = y
        z[5] = 3
        return z

    moves(patched, normal(129, 9), normal(3, 5, seed=1))


def test_a_written_argument_is_as_numpy_leaves_it(moves, normal):
    def negate(x: Any) -> Any:
        x[...] = -x
        return x

    kernel = moves(negate, normal(130, 5))

    assert kernel.program.results == ("out",)


def test_what_was_read_before_a_write_keeps_its_values(moves, normal):
    def shifted(x: Any, y: Any) -> Any:
        old = x[:3]
        before = old * 1
        x[1:] = x[:-1]
        x[0] = y
        return before, old

    moves(shifted, normal(129, 6), normal(6, seed=1))


def test_an_argument_is_written_with_another(moves, normal):
    def swap(x: Any, y: Any) -> Any:
        kept = x.copy()
        x[:] = y
        y[:] = kept
        return x[0]

    kernel = moves(swap, normal(9, 4), normal(9, 4, seed=1))

    assert len(kernel.program.results) == 3


def test_a_cache_row_is_computed_in_its_place(assert_lowers_right, normal):
    def append(cache: Any, x: Any) -> Any:
        new = cache.copy()
        new[5] = np.tanh(x)
        return new

    kernel = assert_lowers_right(append, normal(64, 130), normal(130, seed=1))

    assert kernel.stats.hbm_bytes == 4 * (2 * 64 * 130 + 2 * 130)


def test_a_part_that_is_made_before_what_it_overwrites(assert_lowers_right, normal):
    def patched(x: Any, y: Any) -> Any:
        part, whole = np.exp(y), np.tanh(x)
        whole[2:5] = part
        return whole

    assert_lowers_right(patched, normal(129, 9), normal(3, 9, seed=1))


def test_steps_of_an_accumulation_each_see_the_last(assert_lowers_right, normal):
    def accumulate(x: Any, y: Any) -> Any:
        total = np.zeros_like(x)
        for k in range(3):
            total[k:] += y[k:] * (k + 1)
        total[::2] *= 2
        return total

    kernel = assert_lowers_right(accumulate, normal(9, 140), normal(9, 140, seed=1))

    arrays = [b for b in kernel.program.buffers().values() if b.shape == (9, 140)]
    assert sum(not b.space.on_chip for b in arrays) == 3  # x, y and the total


def test_an_array_that_is_needed_later_is_not_overwritten(assert_lowers_right, normal):
    def versions(x: Any, w: Any) -> Any:
        a = np.exp(x)
        b = a.copy()
        b[2:4] = a[5:7] * 2
        c = b.copy()
        c[:, 3] = b[:, 4] + b[:, 5]
        return c, b[:3] + 1, a[0] @ w

    assert_lowers_right(versions, normal(12, 9) / 4, normal(9, 5, seed=1))


def test_a_part_is_not_written_before_others_have_read_what_it_overwrites(
    assert_lowers_right, normal
):
    def patched(x: Any, y: Any) -> Any:
        a = np.exp(x)
        part, transposed = np.tanh(y), a.T * 2
        a[2:5] = part
        return a, transposed

    assert_lowers_right(patched, normal(129, 9), normal(3, 9, seed=1))


@pytest.mark.parametrize("version", ["0.2", "0.4", "0.6"])
def test_every_version_has_source_of_its_own(version):
    kernel = compile(
        lambda x, y: np.concatenate([np.exp(x), y]), "f32[40, 9]", "f32[3, 9]", nki=version
    )

    assert f"NKI {version}." in kernel.source
