"""scalar_tensor_tensor, tensor_scalar_reduce and activation_reduce against float64."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import ReduceCmd
from neuroncore.errors import AttributeValueError, SignatureError, UnsupportedError
from neuroncore.options import Options

DTYPES = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "int8", "int32", "uint16")
OPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "maximum": np.fmax,
    "less": lambda x, y: (x < y) * 1.0,
    "logical_xor": lambda x, y: ((x != 0) ^ (y != 0)) * 1.0,
}


def some(rng, shape, dtype="float32"):
    drawn = rng.normal(0, 5, shape).round(1)
    return np.abs(drawn) if dtype.startswith("uint") else drawn


# -- scalar_tensor_tensor -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op0", OPS)
@pytest.mark.parametrize("op1", OPS)
def test_two_operations_round_once_into_dst(world, nisa, rng, values, rounded, dtype, op0, op1):
    data, other = (world.tile(some(rng, (4, 6), dtype), dtype) for _ in range(2))
    scalar, dst = world.tile(some(rng, (4, 1))), world.new((4, 6), dtype)

    nisa.scalar_tensor_tensor(dst, data, op0, scalar, op1, other)

    between = rounded(OPS[op0](values(data), values(scalar)), "float32")
    expected = rounded(rounded(OPS[op1](between, values(other)), "float32"), dtype)
    np.testing.assert_array_equal(values(dst), expected)


@pytest.mark.parametrize("reverse0", [False, True])
@pytest.mark.parametrize("reverse1", [False, True])
def test_reversing_swaps_the_arguments_of_one_operation(world, nisa, reverse0, reverse1):
    dst = world.new((1, 2))

    nisa.scalar_tensor_tensor(
        dst, world.tile([[1.0, 2.0]]), "subtract", 10.0, "subtract", world.tile([[100.0, 200.0]]),
        reverse0, reverse1,
    )  # fmt: skip

    between = np.array([[9.0, 8.0]]) * (1 if reverse0 else -1)
    expected = (np.array([[100.0, 200.0]]) - between) * (1 if reverse1 else -1)
    assert dst.array.tolist() == expected.tolist()


def test_free_dimensions_may_be_split_differently(world, nisa):
    data, other = world.tile(np.arange(24.0).reshape(2, 3, 4)), world.tile(np.ones((2, 12)))
    dst = world.new((2, 4, 3))

    nisa.scalar_tensor_tensor(dst, data, "multiply", 2.0, "add", other)

    assert dst.array.ravel().tolist() == (2 * np.arange(24.0) + 1).tolist()


def test_dst_may_be_the_second_tile_and_hold_the_scalar(world, nisa):
    t = world.tile([[1.0, 2.0, 3.0]])

    nisa.scalar_tensor_tensor(t, t, "multiply", t[:, 2:3], "add", t)

    assert t.array.tolist() == [[4, 8, 12]]


def test_a_unary_operation_takes_zero_and_nothing_else(world, nisa):
    data, dst = world.tile([[-3.0, 2.0]]), world.new((1, 2))

    nisa.scalar_tensor_tensor(dst, data, "abs", 0, "add", data)

    assert dst.array.tolist() == [[0, 4]]
    with pytest.raises(AttributeValueError, match="abs takes one operand"):
        nisa.scalar_tensor_tensor(dst, data, "abs", 1.0, "add", data)


TOTALS = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}


@pytest.mark.parametrize("name", TOTALS)
def test_0_7_reduces_the_results_before_they_are_rounded(world, nisa_07, values, name):
    data, other = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[0.25, 0.5, 1], [2, 1, 0.5]])
    dst, sums = world.new((2, 3), "int8"), world.new((2, 1))

    nisa_07.scalar_tensor_tensor(
        dst, world.tile(data), "add", 1.0, "multiply", world.tile(other), reduce_op=name,
        reduce_res=sums,
    )  # fmt: skip

    exact = (data + 1) * other
    np.testing.assert_array_equal(values(dst), np.rint(exact))
    np.testing.assert_array_equal(values(sums), TOTALS[name](exact, axis=1, keepdims=True))


def test_0_7_goes_on_from_the_registers_with_reduce(world, nisa_07, values):
    one, sums = world.tile([[1.0, 2.0]]), world.new((1, 1))

    for command in (ReduceCmd.reset_reduce, ReduceCmd.reduce):
        nisa_07.scalar_tensor_tensor(
            world.new((1, 2)), one, "add", 0.0, "multiply", one, reduce_cmd=command,
            reduce_op="add", reduce_res=sums,
        )  # fmt: skip

    assert values(sums).item() == 10


def test_without_reduce_op_the_registers_of_0_7_are_undefined(world, nisa_07, values):
    one, sums = world.tile([[1.0, 2.0]]), world.new((1, 1))
    nisa_07.scalar_tensor_tensor(world.new((1, 2)), one, "add", 0.0, "multiply", one)

    nisa_07.scalar_tensor_tensor(
        world.new((1, 2)), one, "add", 0.0, "multiply", one, reduce_cmd=ReduceCmd.reduce,
        reduce_op="add", reduce_res=sums,
    )  # fmt: skip

    assert np.isnan(values(sums)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reduce_res": True}, "reduce_res without reduce_op"),
        ({"reduce_res": True, "reduce_op": "abs_max"}, "reduce_op abs_max"),
        ({"reduce_op": "add", "reduce_cmd": ReduceCmd.idle}, "reduce_cmd idle"),
        ({"reduce_op": "add", "reduce_cmd": ReduceCmd.load_reduce}, "reduce_cmd load_reduce"),
    ],
)
def test_a_reduction_of_0_7_needs_its_operation(make_world, nisa_07, given, message):
    world = make_world("trn3")
    one = world.tile([[1.0, 2.0]])
    given = {n: world.new((1, 1)) if v is True else v for n, v in given.items()}

    with pytest.raises(AttributeValueError, match=message):
        nisa_07.scalar_tensor_tensor(world.new((1, 2)), one, "add", 0.0, "multiply", one, **given)


def test_an_instruction_name_by_place_is_rejected_in_0_7(world, nisa, nisa_07):
    one = world.tile([[1.0, 2.0]])
    call = (world.new((1, 2)), one, "add", 0.0, "multiply", one, False, False, "named")

    nisa.scalar_tensor_tensor(*call)
    with pytest.raises(AttributeValueError, match="reduce_cmd='named'"):
        nisa_07.scalar_tensor_tensor(*call)


# -- tensor_scalar_reduce -------------------------------------------------------------------------

REDUCTIONS = {
    "add": (np.sum, 0.0),
    "multiply": (np.prod, 1.0),
    "maximum": (np.max, -np.inf),
    "minimum": (np.min, np.inf),
}


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_all_free_axes_are_reduced_before_rounding(world, nisa, values, rounded, op, dtype):
    exact = np.array([[0.5, 1.5, 2.0], [4.0, 0.25, 8.0]])  # every product is exact in float32
    dst, result = world.new((2, 3), dtype), world.new((2, 1))

    nisa.tensor_scalar_reduce(dst, world.tile(exact), "multiply", 0.5, op, result)

    np.testing.assert_array_equal(values(dst), rounded(exact / 2, dtype))
    np.testing.assert_array_equal(values(result)[:, 0], REDUCTIONS[op][0](exact / 2, axis=1))


def test_registers_continue_start_anew_or_from_a_given_value(world, nisa):
    def total(command, **more):
        out = world.new((2, 1))
        nisa.tensor_scalar_reduce(
            world.new((2, 2)), world.tile([[1.0, 2.0], [3.0, 4.0]]), "add", 0.0, "add", out,
            reduce_cmd=command, **more,
        )  # fmt: skip
        return out.array[:, 0].tolist()

    assert total(ReduceCmd.reset_reduce) == [3, 7]
    assert total(ReduceCmd.reduce) == [6, 14]
    assert total(ReduceCmd.reduce, reduce_res_negate=True) == [-9, -21]
    assert total(ReduceCmd.reduce) == [12, 28]
    assert total(ReduceCmd.load_reduce, reduce_init=100.0) == [103, 107]
    tile = world.tile([[10.0], [20.0]])
    assert total(ReduceCmd.load_reduce, reduce_init=tile) == [13, 27]


def test_registers_that_nothing_has_reset_are_undefined(world, nisa, values):
    out = world.new((1, 1))

    nisa.tensor_scalar_reduce(
        world.new((1, 2)), world.tile([[1.0, 2.0]]), "add", 0.0, "add", out,
        reduce_cmd=ReduceCmd.reduce,
    )  # fmt: skip

    assert np.isnan(values(out)).all()


def test_a_call_without_a_result_leaves_it_in_the_registers(world, nisa, values):
    data, out = world.tile([[1.0, 5.0]]), world.new((1, 1))

    nisa.tensor_scalar_reduce(world.new((1, 2)), data, "add", 0.0, "maximum")
    nisa.tensor_scalar_reduce(
        world.new((1, 2)), data, "multiply", 0.5, "maximum", out, reduce_cmd=ReduceCmd.reduce
    )

    assert values(out).item() == 5


@pytest.mark.parametrize(("lanes", "expected"), [("row", 6.0), ("partition", 5.0)])
def test_rows_above_partition_0_use_the_registers_that_an_option_says(
    make_world, nisa, values, lanes, expected
):
    world = make_world(options=Options(accumulator_lanes=lanes))
    tall, out = world.tile(np.arange(64.0).reshape(64, 1) % 32 + 1), world.new((32, 1))

    def reduce(data, command):
        nisa.tensor_scalar_reduce(
            world.new((32, 1)), data, "multiply", 1.0, "add", out, reduce_cmd=command
        )

    reduce(tall[0:32], ReduceCmd.reset_reduce)
    if lanes == "row":  # the second half adds to the same registers
        reduce(tall[32:64], ReduceCmd.reduce)
        assert values(out)[2].item() == expected
    else:  # its registers were only reset
        nisa.tensor_scalar_reduce(
            world.new((32, 1)), tall[32:64], "add", 2.0, "add", out, reduce_cmd=ReduceCmd.reduce
        )
        assert values(out)[2].item() == expected


@pytest.mark.parametrize("version", ["0.2", "0.3"])
def test_a_subtracting_reduction_is_rejected_because_its_order_is_not_written(version):
    from neuroncore.instructions import INSTRUCTIONS, check
    from neuroncore.isa.examples import example_call

    record = INSTRUCTIONS["tensor_scalar_reduce"]
    number = tuple(map(int, version.split(".")))
    use = example_call(record, record.examples[0], reduce_op="subtract", version=number)

    assert UnsupportedError in {v.error for v in check(use.call)}


def test_up_to_03_there_is_no_command(nisa_02, world):
    data = world.tile([[1.0, 2.0]])

    with pytest.raises(SignatureError, match="no parameter 'reduce_cmd'"):
        nisa_02.tensor_scalar_reduce(
            data, data, "add", 0.0, "add", data[:, 0:1], reduce_cmd=ReduceCmd.reduce
        )


# -- activation_reduce ----------------------------------------------------------------------------


def test_activation_reduce_sums_results_before_they_are_rounded(world, nisa, values, rounded):
    x = np.array([[0.25, 0.25, 1.0], [2.0, -1.0, 0.5]])
    dst, total = world.new((2, 3), "int8"), world.new((2, 1))

    nisa.activation_reduce(dst, "copy", world.tile(x), "add", total, bias=None, scale=2.0)

    np.testing.assert_array_equal(values(dst), rounded(2 * x, "int8"))
    assert values(total)[:, 0].tolist() == [3, 3]


def test_activation_and_activation_reduce_share_registers(world, nisa, values):
    x, total = world.tile([[1.0, 2.0]]), world.new((1, 1))

    nisa.activation_reduce(world.new((1, 2)), "copy", x, "add", None)
    nisa.activation(
        world.new((1, 2)), "square", x, reduce_op="add", reduce_res=total,
        reduce_cmd=ReduceCmd.reduce,
    )  # fmt: skip

    assert values(total).item() == 3 + 5


def test_scalar_and_vector_registers_are_separate(world, nisa, values):
    x, total = world.tile([[1.0, 2.0]]), world.new((1, 1))

    nisa.activation_reduce(world.new((1, 2)), "copy", x, "add", total)
    nisa.tensor_scalar_reduce(world.new((1, 2)), x, "multiply", 5.0, "add", total)
    nisa.activation(
        world.new((1, 2)), "copy", x, reduce_op="add", reduce_res=total,
        reduce_cmd=ReduceCmd.idle,
    )  # fmt: skip

    assert values(total).item() == 3
