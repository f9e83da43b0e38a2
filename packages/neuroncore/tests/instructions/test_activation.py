"""activation against float64 formulas written here.

Tolerances: float32 evaluation of a formula with a handful of steps, each within half an ulp of its
own intermediate value; so |error| <= k · 2^-24 · max(1, |x|, |y|), with k = 16 for all of them, and
where one library function does the work k = 4 relative to |y|.
"""

from __future__ import annotations

from math import erf, pi, sqrt

import numpy as np
import pytest

from neuroncore.activations import ACTIVATIONS
from neuroncore.enums import Engine, ReduceCmd
from neuroncore.errors import AttributeValueError, DTypeError, EngineError, ShapeError
from neuroncore.instructions import INSTRUCTIONS, check
from neuroncore.isa.examples import example_call
from neuroncore.options import Options
from nki_dtypes import ALL, bfloat16, float16, float32, tfloat32

U = 2.0**-24
ERF = np.vectorize(erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return x * 0.5 * (1 + ERF(x / sqrt(2)))


def slope(function):
    """The derivative by central differences: five points, error far below 2^-24."""
    h = 1e-3
    return lambda x: (
        (function(x - 2 * h) - 8 * function(x - h) + 8 * function(x + h) - function(x + 2 * h))
        / (12 * h)
    )


SINGLE = {  # one library function: 4 ulps of the result
    "copy": lambda x: x,
    "identity": lambda x: x,
    "square": lambda x: x * x,
    "abs": np.abs,
    "sign": np.sign,
    "relu": lambda x: np.where(x > 0, x, 0),
    "exp": np.exp,
    "tanh": np.tanh,
    "erf": ERF,
    "arctan": np.arctan,
    "sin": np.sin,
}
COMPOSED = {
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "silu_dx": slope(lambda x: x * sigmoid(x)),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))),
    "erf_dx": slope(ERF),
    "gelu": gelu,
    "gelu_dx": slope(gelu),
    "gelu_apprx_tanh": lambda x: 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))),
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": slope(lambda x: x * sigmoid(1.702 * x)),
}
POSITIVE = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
MEANING = SINGLE | COMPOSED | POSITIVE
LOW = ("bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "tfloat32", "int8")


def inputs(rng, name):
    low, high = (0.01, 50) if name in POSITIVE else (-1.5, 1.5) if name == "arctan" else (-3, 3)
    return rng.uniform(low, high, (16, 64))


def test_the_table_holds_every_function_that_is_tested_here_and_no_other():
    of_one_argument = {name for name, a in ACTIVATIONS.items() if not a.takes_slope}

    assert of_one_argument == set(MEANING)


@pytest.mark.parametrize("name", MEANING)
def test_a_function_has_its_documented_meaning(world, nisa, rng, values, name):
    data, dst = world.tile(inputs(rng, name)), world.new((16, 64))

    nisa.activation(dst, name, data)

    exact = MEANING[name](values(data))
    scale = np.abs(exact)
    if name in COMPOSED:
        scale = np.maximum(np.maximum(1, np.abs(values(data))), scale)
    factor = 16 if name in COMPOSED else 8
    assert np.all(np.abs(values(dst) - exact) <= factor * U * scale)


@pytest.mark.parametrize("name", ["exp", "gelu", "square", "relu"])
@pytest.mark.parametrize("dtype", LOW)
def test_the_result_is_rounded_once_into_a_narrow_destination(
    world, nisa, rng, values, rounded, name, dtype
):
    data = world.tile(inputs(rng, name), "bfloat16")
    wide, dst = world.new((16, 64)), world.new((16, 64), dtype)

    nisa.activation(wide, name, data)
    nisa.activation(dst, name, data)

    np.testing.assert_array_equal(values(dst), rounded(values(wide), dtype))


@pytest.mark.parametrize("name", ["sigmoid", "silu", "softplus", "tanh", "gelu", "mish"])
def test_no_function_overflows_on_large_inputs(world, nisa, name):
    dst = world.new((1, 2))

    nisa.activation(dst, name, world.tile([[-1e4, 1e4]]))

    assert np.all(np.isfinite(dst.array))


# -- scale and bias -------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 0.5, "tile"])
@pytest.mark.parametrize("bias", [None, 0.25, "float32", "bfloat16"])
def test_data_is_scaled_then_biased(world, nisa, rng, values, scale, bias):
    data, dst = world.tile(rng.integers(-8, 8, (4, 6))), world.new((4, 6))
    s = world.tile([[1.0], [2.0], [-1.0], [0.5]]) if scale == "tile" else scale
    b = world.tile([[1.0], [2.0], [3.0], [4.0]], bias) if isinstance(bias, str) else bias

    nisa.activation(dst, "identity", data, b, s)

    by, plus = (values(v) if hasattr(v, "spec") else np.float64(v or 0) for v in (s, b))
    np.testing.assert_array_equal(values(dst), values(data) * by + plus)


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (ShapeError, {"bias": ((4, 2), "float32")}),
        (ShapeError, {"scale": ((3, 1), "float32")}),
        (DTypeError, {"scale": ((4, 1), "bfloat16")}),
        (DTypeError, {"bias": ((4, 1), "tfloat32")}),
    ],
    ids=["wide bias", "short scale", "bf16 scale", "tf32 bias"],
)
def test_scale_and_bias_are_one_value_per_partition(world, nisa, error, wrong):
    ((name, (shape, dtype)),) = wrong.items()

    with pytest.raises(error, match=name):
        nisa.activation(
            world.new((4, 8)), "exp", world.tile(np.ones((4, 8))),
            **{name: world.tile(np.ones(shape), dtype)},
        )  # fmt: skip


def test_gen2_takes_no_number_as_bias(make_world, nisa):
    world = make_world("trn1")

    with pytest.raises(AttributeValueError, match="a number as bias needs gen3"):
        nisa.activation(world.new((4, 8)), "exp", world.tile(np.ones((4, 8))), 1.0)


@pytest.mark.parametrize("name", ["activation", "activation_reduce"])
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_bias_of_up_to_02_is_a_wide_float(name, dtype):
    """Facts: every dtype but tfloat32; 0.2 and older float32, float16, bfloat16."""
    record = INSTRUCTIONS[name]

    def legal(version):
        bias = {"bias": f"{dtype}[2, 1] sbuf", "version": version}
        return not check(example_call(record, record.examples[0], **bias).call)

    first = dtype in {float32, float16, bfloat16}
    later = dtype is not tfloat32 and not dtype.is_packed
    assert [legal((0, n)) for n in range(1, 7)] == [first] * 2 + [later] * 4


def test_activation_is_the_scalar_engines(world, nisa):
    t = world.tile(np.full((4, 8), 3.0), space="psum")

    nisa.activation(t, "square", t)

    np.testing.assert_array_equal(t.array, 9)
    with pytest.raises(EngineError):
        nisa.tensor_tensor(t, world.tile(np.ones((4, 8))), t, "add", Engine.scalar)


# -- ranges ---------------------------------------------------------------------------------------


def test_sin_goes_on_as_a_cubic_outside_its_range(world, nisa):
    dst = world.new((1, 3))

    nisa.activation(dst, "sin", world.tile([[9.0, -9.0, pi / 2]]))

    assert dst.array[0].tolist() == pytest.approx([27.65, -27.65, 1], abs=5e-3)


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [("sin", 3.0, 3.5), ("log", 1.0, -1.0), ("reciprocal", -1.0, 2.0**-43), ("arctan", 1.0, 2.0)],
)
def test_inputs_outside_the_valid_range_can_be_rejected(make_world, nisa, name, inside, outside):
    world = make_world(options=Options(activation_range="reject"))
    dst = world.new((1, 2))

    nisa.activation(dst, name, world.tile([[inside, inside]]))
    with pytest.raises(AttributeValueError, match=f"{name} of .* is outside its valid range"):
        nisa.activation(dst, name, world.tile([[inside, outside]]))


GELUS = ["gelu", "gelu_dx", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx"]


@pytest.mark.parametrize("name", GELUS)
def test_formulas_that_no_document_prints_can_be_rejected(make_world, nisa, name):
    taking, rejecting = (make_world(options=Options(activation_formula=rule))
                        for rule in ("conventional", "reject"))  # fmt: skip
    dst = taking.new((1, 1))

    nisa.activation(dst, name, taking.tile([[50.0]]))
    with pytest.raises(AttributeValueError, match=rf"print no formula for {name}\n") as raised:
        nisa.activation(rejecting.new((1, 1)), name, rejecting.tile([[50.0]]))

    assert dst.array.item() == (1 if name.endswith("_dx") else 50)
    assert "activation_formula" in str(raised.value)


def test_documented_formulas_are_computed_where_others_are_rejected(make_world, nisa):
    world = make_world(options=Options(activation_formula="reject"))
    dst = world.new((1, 1))

    nisa.activation(dst, "silu", world.tile([[50.0]]))

    assert dst.array.item() == 50


# -- accumulators ---------------------------------------------------------------------------------


def reduce_into(world, nisa, command, x):
    out = world.new((2, 1))
    nisa.activation(
        world.new((2, 2)), "copy", world.tile(x), reduce_op="add", reduce_res=out,
        reduce_cmd=command,
    )  # fmt: skip
    return out.array[:, 0].tolist()


def test_registers_reset_add_up_and_persist_between_calls(world, nisa):
    x = [[1.0, 2.0], [3.0, 4.0]]

    assert reduce_into(world, nisa, ReduceCmd.reset_reduce, x) == [3, 7]
    assert reduce_into(world, nisa, ReduceCmd.reduce, x) == [6, 14]
    assert reduce_into(world, nisa, ReduceCmd.idle, x) == [6, 14]
    assert reduce_into(world, nisa, ReduceCmd.reset, x) == [0, 0]
    assert reduce_into(world, nisa, ReduceCmd.reduce, x) == [3, 7]


def test_each_core_has_its_own_registers(make_world, nisa):
    first, second = make_world(), make_world()

    reduce_into(first, nisa, ReduceCmd.reset_reduce, [[1.0, 2.0], [3.0, 4.0]])

    assert reduce_into(second, nisa, ReduceCmd.idle, [[1.0, 2.0], [3.0, 4.0]]) == [0, 0]


def test_the_sum_is_of_results_before_they_are_rounded(world, nisa):
    out = world.new((1, 1))

    nisa.activation(
        world.new((1, 2), "int8"), "copy", world.tile([[0.25, 0.25]]), reduce_op="add",
        reduce_res=out, reduce_cmd=ReduceCmd.reset_reduce,
    )  # fmt: skip

    assert out.array.item() == 0.5


def test_reduce_res_may_lie_in_dst(world, nisa):
    dst = world.new((2, 3))

    nisa.activation(
        dst, "square", world.tile([[1.0, 2, 3], [1, 1, 1]]), reduce_op="add",
        reduce_res=dst[:, 0:1], reduce_cmd=ReduceCmd.reset_reduce,
    )  # fmt: skip

    assert dst.array.tolist() == [[14, 4, 9], [3, 1, 1]]


def test_only_sums_are_accumulated(world, nisa):
    with pytest.raises(AttributeValueError, match="reduce_op maximum"):
        nisa.activation(world.new((4, 8)), "exp", world.tile(np.ones((4, 8))), reduce_op="maximum")
