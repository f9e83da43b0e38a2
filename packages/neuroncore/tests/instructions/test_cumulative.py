"""tensor_scalar_cumulative against a loop that rounds float64 results at every step."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import ReduceCmd
from neuroncore.errors import DTypeError

OPS = {
    "add": (lambda x, y: x + y, 0.0),
    "subtract": (lambda x, y: x - y, 0.0),
    "multiply": (lambda x, y: x * y, 1.0),
    "maximum": (np.maximum, -np.inf),
    "minimum": (np.minimum, np.inf),
}


def accumulated(rounded, new, op, start):
    states = []
    for column in new.T:
        start = rounded(OPS[op][0](column, start), "float32")
        states.append(start)
    return np.stack(states, axis=1)


@pytest.mark.parametrize("op1", OPS)
@pytest.mark.parametrize("op0", ["add", "multiply", "subtract"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3", "int8", "uint16"])
def test_the_new_value_meets_the_register_from_its_identity_on(
    world, nisa, rng, values, rounded, op0, op1, dtype
):
    src, imm0 = world.tile(rng.integers(0, 9, (3, 8)), dtype), world.tile(rng.normal(1, 1, (3, 1)))
    dst = world.new((3, 8), dtype)

    nisa.tensor_scalar_cumulative(dst, src, op0, op1, imm0)

    new = rounded(OPS[op0][0](values(src), values(imm0)), "float32")
    exact = accumulated(rounded, new, op1, np.full(3, OPS[op1][1]))
    np.testing.assert_array_equal(values(dst), rounded(exact, dtype))


def test_chunks_continue_where_the_registers_are(world, nisa, values):
    whole, dst = world.tile(np.arange(1.0, 9.0).reshape(1, 8)), world.new((1, 8))

    nisa.tensor_scalar_cumulative(dst[:, 0:4], whole[:, 0:4], "multiply", "add", 1.0)
    nisa.tensor_scalar_cumulative(
        dst[:, 4:8], whole[:, 4:8], "multiply", "add", 1.0, reduce_cmd=ReduceCmd.reduce
    )

    assert values(dst)[0].tolist() == [1, 3, 6, 10, 15, 21, 28, 36]


@pytest.mark.parametrize("form", ["number", "tile"])
def test_a_given_value_starts_the_registers(world, nisa, values, form):
    src, dst = world.tile([[1.0, 2.0]]), world.new((1, 2))
    start = 10.0 if form == "number" else world.tile([[10.0]])

    nisa.tensor_scalar_cumulative(dst, src, "add", "subtract", 0.0, start, ReduceCmd.load_reduce)

    assert values(dst)[0].tolist() == [-9, 11]


def test_the_registers_are_those_of_the_other_vector_reductions(world, nisa, values):
    x, out = world.tile([[1.0, 2.0, 4.0]]), world.new((1, 1))

    nisa.tensor_scalar_cumulative(world.new((1, 3)), x, "multiply", "add", 1.0)
    nisa.tensor_scalar_reduce(
        world.new((1, 3)), x, "multiply", 1.0, "add", out, reduce_cmd=ReduceCmd.reduce
    )

    assert values(out).item() == 14


@pytest.mark.parametrize("dtype", ["int32", "uint32", "tfloat32"])
def test_wide_integers_are_rejected(world, nisa, dtype):
    with pytest.raises(DTypeError, match=f"src is {dtype}"):
        nisa.tensor_scalar_cumulative(
            world.new((1, 2)), world.tile([[1, 2]], dtype), "add", "add", 0.0
        )
