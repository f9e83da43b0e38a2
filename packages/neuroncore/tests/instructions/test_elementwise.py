"""tensor_tensor, tensor_copy, memset and reciprocal against float64 and exact integers."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import Engine
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    EngineError,
    ImmutableError,
    KernelError,
    MemorySpaceError,
    PartitionError,
    ShapeError,
    SignatureError,
)
from neuroncore.options import Options

FLOATS = (
    "float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
INTS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
EVERY = pytest.mark.parametrize("dtype", (*FLOATS, *INTS))

# The meaning of each operation in float64; float32 rounds it once and correctly.
ARITHMETIC = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": lambda x, y: np.where(x >= y, x, y),
    "minimum": lambda x, y: np.where(x <= y, x, y),
    "equal": lambda x, y: (x == y) * 1.0,
    "not_equal": lambda x, y: (x != y) * 1.0,
    "less": lambda x, y: (x < y) * 1.0,
    "less_equal": lambda x, y: (x <= y) * 1.0,
    "greater": lambda x, y: (x > y) * 1.0,
    "greater_equal": lambda x, y: (x >= y) * 1.0,
    "logical_and": lambda x, y: ((x != 0) & (y != 0)) * 1.0,
    "logical_or": lambda x, y: ((x != 0) | (y != 0)) * 1.0,
    "logical_xor": lambda x, y: ((x != 0) ^ (y != 0)) * 1.0,
}
BITS = {
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
}


def some(rng, shape, dtype="float32"):
    """Values that fill a format's range of interest, with zeros and equal neighbours."""
    drawn = rng.normal(0, 40, shape).round(1)
    drawn[..., 0] = 0
    return np.abs(drawn) if dtype.startswith("uint") else drawn


# -- tensor_tensor --------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("op", ARITHMETIC)
def test_tensor_tensor_computes_in_float32_and_rounds_once(
    world, nisa, rng, values, rounded, op, dtype
):
    x, y = (world.tile(some(rng, (4, 6), dtype), dtype) for _ in range(2))
    dst = world.new((4, 6), dtype)

    nisa.tensor_tensor(dst, x, y, op, engine=Engine.vector)

    wide = rounded(ARITHMETIC[op](rounded(values(x), "float32"), values(y)), "float32")
    np.testing.assert_array_equal(values(dst), rounded(wide, dtype))


@pytest.mark.parametrize("dtypes", [("bfloat16", "float32", "int32"), ("int8", "float16", "uint8")])
def test_tensor_tensor_takes_three_different_dtypes(world, nisa, rng, values, rounded, dtypes):
    to, first, second = dtypes
    x, y = world.tile(some(rng, (4, 6)), first), world.tile(np.abs(some(rng, (4, 6))), second)
    dst = world.new((4, 6), to)

    nisa.tensor_tensor(dst, x, y, "multiply")

    exact = rounded(values(x) * values(y), "float32")
    np.testing.assert_array_equal(values(dst), rounded(exact, to))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", BITS)
def test_bit_operations_never_convert(world, nisa, rng, op, dtype):
    info = np.iinfo(dtype)
    x, y = (rng.integers(info.min, info.max, (4, 6), dtype, endpoint=True) for _ in range(2))
    dst = world.new((4, 6), dtype)

    nisa.tensor_tensor(dst, world.tile(x, dtype), world.tile(y, dtype), op)

    np.testing.assert_array_equal(dst.array, BITS[op](x, y))


def test_shifts_work_on_raw_bits_and_the_right_shift_is_logical(world, nisa):
    x = world.tile(np.array([[-8, -1, 5]], np.int32), "int32")
    by = world.tile(np.array([[1, 31, 1]], np.int32), "int32")
    left, right = world.new((1, 3), "int32"), world.new((1, 3), "int32")

    nisa.tensor_tensor(left, x, by, "left_shift")
    nisa.tensor_tensor(right, x, by, "right_shift")

    assert left.array.tolist() == [[-16, -(2**31), 10]]
    assert right.array.tolist() == [[2**31 - 4, 1, 2]]


BIG = 2**24 + 1  # not a float32


@pytest.mark.parametrize(
    ("version", "engine", "space", "expected"),
    [
        ("nisa", Engine.unknown, "sbuf", BIG + 2),
        ("nisa", Engine.gpsimd, "sbuf", BIG + 2),
        ("nisa", Engine.vector, "sbuf", 2**24 + 2),
        ("nisa", Engine.unknown, "psum", 2**24 + 2),
        ("nisa_02", Engine.unknown, "sbuf", 2**24 + 2),
    ],
    ids=["default", "gpsimd", "vector", "psum falls back to vector", "0.2"],
)
def test_int32_is_exact_on_gpsimd_only(world, request, version, engine, space, expected):
    nisa = request.getfixturevalue(version)
    x, dst = world.tile([[BIG]], "int32", space), world.new((1, 1), "int32")

    nisa.tensor_tensor(dst, x, world.tile([[2]], "int32"), "add", engine)

    assert dst.array.item() == expected


@pytest.mark.parametrize(("policy", "expected"), [("wrap", -(2**31)), ("saturate", 2**31 - 1)])
def test_exact_integers_beyond_32_bits_wrap_or_saturate_as_asked(
    make_world, nisa, policy, expected
):
    world = make_world(options=Options(integer_overflow=policy))
    dst = world.new((1, 1), "int32")

    nisa.tensor_tensor(
        dst, world.tile([[2**31 - 1]], "int32"), world.tile([[1]], "int32"), "add", Engine.gpsimd
    )

    assert dst.array.item() == expected


def test_free_dimensions_may_be_split_differently(world, nisa, rng, values):
    x, y = rng.normal(size=(4, 12)), rng.normal(size=(4, 3, 4))
    left, right, dst = world.tile(x), world.tile(y), world.new((4, 2, 6))

    nisa.tensor_tensor(dst, left, right, "add")

    expected = np.float32(x) + np.float32(y).reshape(4, 12)
    np.testing.assert_array_equal(dst.array.reshape(4, 12), expected)


def test_strided_operands_and_destinations_are_paired_in_order(world, nisa, rng, values):
    x, dst = world.tile(rng.normal(size=(4, 12))), world.tile(np.zeros((4, 8)))

    nisa.tensor_tensor(dst[:, 1:8:2], x[:, 0:12:3], x[:, 4:8], "multiply")

    wide = values(x).astype(np.float32)
    np.testing.assert_array_equal(dst.array[:, 1::2], wide[:, ::3] * wide[:, 4:8])
    np.testing.assert_array_equal(dst.array[:, ::2], 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_the_destination_may_be_an_operand(world, nisa, values, dtype):
    t = world.tile([[1, 2, 3]], dtype)

    nisa.tensor_tensor(t, t, t, "add")
    nisa.tensor_tensor(t, t, t, "multiply")

    assert values(t).tolist() == [[4, 16, 36]]


def test_overlapping_operands_are_read_before_anything_is_written(world, nisa):
    t = world.tile([[1.0, 2.0, 3.0, 4.0, 0.0]])

    nisa.tensor_tensor(t[:, 1:5], t[:, 0:4], t[:, 0:4], "add")

    assert t.array.tolist() == [[1, 2, 4, 6, 8]]


def test_results_beyond_int8_saturate(world, nisa):
    dst = world.new((1, 2), "int8")

    nisa.tensor_tensor(dst, world.tile([[100, -100]]), world.tile([[100, -100]]), "add")

    assert dst.array.tolist() == [[127, -128]]


def test_power_runs_on_gpsimd(world, nisa):
    dst = world.new((1, 3))

    nisa.tensor_tensor(dst, world.tile([[2, 3, 4.0]]), world.tile([[10, 2, 0.5]]), "power")

    assert dst.array.tolist() == [[1024, 9, 2]]


# -- what is rejected ------------------------------------------------------------------------------


def test_both_inputs_in_psum_are_rejected(world, nisa):
    x = world.tile(np.ones((4, 8)), space="psum")

    with pytest.raises(MemorySpaceError, match="data1 and data2 are both in PSUM"):
        nisa.tensor_tensor(world.new((4, 8)), x, x, "add")


@pytest.mark.parametrize("mistake", ["partitions", "free", "memory", "engine", "psum on gpsimd"])
def test_shape_mismatches_are_named(world, nisa, mistake):
    good = world.tile(np.ones((4, 8)))
    calls = {
        "partitions": (PartitionError, world.tile(np.ones((3, 8))), Engine.unknown),
        "free": (ShapeError, world.tile(np.ones((4, 7))), Engine.unknown),
        "memory": (MemorySpaceError, world.tile(np.ones((4, 8)), space="hbm"), Engine.unknown),
        "engine": (EngineError, good, Engine.scalar),
        "psum on gpsimd": (EngineError, world.tile(np.ones((4, 8)), space="psum"), Engine.gpsimd),
    }
    error, second, engine = calls[mistake]

    with pytest.raises(error):
        nisa.tensor_tensor(world.new((4, 8)), good, second, "add", engine)


def test_an_immutable_destination_is_rejected(world, nisa):
    fixed = world.core.adopt(np.ones((4, 8), np.float32), world.new((4, 8)).buffer, mutable=False)

    with pytest.raises(ImmutableError, match="dst is read-only"):
        nisa.tensor_tensor(fixed, fixed, fixed, "add")


@EVERY
def test_a_repeated_operand_is_read_as_often_as_it_is_seen(world, nisa, dtype):
    stored, other = np.arange(12).reshape(4, 1, 3) % 7, np.arange(24).reshape(4, 2, 3) // 8
    row, tile, dst = world.tile(stored, dtype), world.tile(other, dtype), world.new((4, 6))
    seen, expected = row.broadcast(1, 2), stored + other

    for first, second in ((seen, tile), (tile, seen)):
        nisa.tensor_tensor(dst, first, second, "add")
        np.testing.assert_array_equal(dst.array, expected.reshape(4, 6))
    np.testing.assert_array_equal(row.array.astype(np.float64), stored)


SHARED = np.arange(32.0).reshape(4, 8)


@pytest.mark.parametrize(
    ("dtype", "value", "shared"),
    [("float32", "undefined", [np.nan] * 4), ("int32", "undefined", [4] * 4),
     ("float32", "last", SHARED[:, -1])],
)  # fmt: skip
def test_an_element_that_results_share_is_as_the_option_says(
    make_world, nisa, dtype, value, shared
):
    world = make_world(options=Options(repeated_destination=value))
    tile = world.tile(np.ones((4, 2)), dtype)

    nisa.tensor_copy(tile[:, 0:1].broadcast(1, 8), world.tile(SHARED, dtype))

    np.testing.assert_array_equal(tile.array[:, 0], shared)
    assert (tile.array[:, 1] == 1).all()


def test_the_reduction_beside_a_shared_result_is_written(world, nisa):
    unused, sums = world.new((4, 1)), world.new((4, 1))

    nisa.activation_reduce(
        unused.broadcast(1, 8), "square", world.tile(SHARED), reduce_op="add", reduce_res=sums
    )

    np.testing.assert_allclose(sums.array, (SHARED**2).sum(1, keepdims=True))


def test_results_that_share_an_element_can_be_an_error(make_world, nisa):
    world = make_world(options=Options(repeated_destination="reject"))
    shared = world.tile(np.ones((4, 1))).broadcast(1, 8)

    with pytest.raises(KernelError, match="several results would share one element"):
        nisa.tensor_copy(shared, world.tile(np.ones((4, 8))))


def test_bit_operations_reject_floats_and_mixed_widths(world, nisa):
    floats, wide, narrow = (world.tile(np.ones((4, 8)), d) for d in ("float32", "int32", "int8"))

    for dst, other in ((floats, floats), (wide, narrow)):
        with pytest.raises(DTypeError, match="raw integer bits"):
            nisa.tensor_tensor(dst, dst, other, "bitwise_and")


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_the_signed_magnitude_operations_came_with_gen4(make_world, nisa, target):
    world = make_world(target)
    x, y, dst = world.tile([[-3.0, 2.0]]), world.tile([[1.0, -2.0]]), world.new((1, 2))

    if target == "trn3":
        nisa.tensor_tensor(dst, x, y, "abs_max")
        assert dst.array.tolist() == [[-3, -2]]  # ties give the second operand
    else:
        with pytest.raises(AttributeValueError, match="abs_max is not an operation of"):
            nisa.tensor_tensor(dst, x, y, "abs_max")


# -- tensor_copy ----------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("to", (*FLOATS, *INTS))
def test_tensor_copy_converts_with_one_rounding(world, nisa, rng, values, rounded, dtype, to):
    src, dst = world.tile(some(rng, (4, 6), dtype), dtype), world.new((4, 6), to)

    nisa.tensor_copy(dst, src)

    through = values(src) if dtype == to else rounded(values(src), "float32")
    np.testing.assert_array_equal(values(dst), rounded(through, to))


def test_a_copy_of_equal_dtypes_keeps_every_bit(world, nisa):
    payload = np.array([[0x7F800001, 0xFFC12345, 0x80000000]], np.uint32).view(np.float32)
    src, dst = world.core.adopt(payload, world.new((1, 1)).buffer), world.new((1, 3))

    nisa.tensor_copy(dst, src)

    np.testing.assert_array_equal(dst.array.view(np.uint32), payload.view(np.uint32))


def test_int32_survives_a_copy_that_float32_would_round(world, nisa):
    dst = world.new((1, 1), "int32", "psum")

    nisa.tensor_copy(dst, world.tile([[BIG]], "int32"))

    assert dst.array.item() == BIG


# -- memset ---------------------------------------------------------------------------------------


@EVERY
def test_memset_fills_with_the_rounded_value(world, nisa, values, rounded, dtype):
    dst = world.new((4, 6), dtype)
    value = 3 if dtype in INTS else 3.3

    nisa.memset(dst, value)

    np.testing.assert_array_equal(
        values(dst), rounded(rounded(np.full((4, 6), value), "float32"), dtype)
    )


@pytest.mark.parametrize(
    ("dtype", "given", "stored"),
    [
        ("int32", BIG, BIG), ("uint32", 2**32 - 1, 2**32 - 1), ("int8", 1000, 127),
        ("uint8", -1, 0), ("uint8", 2**63, 255),
        ("int32", 10**20, 2**31 - 1), ("int32", -(10**20), -(2**31)),
    ],
)  # fmt: skip
def test_memset_of_integers_is_exact_and_saturates(world, nisa, dtype, given, stored):
    dst = world.new((1, 2), dtype)

    nisa.memset(dst, given)

    assert dst.array.tolist() == [[stored, stored]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("value", [2**63, -(2**70), 10**30])
def test_memset_of_floats_takes_integers_of_any_size(world, nisa, values, rounded, dtype, value):
    dst = world.new((4, 6), dtype)

    nisa.memset(dst, value)

    expected = rounded(np.full((4, 6), float(value)).astype(np.float32), dtype)
    np.testing.assert_array_equal(values(dst), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_an_integer_that_no_float_comes_near_to_is_rejected_whenever_it_comes(world, nisa, dtype):
    dst = world.new((4, 6), dtype)
    nisa.memset(dst, 1)

    with pytest.raises(SignatureError, match=r"memset: value is a number of 1329 bits"):
        nisa.memset(dst, 10**400)


def test_bit_operations_use_the_low_bits_of_an_integer(world, nisa):
    data, dst = world.tile([[-1, 6]], "int32"), world.new((1, 2), "int32")

    for number in (5, 5 + 2**40, 5 + 2**63, 5 + 2**90, 5 - 2**90):
        nisa.tensor_scalar(dst, data, "bitwise_and", number)

        assert dst.array.tolist() == [[5, 4]]


def test_a_float_for_an_integer_tensor_was_cast_in_02_and_is_rejected_since(world, nisa, nisa_02):
    dst = world.new((1, 2), "int32")

    nisa_02.memset(dst, 2.5)
    assert dst.array.tolist() == [[2, 2]]
    with pytest.raises(AttributeValueError, match="a float value for int32 elements"):
        nisa.memset(dst, 2.5)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32"])
@pytest.mark.parametrize("value", [0.0, 7.0, np.float32(3)])
def test_a_whole_float_for_an_integer_tensor_is_that_integer(world, nisa, dtype, value):
    dst = world.new((1, 2), dtype)

    nisa.memset(dst, value)

    assert dst.array.tolist() == [[int(value)] * 2]


@pytest.mark.parametrize("value", [0.5, float("nan"), float("inf")])
def test_any_other_float_for_an_integer_tensor_is_rejected(world, nisa, value):
    with pytest.raises(AttributeValueError, match="a float value for uint8 elements"):
        nisa.memset(world.new((1, 2), "uint8"), value)


def test_packed_tensors_can_only_be_cleared(world, nisa):
    dst = world.new((1, 2), "float8_e4m3fn_x4")

    nisa.memset(dst, 0)
    assert dst.array.tolist() == [[0, 0]]
    with pytest.raises(AttributeValueError, match="value 1 for float8_e4m3fn_x4"):
        nisa.memset(dst, 1)


def test_memset_of_a_slice_leaves_the_rest(world, nisa):
    t = world.tile(np.ones((4, 6)))

    nisa.memset(t[0:3, 2:4], 7.0)

    assert t.array.sum() == 18 + 6 * 7


# -- reciprocal -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_reciprocal_is_the_rounded_quotient(world, nisa, rng, values, rounded, dtype):
    src = world.tile(some(rng, (4, 6)) + 0.5, dtype)
    dst = world.new((4, 6), dtype)

    with np.errstate(divide="ignore"):
        nisa.reciprocal(dst, src)
        exact = rounded(1 / values(src), "float32")

    np.testing.assert_array_equal(values(dst), rounded(exact, dtype))
