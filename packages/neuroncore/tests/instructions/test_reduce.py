"""tensor_reduce against float64 and exact integers."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AttributeValueError, DTypeError, ShapeError

FLOATS = (
    "float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
INTS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
EXACT = {  # operations whose float32 result on small whole numbers is exact in any order
    "add": lambda x, axis: x.sum(axis),
    "maximum": lambda x, axis: x.max(axis),
    "minimum": lambda x, axis: x.min(axis),
    "logical_and": lambda x, axis: (x != 0).all(axis) * 1.0,
    "logical_or": lambda x, axis: (x != 0).any(axis) * 1.0,
    "logical_xor": lambda x, axis: ((x != 0).sum(axis) % 2) * 1.0,
}


def whole(rng, shape, dtype="float32"):
    return rng.integers(0 if dtype.startswith("uint") else -7, 8, shape)


@pytest.mark.parametrize("dtype", (*FLOATS, *INTS))
@pytest.mark.parametrize("op", EXACT)
@pytest.mark.parametrize("axis", [2, (2,), (1, 2), [1, 2], -1])
def test_reductions_over_trailing_axes(world, nisa, rng, values, rounded, dtype, op, axis):
    data = world.tile(whole(rng, (4, 3, 5), dtype), dtype)
    along = tuple(axis) if isinstance(axis, (tuple, list)) else axis
    expected = EXACT[op](values(data), along).reshape(4, -1)
    dst = world.new(expected.shape, dtype)

    nisa.tensor_reduce(dst, op, data, axis)

    np.testing.assert_array_equal(values(dst), rounded(expected, dtype))


def test_a_float32_sum_stays_within_the_bound_of_any_order_of_addition(world, nisa, rng, values):
    """|error| <= (n - 1) u Σ|x| with u = 2^-24, whichever order is taken."""
    data, dst = world.tile(rng.normal(size=(128, 2048))), world.new((128, 1))

    nisa.tensor_reduce(dst, "add", data, 1)

    bound = 2047 * 2.0**-24 * np.abs(values(data)).sum(1, keepdims=True)
    assert np.all(np.abs(values(dst) - values(data).sum(1, keepdims=True)) <= bound)


def test_4096_bfloat16_ones_sum_to_4096(world, nisa):
    dst = world.new((1, 1), "bfloat16")

    nisa.tensor_reduce(dst, "add", world.tile(np.ones((1, 4096)), "bfloat16"), 1)

    assert float(dst.array.item()) == 4096


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_product_of_powers_of_two_is_exact(world, nisa, values, dtype):
    dst = world.new((1, 1), dtype)

    nisa.tensor_reduce(dst, "multiply", world.tile([[2.0, 0.5, 8.0, -4.0]], dtype), 1)

    assert values(dst).tolist() == [[-32]]


@pytest.mark.parametrize("axis", [2, (1, 2)])
def test_subtraction_takes_the_others_from_the_first(world, nisa, rng, axis):
    x = whole(rng, (4, 3, 5))
    flat = x.reshape(4, 1, 15) if axis == (1, 2) else x
    expected = flat[..., 0] - flat[..., 1:].sum(-1)
    dst = world.new(expected.shape)

    nisa.tensor_reduce(dst, "subtract", world.tile(x), axis)

    np.testing.assert_array_equal(dst.array, expected)


@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_negate_turns_the_result(world, nisa, rng, values, op, dtype):
    data, dst = world.tile(whole(rng, (4, 6)), dtype), world.new((4, 1), dtype)

    nisa.tensor_reduce(dst, op, data, 1, negate=True)

    np.testing.assert_array_equal(values(dst), -EXACT[op](values(data), 1).reshape(4, 1))


@pytest.mark.parametrize("shape", [(4, 3, 1), (4, 3), (4, 1, 3)])
def test_the_destination_only_needs_the_right_count(world, nisa, rng, shape):
    x, dst = whole(rng, (4, 3, 5)), world.new(shape)

    nisa.tensor_reduce(dst, "add", world.tile(x), 2, keepdims=True)

    np.testing.assert_array_equal(dst.array.reshape(4, 3), x.sum(2))


def test_a_strided_destination_keeps_what_lies_between(world, nisa, rng):
    x, t = whole(rng, (4, 3, 5)), world.tile(np.full((4, 6), 9.0))

    nisa.tensor_reduce(t[:, 0:6:2], "add", world.tile(x), 2)

    np.testing.assert_array_equal(t.array[:, ::2], x.sum(2))
    np.testing.assert_array_equal(t.array[:, 1::2], 9)


def test_the_destination_may_lie_inside_the_data(world, nisa):
    t = world.tile([[1.0, 2.0, 3.0]])

    nisa.tensor_reduce(t[:, 0:1], "add", t, 1)

    assert t.array.tolist() == [[6, 2, 3]]


def test_axis_1_meant_the_last_axis_up_to_02(world, nisa, nisa_02, rng):
    x = whole(rng, (4, 3, 5))
    old, new = world.new((4, 3)), world.new((4, 1))

    nisa_02.tensor_reduce(old, "add", world.tile(x), 1)
    np.testing.assert_array_equal(old.array, x.sum(2))

    with pytest.raises(ShapeError, match="axis \\(1,\\) is not the trailing free axes"):
        nisa.tensor_reduce(new, "add", world.tile(x), 1)


@pytest.mark.parametrize("axis", [0, (0, 1), (0, 1, 2), 1, 3, (2, 2), ()])
def test_only_trailing_free_axes_reduce(world, nisa, axis):
    with pytest.raises(ShapeError, match="is not the trailing free axes"):
        nisa.tensor_reduce(world.new((4, 3)), "add", world.tile(np.ones((4, 3, 5))), axis)


@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("dtype", INTS)
def test_bit_reductions_are_exact(world, nisa, rng, op, dtype):
    info = np.iinfo(dtype)
    bits = rng.integers(info.min, info.max, (4, 6), dtype, endpoint=True)
    dst = world.new((4, 1), dtype)

    nisa.tensor_reduce(dst, op, world.tile(bits, dtype), 1)

    fold = {"bitwise_and": int.__and__, "bitwise_or": int.__or__, "bitwise_xor": int.__xor__}[op]
    for row, got in zip(bits.tolist(), dst.array[:, 0].tolist(), strict=True):
        expected = row[0]
        for number in row[1:]:
            expected = fold(expected, number)
        assert got == expected


def test_bit_reductions_reject_floats_and_what_does_not_reduce_is_named(world, nisa):
    t, dst = world.tile(np.ones((4, 8))), world.new((4, 1))

    with pytest.raises(DTypeError, match="bitwise_and works on raw integer bits"):
        nisa.tensor_reduce(dst, "bitwise_and", t, 1)
    with pytest.raises(AttributeValueError, match="power does not reduce"):
        nisa.tensor_reduce(dst, "power", t, 1)
