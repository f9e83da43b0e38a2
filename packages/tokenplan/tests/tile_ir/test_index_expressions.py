"""Operators on the indices of a description: what they mean, or what to write instead."""

import operator
from math import floor
from typing import Any

import numpy as np
import pytest

from neuroncore.program import Affine
from tokenplan.tile_ir import DescriptionError, Index, TileKernel

k: Any = Index.variable("k")
g: Any = Index.variable("g")
VALUES = [{"k": a, "g": b} for a in range(5) for b in range(3)]


@pytest.mark.parametrize(
    "expression",
    [
        lambda k, g: 63 - k,
        lambda k, g: +k - g * 2 + np.int64(3) * k,
        lambda k, g: (4 * k - 6 * g + 7) // 2,
        lambda k, g: (4 * k - 6 * g + 7) % 2,
        lambda k, g: (4 * k + 7) // -4,
        lambda k, g: (4 * k + 7) % -4,
        lambda k, g: divmod(8 * k - 3, 4)[0] + divmod(8 * k - 3, 4)[1],
    ],
)
def test_an_expression_has_the_values_that_python_gives_its_numbers(expression):
    for at in VALUES:
        assert expression(k, g).value(at) == expression(**at)


def test_a_comparison_has_a_result_where_all_values_have_the_same():
    assert k < k + 1 and k - 1 <= k and k + g == g + k and not k * 0 and k != "k"
    assert [10, 20, 30][k - k + 1] == 20 and {k: 1, g: 2}[Index.variable("g")] == 2
    assert Affine(3) * 1 == Affine(3) and k * Affine(3) == 3 * k


WITHOUT_MEANING = {
    "// or %": [lambda: k // 2, lambda: k % 2, lambda: divmod(k, 2), lambda: 7 // k, lambda: 7 % k,
                lambda: k // 0, lambda: k // g],
    "/": [lambda: k / 2, lambda: 2 / k], "**": [lambda: k**2, lambda: 2**k],
    "*": [lambda: k * k, lambda: k * 0.5], "+": [lambda: k + 1.5, lambda: k + np.arange(2)],
    "&": [lambda: k & 1], ">>": [lambda: k >> 1], "<<": [lambda: k << 1, lambda: 1 << k],
    "^": [lambda: k ^ 1], "|": [lambda: 1 | k], "@": [lambda: k @ k], "~": [lambda: ~k],
    "== 0": [lambda: k == 0, lambda: k == np.int64(0), lambda: k in (0, 1)],
    "!= 0": [lambda: k != 0, lambda: bool(k)], "< 3": [lambda: k < 3, lambda: max(k, 3)],
    "> g": [lambda: k > g], "abs()": [lambda: abs(k)],
    "round()": [lambda: round(k), lambda: floor(k)],
    "int()": [lambda: int(k), lambda: range(k), lambda: [1, 2][k]], "float()": [lambda: float(k)],
}  # fmt: skip


@pytest.mark.parametrize("operation", WITHOUT_MEANING)
def test_an_operation_whose_result_is_not_affine_is_rejected_with_a_cure(operation):
    for wrong in WITHOUT_MEANING[operation]:
        with pytest.raises(DescriptionError) as error:
            wrong()
        assert error.value.what.startswith(f"{operation}")
        assert error.value.what.endswith("an index is a sum of variables times integers")
        assert error.value.hint


def test_an_index_is_neither_an_extent_nor_a_value_of_a_tile():
    kernel = TileKernel("wrong")
    a = kernel.array("a", (64, 64))
    row: Any = kernel.grid("row", 4)
    for wrong in (
        lambda: kernel.load(a, (0, 0), (row, 4)),
        lambda: kernel.loop("j", row).__enter__(),
        lambda: kernel.full((4, 4), row),
    ):
        with pytest.raises(DescriptionError, match="of the index row"):
            wrong()
    with pytest.raises(DescriptionError, match="full of 'x'"):
        kernel.full((4, 4), "x")  # pyrefly: ignore


def test_the_digits_of_an_index_are_nested_loops():
    """What the rejection of // and % recommends has the tiles of the index."""
    kernel = TileKernel("digits")
    a = kernel.array("a", (64, 64))
    with kernel.loop("q", 4) as q, kernel.loop("r", 2) as r:
        kernel.store(a, (q, r), kernel.load(a, (2 * q + r, 0), (8, 8)))
    load, store = kernel.described().transfers()
    found = [(load.index[0].value(at), *(i.value(at) for i in store.index))
             for at in ({"q": n // 2, "r": n % 2} for n in range(8))]  # fmt: skip

    assert found == [(n, n // 2, n % 2) for n in range(8)]
    assert all(type(i) is Affine for i in load.index)
    assert operator.index(Index(3)) == 3
