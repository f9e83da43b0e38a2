"""exponential against float64.

Tolerance: one subtraction and one library function, 4 ulps of the result; F more for their sum.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import ReduceCmd
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    ShapeError,
    SignatureError,
    UnsupportedError,
)

U = 2.0**-24


@pytest.fixture
def world(make_world):
    return make_world("trn3")


@pytest.mark.parametrize("dtype", ["float32", "tfloat32", "bfloat16", "float16", "float8_e5m2"])
@pytest.mark.parametrize("max_value", [0.0, 1.5, "tile"])
def test_every_element_less_the_maximum(world, nisa, rng, values, rounded, dtype, max_value):
    src = world.tile(rng.uniform(-3, 3, (5, 2, 4)))
    most = world.tile(rng.uniform(0, 3, (5, 1))) if max_value == "tile" else max_value
    dst = world.new((5, 2, 4), dtype)

    nisa.exponential(dst, src, most)

    shift = values(most)[:, :, None] if max_value == "tile" else max_value
    exact = np.exp(values(src) - shift)
    low, high = (rounded(exact * (1 + s * 8 * U), dtype) for s in (-1, 1))
    assert ((low <= values(dst)) & (values(dst) <= high)).all()


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float8_e4m3", "bfloat16", "uint32"])
def test_every_dtype_of_src_is_read_as_float32(world, nisa, values, dtype):
    src, dst = world.tile([[0.0, 1.0, 2.0, 3.0]], dtype), world.new((1, 4))

    nisa.exponential(dst, src)

    np.testing.assert_allclose(values(dst), np.exp(values(src)), rtol=4 * U)


def test_sums_start_anew_go_on_or_start_from_a_given_value(world, nisa, rng, values):
    src, out = world.tile(rng.uniform(-1, 1, (3, 40))), world.new((3, 1))
    once = np.exp(values(src)).sum(1)

    def total(command, **more):
        nisa.exponential(world.new((3, 40), "bfloat16"), src, 0.0, out, command, **more)
        return values(out)[:, 0]

    def close(got, expected):
        np.testing.assert_allclose(got, expected, rtol=90 * U)

    close(total(ReduceCmd.reset_reduce), once)  # not of the rounded results
    close(total(ReduceCmd.reduce), 2 * once)
    close(total(ReduceCmd.load_reduce, reduce_init=100.0), 100 + once)
    start = world.tile([[1.0], [2.0], [3.0]])
    close(total(ReduceCmd.load_reduce, reduce_init=start), once + np.arange(1, 4))


def test_idle_leaves_the_registers_undefined(world, nisa, values):
    src, out = world.tile([[0.0]]), world.new((1, 1))

    nisa.exponential(world.new((1, 1)), src, reduce_cmd=ReduceCmd.reset_reduce)
    nisa.exponential(world.new((1, 1)), src, reduce_res=out)

    assert np.isnan(values(out)).all()


def test_the_registers_are_those_of_the_other_vector_instructions(world, nisa, values):
    src, out = world.tile([[0.0, 0.0]]), world.new((1, 1))

    nisa.exponential(world.new((1, 2)), src, reduce_cmd=ReduceCmd.reset_reduce)
    nisa.tensor_scalar_reduce(
        world.new((1, 2)), src, "add", 3.0, "add", out, reduce_cmd=ReduceCmd.reduce
    )

    assert values(out).item() == 8


def test_a_start_without_load_reduce_is_rejected(world, nisa):
    src, dst = world.tile([[0.0]]), world.new((1, 1))

    nisa.exponential(dst, src, reduce_init=0.0)
    with pytest.raises(AttributeValueError, match="reduce_init 1 goes with load_reduce only"):
        nisa.exponential(dst, src, reduce_init=1.0)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"dst": ((1, 4), "uint32")}, DTypeError),
        ({"src": ((1, 4), "tfloat32")}, DTypeError),
        ({"src": ((1, 4), "float8_e4m3fn")}, DTypeError),
        ({"reduce_res": ((1, 1), "int32")}, DTypeError),
        ({"max_value": ((1, 1), "bfloat16")}, DTypeError),
        ({"src": ((1, 1, 1, 1, 4), "float32")}, ShapeError),
    ],
)
def test_what_stands_just_outside_is_rejected(world, nisa, changes, error):
    given = {"dst": ((1, 4), "float32"), "src": ((1, 1, 1, 4), "float32")}
    nisa.exponential(**{n: world.new(*tile) for n, tile in given.items()})

    with pytest.raises(error):
        nisa.exponential(**{n: world.new(*tile) for n, tile in (given | changes).items()})


def test_it_came_with_gen4(make_world, nisa):
    old = make_world("trn2")

    with pytest.raises(UnsupportedError, match="trn2 has no exponential"):
        nisa.exponential(old.new((1, 4)), old.tile(np.zeros((1, 4))))


def test_a_name_came_with_03(world, nisa_02):
    with pytest.raises(SignatureError, match="'name'"):
        nisa_02.exponential(world.new((1, 1)), world.tile([[0.0]]), name="e")
