"""tensor_scalar against float64 and exact integers."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import Engine
from neuroncore.errors import AttributeValueError, DTypeError, EngineError, ShapeError

FLOATS = (
    "float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
INTS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
OPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": np.fmax,
    "minimum": np.fmin,
    "greater_equal": lambda x, y: (x >= y) * 1.0,
    "not_equal": lambda x, y: (x != y) * 1.0,
    "logical_and": lambda x, y: ((x != 0) & (y != 0)) * 1.0,
}


def some(rng, shape, dtype="float32"):
    drawn = rng.normal(0, 20, shape).round(1)
    return np.abs(drawn) if dtype.startswith("uint") else drawn


@pytest.mark.parametrize("dtype", (*FLOATS, *INTS))
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("form", ["number", "tile"])
def test_one_operation_rounds_once(world, nisa, rng, values, rounded, dtype, op, reverse, form):
    data, dst = world.tile(some(rng, (4, 6), dtype), dtype), world.new((4, 6), dtype)
    operand = 1.7 if form == "number" else world.tile(some(rng, (4, 1)))

    nisa.tensor_scalar(dst, data, op, operand, reverse)

    y = np.float64(np.float32(1.7)) if form == "number" else values(operand)
    x = rounded(values(data), "float32")
    wide = OPS[op](y, x) if reverse else OPS[op](x, y)
    expected = rounded(rounded(wide + np.zeros((4, 6)), "float32"), dtype)
    np.testing.assert_array_equal(values(dst), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("forms", ["number number", "number tile", "tile number", "tile tile"])
def test_the_second_operation_takes_the_unrounded_result_of_the_first(
    world, nisa, rng, values, rounded, dtype, forms
):
    data, dst = world.tile(some(rng, (4, 6)), dtype), world.new((4, 6), dtype)
    a, b = (2.5 if f == "number" else world.tile(some(rng, (4, 1))) for f in forms.split())

    nisa.tensor_scalar(dst, data, "multiply", a, False, "subtract", b, True)

    first, second = (2.5 if isinstance(v, float) else values(v) for v in (a, b))
    product = rounded(values(data) * first, "float32")
    np.testing.assert_array_equal(values(dst), rounded(rounded(second - product, "float32"), dtype))


def test_the_destination_may_be_the_data_and_hold_the_operands(world, nisa):
    t = world.tile([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])

    nisa.tensor_scalar(t, t, "multiply", t[:, 0:1], op1="add", operand1=t[:, 1:2])

    assert t.array.tolist() == [[3, 4, 6], [14, 20, 26]]


def test_per_partition_operands_broadcast_over_every_free_dimension(world, nisa):
    data, dst = world.tile(np.zeros((2, 3, 4))), world.new((2, 12))

    nisa.tensor_scalar(dst, data, "add", world.tile([[1.0], [2.0]]))

    np.testing.assert_array_equal(dst.array, np.repeat([[1], [2]], 12, 1))


@pytest.mark.parametrize(("op", "exact"), [("abs", np.abs), ("reciprocal", lambda x: 1 / x)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16"])
@pytest.mark.parametrize("operand", [None, 0, 0.0])
def test_unary_operations(world, nisa, values, rounded, op, exact, dtype, operand):
    data, dst = world.tile([[-4.0, 3.0, 0.5]]), world.new((1, 3), dtype)

    nisa.tensor_scalar(dst, data, op, operand)

    expected = rounded(rounded(exact(values(data)), "float32"), dtype)
    np.testing.assert_array_equal(values(dst), expected)


@pytest.mark.parametrize("engine", [Engine.unknown, Engine.gpsimd])
def test_rsqrt_is_within_two_ulps(world, nisa, rng, values, engine):
    """Root and quotient round once each: half an ulp, halved by the root's slope, and half."""
    data, dst = world.tile(rng.uniform(0.01, 100, (4, 50))), world.new((4, 50))

    nisa.tensor_scalar(dst, data, "rsqrt", None, engine=engine)

    exact = 1 / np.sqrt(values(data))
    assert np.all(np.abs(values(dst) - exact) <= 2 * np.spacing(np.float32(exact)))


@pytest.mark.parametrize("engine", [Engine.unknown, Engine.gpsimd])
@pytest.mark.parametrize("reverse", [False, True])
def test_power_is_within_two_ulps(world, nisa, rng, values, engine, reverse):
    data, dst = world.tile(rng.uniform(0.1, 3, (4, 50))), world.new((4, 50))

    nisa.tensor_scalar(dst, data, "power", 1.5, reverse, engine=engine)

    exact = 1.5 ** values(data) if reverse else values(data) ** 1.5
    assert np.all(np.abs(values(dst) - exact) <= 2 * np.spacing(np.float32(exact)))


GPSIMD = [("power", 2.0), ("rsqrt", None)]


@pytest.mark.parametrize(("op", "operand"), GPSIMD)
@pytest.mark.parametrize("place", ["op0", "op1"])
def test_the_vector_engine_has_no_power_and_no_rsqrt(world, nisa, op, operand, place):
    second = (op, operand or 0.0) if place == "op1" else (None, None)
    first = ("add", 1.0) if place == "op1" else (op, operand)

    with pytest.raises(EngineError, match=f"the vector engine does not do {op}"):
        nisa.tensor_scalar(
            world.new((4, 8)), world.tile(np.ones((4, 8))), *first, op1=second[0],
            operand1=second[1], engine=Engine.vector,
        )  # fmt: skip


@pytest.mark.parametrize(("op", "operand"), GPSIMD)
@pytest.mark.parametrize("where", ["dst", "data"])
@pytest.mark.parametrize("engine", [Engine.unknown, Engine.gpsimd])
def test_power_and_rsqrt_do_not_reach_psum(world, nisa, op, operand, where, engine):
    tiles = {n: world.new((4, 8), space="psum" if n == where else "sbuf") for n in ("dst", "data")}
    nisa.memset(tiles["data"], 4.0)

    with pytest.raises(EngineError, match="the gpsimd engine does not reach PSUM"):
        nisa.tensor_scalar(**tiles, op0=op, operand0=operand, engine=engine)


@pytest.mark.parametrize("engine", [Engine.unknown, Engine.gpsimd])
@pytest.mark.parametrize(
    ("op0", "op1", "rejected"),
    [("add", "rsqrt", "add"), ("multiply", "power", "multiply"), ("rsqrt", "multiply", "multiply"),
     ("power", "add", "add")],
)  # fmt: skip
def test_the_gpsimd_engine_does_nothing_else_beside_them(world, nisa, op0, op1, rejected, engine):
    operands = (None if op0 == "rsqrt" else 2.0, 0.0 if op1 == "rsqrt" else 2.0)

    with pytest.raises(EngineError, match=f"the gpsimd engine does not do {rejected} here"):
        nisa.tensor_scalar(
            world.new((4, 8)), world.tile(np.ones((4, 8))), op0, operands[0], op1=op1,
            operand1=operands[1], engine=engine,
        )  # fmt: skip


def test_who_adds_and_takes_the_root_is_told_of_an_activation(world, nisa):
    with pytest.raises(EngineError, match=r"nisa\.activation\(op=nl\.rsqrt\) scales data"):
        nisa.tensor_scalar(
            world.new((4, 8)), world.tile(np.ones((4, 8))), "add", 1.0, op1="rsqrt", operand1=0.0
        )


@pytest.mark.parametrize("operand", [5, "tile"])
def test_a_unary_operation_rejects_an_operand(world, nisa, operand):
    given = world.tile(np.ones((4, 1))) if operand == "tile" else operand

    with pytest.raises(AttributeValueError, match="rsqrt takes one operand, operand0 is"):
        nisa.tensor_scalar(world.new((4, 8)), world.tile(np.ones((4, 8))), "rsqrt", given)


@pytest.mark.parametrize("dtype", INTS)
def test_bit_operations_with_numbers_and_tiles(world, nisa, rng, dtype):
    info = np.iinfo(dtype)
    bits = rng.integers(info.min, info.max, (4, 6), dtype, endpoint=True)
    dst, mask = world.new((4, 6), dtype), np.full((4, 1), 0x55, dtype)

    nisa.tensor_scalar(
        dst, world.tile(bits, dtype), "bitwise_xor", world.tile(mask, dtype), op1="right_shift",
        operand1=2,
    )  # fmt: skip

    unsigned = bits.view(f"u{bits.itemsize}") ^ 0x55
    np.testing.assert_array_equal(dst.array.view(unsigned.dtype), unsigned >> 2)


def test_invert_flips_every_bit(world, nisa):
    dst = world.new((1, 3), "int32")

    nisa.tensor_scalar(dst, world.tile([[0, -1, 5]], "int32"), "invert", None)

    assert dst.array.tolist() == [[-1, 0, -6]]


@pytest.mark.parametrize("operand", [1.5, "float tile"])
def test_bit_operations_reject_fractions(world, nisa, operand):
    t = world.tile(np.ones((4, 8)), "int32")
    given = world.tile(np.ones((4, 1))) if operand == "float tile" else operand

    with pytest.raises(DTypeError, match="bitwise_or works on raw integer bits"):
        nisa.tensor_scalar(world.new((4, 8), "int32"), t, "bitwise_or", given)


def test_arithmetic_and_bits_do_not_mix(world, nisa):
    t = world.tile(np.ones((4, 8)), "int32")

    with pytest.raises(AttributeValueError, match="add and bitwise_and cannot be combined"):
        nisa.tensor_scalar(world.new((4, 8), "int32"), t, "add", 1, op1="bitwise_and", operand1=1)


@pytest.mark.parametrize("target", ["trn1", "trn2"])
def test_the_scalar_engine_multiplies_and_adds_from_gen3_on(make_world, nisa, target):
    world = make_world(target)
    dst, data = world.new((1, 1)), world.tile([[3.0]])
    given = ("multiply", 2.0, False, "add", 1.0, False, Engine.scalar)

    if target == "trn1":
        with pytest.raises(EngineError, match="scalar engine does not do multiply then add"):
            nisa.tensor_scalar(dst, data, *given)
    else:
        nisa.tensor_scalar(dst, data, *given)
        assert dst.array.item() == 7


def test_an_operand_per_element_is_a_tensor_tensor(world, nisa):
    t = world.tile(np.ones((4, 8)))

    with pytest.raises(ShapeError, match=r"use nisa\.tensor_tensor"):
        nisa.tensor_scalar(world.new((4, 8)), t, "add", t)
