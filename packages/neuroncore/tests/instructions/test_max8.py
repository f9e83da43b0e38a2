"""max8 against sorting in float64."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import ShapeError


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3", "int8", "uint16"])
@pytest.mark.parametrize("free", [8, 9, 129, 512])
def test_the_eight_largest_of_each_row_come_first_to_last(world, nisa, rng, values, dtype, free):
    src, dst = world.tile(rng.normal(40, 30, (5, free)), dtype), world.new((5, 8))

    nisa.max8(dst, src)

    np.testing.assert_array_equal(values(dst), -np.sort(-values(src), axis=1)[:, :8])


def test_equal_elements_are_given_as_often_as_they_occur(world, nisa, values):
    dst = world.new((1, 8))

    nisa.max8(dst, world.tile([[5.0, 5, 1, 5, 0, 2, 2, -1, -2]]))

    assert values(dst)[0].tolist() == [5, 5, 5, 2, 2, 1, 0, -1]


def test_free_dimensions_are_flattened_and_results_rounded_to_dst(world, nisa, values, rounded):
    src, dst = world.tile(np.arange(24.0).reshape(2, 3, 4) / 3), world.new((2, 8), "bfloat16")

    nisa.max8(dst, src)

    exact = values(src).reshape(2, 12)[:, :3:-1]
    np.testing.assert_array_equal(values(dst), rounded(exact, "bfloat16"))


@pytest.mark.parametrize("free", [7, 16385])
def test_rows_have_8_to_16384_elements(world, nisa, free):
    with pytest.raises(ShapeError, match=f"src has {free} elements per partition"):
        nisa.max8(world.new((1, 8)), world.tile(np.zeros((1, free))))
