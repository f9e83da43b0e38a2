"""iota and affine_select against exact integers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from neuroncore.errors import AttributeValueError, MemorySpaceError, ShapeError
from neuroncore.options import Options

COMPARES = {
    "equal": lambda v: v == 0,
    "not_equal": lambda v: v != 0,
    "less": lambda v: v < 0,
    "less_equal": lambda v: v <= 0,
    "greater": lambda v: v > 0,
    "greater_equal": lambda v: v >= 0,
}


def affine(partitions, pattern, offset, multiplier):
    """The values, one Python int at a time, wrapped to int32."""
    rows = [
        [
            offset + p * multiplier + sum(s * i for (s, _), i in zip(pattern, at, strict=True))
            for at in product(*(range(n) for _, n in pattern))
        ]
        for p in range(partitions)
    ]
    return [[(v + 2**31) % 2**32 - 2**31 for v in row] for row in rows]


PATTERNS = [
    ([[1, 6]], 0, 0),
    ([[1, 6]], 5, 100),
    ([[10, 2], [1, 3]], -3, 7),
    ([[0, 2], [-1, 3]], 0, 1),
    ([[100, 1], [10, 2], [3, 1], [1, 3]], 0, -1),
    ([[2**30, 6]], 2**31 - 1, 2**30),
]


@pytest.mark.parametrize(("pattern", "offset", "multiplier"), PATTERNS)
def test_iota_counts_with_32_bit_wrap_around(world, nisa, pattern, offset, multiplier):
    dst = world.new((4, 6), "int32")

    nisa.iota(dst, pattern, offset, multiplier)

    assert dst.array.tolist() == affine(4, pattern, offset, multiplier)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint8", "float16", "uint32"])
def test_iota_is_cast_to_the_destination(world, nisa, values, rounded, dtype):
    dst = world.new((2, 300), dtype)

    nisa.iota(dst, [[1, 300]], offset=-20)

    expected = rounded(affine(2, [[1, 300]], -20, 0), dtype)
    np.testing.assert_array_equal(values(dst), expected)


def test_the_offset_came_before_its_default_in_02(world, nisa_02):
    dst = world.new((1, 3), "int32")

    nisa_02.iota(dst, [[1, 3]], 7)

    assert dst.array.tolist() == [[7, 8, 9]]


@pytest.mark.parametrize("pattern", [[], [[1, 2]] * 5, [[1, 0]], [1, 2], None, [[1]]])
def test_a_pattern_is_one_to_four_pairs(world, nisa, pattern):
    with pytest.raises(AttributeValueError, match="a pattern is a list of 1 to 4"):
        nisa.iota(world.new((1, 3), "int32"), pattern)


def test_a_pattern_has_ints_of_64_bits(world, nisa):
    with pytest.raises(AttributeValueError, match="ints of at most 64 bits"):
        nisa.iota(world.new((1, 3), "int32"), [[2**63, 3]])


def test_the_pattern_fills_the_destination_exactly(world, nisa):
    with pytest.raises(ShapeError, match="the pattern has 4 elements, dst 3 free"):
        nisa.iota(world.new((1, 3), "int32"), [[1, 4]])


def test_iota_writes_sbuf_only(world, nisa):
    with pytest.raises(MemorySpaceError, match="dst is in PSUM"):
        nisa.iota(world.new((1, 3), "int32", "psum"), [[1, 3]])


# -- affine_select --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 127, 128])
def test_a_causal_mask(world, nisa, rng, size):
    scores, dst = rng.normal(size=(size, size)), world.new((size, size))

    nisa.affine_select(dst, [[-1, size]], 1, world.tile(scores), -9984.0, cmp_op="greater_equal")

    np.testing.assert_array_equal(dst.array, np.where(np.tri(size), np.float32(scores), -9984))


@pytest.mark.parametrize("cmp_op", COMPARES)
@pytest.mark.parametrize(("pattern", "offset", "multiplier"), PATTERNS)
def test_every_comparison_with_zero(world, nisa, cmp_op, pattern, offset, multiplier):
    tile, dst = world.tile(np.arange(24.0).reshape(4, 6)), world.new((4, 6))

    nisa.affine_select(dst, pattern, multiplier, tile, -1.0, cmp_op, offset)

    keep = COMPARES[cmp_op](np.array(affine(4, pattern, offset, multiplier), object))
    np.testing.assert_array_equal(dst.array, np.where(keep, tile.array, -1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "int8"])
@pytest.mark.parametrize("to", ["float32", "bfloat16", "int32"])
def test_selected_elements_are_converted_only_where_dtypes_differ(
    world, nisa, values, rounded, dtype, to
):
    tile, dst = world.tile(np.arange(-12, 12).reshape(4, 6), dtype), world.new((4, 6), to)

    nisa.affine_select(dst, [[1, 6]], 0, tile, -3.0, "greater", -2)

    keep = np.arange(6) - 2 > 0
    expected = rounded(np.where(keep, values(tile), -3), to)
    np.testing.assert_array_equal(values(dst), expected)


def test_int32_elements_are_not_rounded_through_float32(world, nisa):
    big = 2**24 + 1
    dst = world.new((1, 2), "int32")

    nisa.affine_select(dst, [[1, 2]], 0, world.tile([[big, big]], "int32"), 0.0, "equal")

    assert dst.array.tolist() == [[big, 0]]


def test_02_took_the_offset_before_the_multiplier(world, nisa_02):
    tile, dst = world.tile([[1.0, 2.0], [3.0, 4.0]]), world.new((2, 2))

    nisa_02.affine_select(dst, [[1, 2]], -1, 0, tile, 0.0, "equal")

    assert dst.array.tolist() == [[0, 2], [0, 4]]


def test_the_frontends_four_comparisons_can_be_all_there_are(make_world, nisa):
    world = make_world(options=Options(affine_select_compare="frontend"))
    t = world.tile(np.ones((1, 2)))

    nisa.affine_select(world.new((1, 2)), [[1, 2]], 0, t, 0.0, "greater")
    with pytest.raises(AttributeValueError, match="less is not a comparison here"):
        nisa.affine_select(world.new((1, 2)), [[1, 2]], 0, t, 0.0, "less")
