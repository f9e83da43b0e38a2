"""Choices in one instruction, with the maximum of each row: masked attention, argmax."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neuroncore.program import Call, walk
from nkigen_lite.compiler.compile import Compiled, compile


def causal(fill: float, scale: float = 0.125) -> Any:
    """Attention of rows that see no later ones."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        s = q @ np.swapaxes(k, -1, -2) * scale
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, np.float32(fill))
        e = np.exp(s - np.max(s, -1, keepdims=True))
        return e / np.sum(e, -1, keepdims=True) @ v

    return attention


def written(kernel: Compiled) -> Counter[str]:
    """How often each instruction is in the program."""
    return Counter(s.instruction for s in walk(kernel.program.body) if isinstance(s, Call))


@pytest.mark.parametrize("fill", [-np.inf, -1e9, 0.0, 3.0])
@pytest.mark.parametrize("scale", [0.125, 0.0883883, 3.0])
def test_a_causal_mask(assert_lowers_right, normal, fill, scale):
    q, k, v = (normal(2, 140, 16, seed=s) for s in range(3))

    assert_lowers_right(causal(fill, scale), q, k, v)


def test_a_choice_of_products_reads_them_where_tensor_e_made_them():
    kernel = compile(causal(-1e9), *["f32[8, 512, 64]"] * 3)

    (strip,) = kernel.plan.strips
    assert "where, v10 = multiply, v11 = max" in strip
    assert written(kernel)["tensor_copy_predicated"] == 0
    assert written(kernel)["select_reduce"] == 8  # two tiles of four rows a partition, in turns
    assert "on_false=-8000000000.0" in kernel.source


def test_the_scale_stays_where_no_number_gives_the_other_choice():
    """No float32 times 3 is 1e9 + 64."""
    kernel = compile(causal(1e9 + 64, 3.0), *["f32[2, 128, 64]"] * 3)

    assert "on_false=1000000064.0" in kernel.source


def test_what_a_mask_hides_does_not_matter(assert_lowers_right):
    x = np.array([[1.0, np.nan, -np.inf, 2.0] * 64, [np.inf, np.nan, 3.0, -0.0] * 64], np.float32)

    for chosen in (
        lambda x: np.where(x > 0, x, 0.5), lambda x: np.where(x > 0, 0.5, np.where(x < 0, x, 1)),
        lambda x: np.where(x > 0, x, -np.inf).max(-1),
    ):  # fmt: skip
        kernel = compile(chosen, x)
        with np.errstate(invalid="ignore"):
            assert kernel(x).tobytes() == np.asarray(chosen(x), np.float32).tobytes()


def test_the_greatest_chosen_element_is_found_on_the_way(assert_lowers_right, normal):
    def chosen(x: Any) -> Any:
        y = np.where(x > 0.5, x, -1)
        return y.max(-1), y + 1

    counts = written(assert_lowers_right(chosen, normal(130, 200), roundings=1))

    assert (counts["select_reduce"], counts["tensor_reduce"]) == (1, 0)


def test_short_rows_are_reduced_all_at_once(normal):
    kernel = compile(lambda x: np.argmax(x, -1), "f32[65536, 10]")

    assert kernel.stats.instructions <= 32


SPECIAL = [-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan]


@pytest.mark.parametrize("columns", [7, 140, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("place", [np.argmax, np.argmin], ids=["greatest", "least"])
def test_places_of_special_values(exactly, place, dtype, columns):
    rng = np.random.default_rng(columns)
    few = [rng.choice(SPECIAL[:n], (40, columns)) for n in (1, 3, 5, 6, 7)]
    x = np.concatenate(few).astype(dtype)

    exactly(lambda x: place(x, -1), x)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, bool])
def test_places_of_integers(exactly, dtype):
    x = np.random.default_rng(0).integers(0, 2, (130, 150)).astype(dtype)

    exactly(lambda x: (x.argmax(-1), x.argmin(-1)), x)


def test_argmax_takes_four_instructions_a_row_beside_the_maximum():
    """85.6 us where the places are chosen, then reduced."""
    kernel = compile(lambda x: np.argmax(x, -1), "f32[1024, 1024]")

    counts = written(kernel)
    assert (counts["tensor_reduce"], counts["scalar_tensor_tensor"]) == (1, 2)
    assert (counts["select_reduce"], counts["tensor_copy_predicated"]) == (2, 0)
    assert kernel.stats.instructions == 41
