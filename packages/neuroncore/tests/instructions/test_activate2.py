"""activate2 against float64."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from neuroncore.enums import ReduceCmd
from neuroncore.errors import AttributeValueError, UnsupportedError
from neuroncore.options import Options

U = 2.0**-24
OPS = {"multiply": np.multiply, "add": np.add, "subtract": np.subtract}
PAIRS = [
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
    ("subtract", "bypass"), ("bypass", "bypass"),
]  # fmt: skip


@pytest.fixture
def world(make_world):
    return make_world("trn3")


def apply(op, x, imm, reverse):
    if op == "bypass":
        return x
    return OPS[op](imm, x) if reverse else OPS[op](x, imm)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("kinds", [*product(("number", "tile"), repeat=2)], ids="-".join)
@pytest.mark.parametrize("reverses", [*product((False, True), repeat=2)])
def test_two_operations_come_before_the_function(
    world, nisa, rng, values, rounded, pair, kinds, reverses
):
    exact = rng.integers(-8, 8, (4, 2, 6)) / 4  # all results are exact in float32
    column = rng.integers(-4, 4, (4, 1)) / 2
    imms = [world.tile(column) if kind == "tile" else 1.5 for kind in kinds]
    op0, op1 = pair
    reverse0, reverse1 = reverses[0] and op0 != "bypass", reverses[1] and op1 != "bypass"
    dst = world.new((4, 2, 6), "bfloat16")

    nisa.activate2(dst, "prelu", world.tile(exact), *imms, op0, op1,
                   reverse0=reverse0, reverse1=reverse1, relu_param=0.5)  # fmt: skip

    numbers = [column[:, :, None] if kind == "tile" else 1.5 for kind in kinds]
    between = apply(op0, exact, numbers[0], reverse0)
    x = apply(op1, between, numbers[1], reverse1)
    np.testing.assert_array_equal(values(dst), rounded(np.where(x < 0, x / 2, x), "bfloat16"))


@pytest.mark.parametrize("slope", [0.0, 0.25, -2.0, "tile"])
def test_prelu_multiplies_what_is_below_zero(world, nisa, rng, values, slope):
    exact = rng.integers(-8, 8, (3, 8)) / 4
    column = np.array([[0.5], [-1.0], [4.0]])
    dst = world.new((3, 8))

    nisa.activate2(
        dst, "prelu", world.tile(exact), 0.0, 0.0, "bypass", "bypass",
        world.tile(column) if slope == "tile" else slope,
    )  # fmt: skip

    factor = column if slope == "tile" else slope
    np.testing.assert_array_equal(values(dst), np.where(exact < 0, factor * exact, exact))


REDUCTIONS = {
    "add": lambda x: x.sum(1),
    "maximum": lambda x: x.max(1),
    "minimum": lambda x: x.min(1),
    "abs_max": lambda x: x[range(len(x)), np.abs(x).argmax(1)],
    "abs_min": lambda x: x[range(len(x)), np.abs(x).argmin(1)],
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_registers_reduce_the_results_of_one_call_and_of_several(world, nisa, rng, values, op):
    parts = rng.permutation(np.arange(1, 61)).reshape(2, 5, 6) * rng.choice([-1, 1], (2, 5, 6)) / 8
    out = world.new((5, 1))

    for part, command in zip(parts, (ReduceCmd.reset_reduce, ReduceCmd.reduce), strict=True):
        nisa.activate2(
            world.new((5, 6)), "copy", world.tile(part), 2.0, 0.0, "multiply", "bypass",
            reduce_op=op, reduce_res=out, reduce_cmd=command,
        )  # fmt: skip

    both = np.concatenate(parts, axis=1) * 2
    np.testing.assert_array_equal(values(out)[:, 0], REDUCTIONS[op](both))


@pytest.mark.parametrize(("op", "expected"), [("abs_max", -2.0), ("abs_min", 1.0)])
def test_of_equal_magnitudes_the_last_counts(world, nisa, values, op, expected):
    out = world.new((1, 1))

    nisa.activate2(
        world.new((1, 4)), "copy", world.tile([[2.0, -1, -2, 1]]), 0, 0, "bypass", "bypass",
        reduce_op=op, reduce_res=out, reduce_cmd=ReduceCmd.reset_reduce,
    )  # fmt: skip

    assert values(out).item() == expected


def test_the_registers_are_those_of_activation_and_idle_keeps_them(world, nisa, values):
    x, out = world.tile([[1.0, 2.0]]), world.new((1, 1))
    plain = ("copy", x, 0, 0, "bypass", "bypass")

    nisa.activation(world.new((1, 2)), "copy", x, reduce_op="add",
                    reduce_cmd=ReduceCmd.reset_reduce)  # fmt: skip
    nisa.activate2(world.new((1, 2)), *plain)
    nisa.activate2(world.new((1, 2)), *plain, reduce_op="add", reduce_cmd=ReduceCmd.reduce)
    nisa.activate2(world.new((1, 2)), *plain, reduce_res=out)

    assert values(out).item() == 6


def test_another_function_takes_no_slope(world, nisa):
    x, dst = world.tile([[-1.0]]), world.new((1, 1))

    nisa.activate2(dst, "relu", x, 0, 0, "bypass", "bypass", 0.0)
    with pytest.raises(AttributeValueError, match="relu takes no relu_param"):
        nisa.activate2(dst, "relu", x, 0, 0, "bypass", "bypass", 0.1)


def test_activation_has_no_slope_to_give_prelu(world, nisa):
    with pytest.raises(AttributeValueError, match="prelu needs a slope") as raised:
        nisa.activation(world.new((1, 1)), "prelu", world.tile([[1.0]]))
    assert "nisa.activate2 takes it as relu_param" in str(raised.value)


@pytest.mark.parametrize("pair", sorted({*product((*OPS, "bypass"), repeat=2)} - {*PAIRS}))
def test_other_pairs_of_operations_are_rejected(world, nisa, pair):
    with pytest.raises(AttributeValueError, match=f"op0 {pair[0]} with op1 {pair[1]}"):
        nisa.activate2(world.new((1, 1)), "copy", world.tile([[1.0]]), 1.0, 1.0, *pair)


@pytest.mark.parametrize("value", [2.0**-65, -1.0])
def test_a_range_is_of_what_reaches_the_function(make_world, nisa, value):
    world = make_world("trn3", Options(activation_range="reject"))
    x = world.tile([[1.0]])

    nisa.activate2(world.new((1, 1)), "log", x, 2.0**-64, 0, "multiply", "bypass")
    with pytest.raises(AttributeValueError, match=r"log of .* is outside its valid range"):
        nisa.activate2(world.new((1, 1)), "log", x, value, 0, "multiply", "bypass")


def test_it_came_with_gen4(make_world, nisa):
    old = make_world("trn2")

    with pytest.raises(UnsupportedError, match="trn2 has no activate2"):
        nisa.activate2(old.new((1, 1)), "copy", old.tile([[0.0]]), 0, 0, "bypass", "bypass")
