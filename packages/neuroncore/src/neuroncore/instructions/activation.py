"""activation: a function of scaled and biased data on ScalarE, optionally accumulating its sum.

data, dst (P, F…); scale: a number or float32 (P, 1); bias: None, a number (gen3) or (P, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from neuroncore.activations import Activation, activation_function
from neuroncore.alu import ALU_OPS, alu_op
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, ReduceCmd
from neuroncore.errors import AttributeValueError, DTypeError, EngineError, UnsupportedError
from neuroncore.instructions._accumulators import SCALAR, folding, giving, register_effects
from neuroncore.instructions._convert import as_engine, member, optional
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import (
    common_shape,
    like,
    per_partition,
    reader,
    rounds,
    writer,
)
from neuroncore.instructions._record import (
    Attr,
    Call,
    Example,
    In,
    Instruction,
    Limit,
    Out,
    operand_effects,
)
from neuroncore.instructions._rules import (
    name_of,
    one_per_partition,
    rule,
    same_free,
    same_partitions,
)
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.spec import Spec
from nki_dtypes import ALL, bfloat16, float16, float32, tfloat32

RULE = "NKI: activation"


def activation(c: Call) -> Callable[..., Any]:
    """dst = op(data · scale + bias); the registers may add up the results over the free axes."""
    compute = _compute(c)
    if c.reduce_cmd is ReduceCmd.idle and c.reduce_res is None:
        return compute
    fold, give = folding(c, SCALAR, c.data, ALU_OPS["add"]), giving(c.reduce_res)

    def reducing(dst: View, data: View, bias: Any, scale: Any, reduce_res: View | None) -> None:
        values = compute(dst, data, bias, scale, reduce_res)
        give(reduce_res, fold(dst.core, values, None))

    return reducing


def _compute(c: Call) -> Callable[..., np.ndarray]:
    """Writes dst and gives the float32 results before rounding."""
    function: Activation = c.op
    shape = common_shape(c.dst, c.data)
    read, prepare = reader(c.data, shape), _prepare(c, shape)
    straight = not rounds(c.dst) and shape == c.dst.shape and function.has_out
    write = writer(c.dst)
    reject = c.options.activation_range == "reject"

    def compute(dst: View, data: View, bias: Any, scale: Any, _: Any) -> np.ndarray:
        x = prepare(read(data), scale, bias)
        if reject:
            reject_invalid(c, function, x)
        if straight:
            return function.function(x, out=dst.array)
        values = function.function(x)
        write(dst, values)
        return values

    return compute


def _prepare(c: Call, shape: tuple[int, ...]) -> Callable[[np.ndarray, Any, Any], np.ndarray]:
    """data · scale + bias in float32; nothing for the defaults."""
    scale, bias = _per_lane(c.scale, shape), _per_lane(c.bias, shape)
    if c.bias is None and not isinstance(c.scale, Spec):
        return lambda x, s, _: x if s == 1 else x * scale(s)
    if c.bias is None:
        return lambda x, s, _: x * scale(s)

    def scaled_and_biased(x: np.ndarray, s: Any, b: Any) -> np.ndarray:
        scaled = x * scale(s)
        return np.add(scaled, bias(b), out=scaled)

    return scaled_and_biased


def table_input(c: Call, views: Mapping[str, Any]) -> np.ndarray:
    """The input of the function's table: data · scale + bias in float32."""
    shape = c.data.shape
    x = reader(c.data, shape)(views["data"])
    return _prepare(c, shape)(x, views["scale"], views["bias"])


def _per_lane(given: Spec | type | None, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    if isinstance(given, Spec):
        return reader(given, per_partition(shape))
    return np.float32


def reject_invalid(c: Call, function: Activation, x: np.ndarray) -> None:
    """Raise AttributeValueError for an input outside the function's documented range."""
    if function.is_valid(x):
        return
    low, high = function.valid
    seen = np.abs(x) if function.valid_of_magnitude else x
    worst = seen[(seen < low) | (seen > high) | np.isnan(seen)]
    raise AttributeValueError(
        f"{function.name} of {worst.flat[0]:g} is outside its valid range",
        expected=f"{'|x|' if function.valid_of_magnitude else 'x'} in [{low:g}, {high:g}]",
        instruction=c.record.name,
        hint="hardware gives garbage there; clamp the input first",
        rule="NKI: supported activation functions, valid input range",
    )


_FIRST_BIASES = frozenset({float32, float16, bfloat16})
_ANY_BUT_TF32 = frozenset(d for d in ALL if d is not tfloat32)
_X = np.array([[0.0, 1.0], [2.0, 4.0]])

OPERANDS = {
    "dst": Out("P F", ON_CHIP),
    "data": In("P F", ON_CHIP),
    "bias": In("P 1", ON_CHIP, number=True, optional=True, dtypes=_ANY_BUT_TF32),
    "scale": In("P 1", ON_CHIP, number=True, dtypes=frozenset({float32})),
    "reduce_res": Out("P 1", ON_CHIP, optional=True),
}

DOCUMENTED: Limit = rule(
    lambda c: not c.op.conventional or c.options.activation_formula == "conventional",
    AttributeValueError, "op", "the documents print no formula for {c.op.name}",
    expected="a function whose formula is documented",
    hint="Options.activation_formula='conventional' takes the literature's",
    section="NKI: supported activation functions", op="gelu",
    options=Options(activation_formula="reject"),
)  # fmt: skip

ENGINE = Attr(Engine.scalar, as_engine)
ENGINES = (Engine.scalar, Engine.gpsimd)


def _may_run_on(c: Call) -> bool:
    return c.engine is Engine.scalar or (c.target.generation >= 4 and c.version >= (0, 7))


def on_engine(**breaks: Any) -> list[Limit]:
    """GpSimdE computes functions on gen4, from 0.7 on, and has no accumulator registers."""
    on_gpsimd = {"engine": Engine.gpsimd, "target": "trn3", "version": (0, 7)}
    return [
        rule(
            _may_run_on, EngineError, "engine", "engine {it.name}",
            expected="scalar; gpsimd on gen4, from 0.7 on",
            got="{it.name} on {c.target.name} in NKI {c.version[0]}.{c.version[1]}",
            section="NKI 0.7: {c.record.name}, engine",
            engine=Engine.gpsimd, target="trn2", version=(0, 7),
        ),
        rule(
            lambda c: c.engine is not Engine.gpsimd
            or (c.reduce_cmd is ReduceCmd.idle and c.reduce_op is None and c.reduce_res is None),
            EngineError, "engine", "gpsimd accumulates nothing", expected="scalar",
            got="{it.name} with a reduction", section="NKI 0.7: {c.record.name}, engine",
            **on_gpsimd, **breaks,
        ),
    ]  # fmt: skip


LIMITS: list[Limit] = [
    same_partitions("dst", "data", data="float32[8, 2] sbuf"),
    same_free("dst", "data", data="float32[2, 9] sbuf"),
    one_per_partition(
        "data", "scale", "bias", "reduce_res", section=RULE, bias="float32[2, 2] sbuf"
    ),
    rule(
        lambda c: not isinstance(c.bias, type) or c.target.generation >= 3,
        AttributeValueError, "bias", "a number as bias needs gen3",
        expected="None or a (P, 1) tile", got="{it.__name__} on {c.target.name}",
        section=f"{RULE}, bias", bias=1.0, target="trn1",
    ),
    rule(
        lambda c: c.bias is None or c.op.name != "reciprocal" or c.target.generation >= 3,
        AttributeValueError, "bias", "reciprocal takes no bias on gen2", expected="None",
        got="a bias on {c.target.name}", section=f"{RULE}, bias",
        op="reciprocal", bias="float32[2, 1] sbuf", target="trn1",
    ),
    rule(
        lambda c: "bias" not in c.tiles or c.version > (0, 2) or c.bias.dtype in _FIRST_BIASES,
        DTypeError, "bias", "bias is {it.dtype}",
        expected=", ".join(sorted(map(str, _FIRST_BIASES))), hint="other dtypes came with NKI 0.3",
        section="NKI up to 0.2: {c.record.name}, bias", bias="int32[2, 1] sbuf", version=(0, 2),
    ),
    rule(
        lambda c: name_of(c, "reduce_op") in (None, "add"), AttributeValueError, "reduce_op",
        "reduce_op {it.name}", expected="nl.add", section=f"{RULE}, reduce_op",
        reduce_op="maximum",
    ),
    rule(
        lambda c: c.reduce_cmd is not ReduceCmd.load_reduce, UnsupportedError, "reduce_cmd",
        "reduce_cmd load_reduce", expected="idle, reset, reduce or reset_reduce",
        section=f"{RULE}, reduce_cmd", reduce_cmd=ReduceCmd.load_reduce,
    ),
    rule(
        lambda c: c.op.since <= c.version, AttributeValueError, "op",
        "{it.name} came with NKI {it.since[0]}.{it.since[1]}",
        expected="a function of the chosen version",
        got="{it.name} in NKI {c.version[0]}.{c.version[1]}",
        section="NKI: supported activation functions", op="gelu_apprx_sigmoid_dx", version=(0, 1),
    ),
    rule(
        lambda c: not c.op.takes_slope, AttributeValueError, "op",
        "{c.op.name} needs a slope, which this instruction has not",
        expected="a function of one argument",
        hint="nisa.activate2 takes it as relu_param (gen4)", section=f"{RULE}, op", op="prelu",
    ),
    DOCUMENTED,
]  # fmt: skip


def table_of(c: Call) -> str | None:
    """The table that ScalarE loads; GpSimdE has none."""
    return c.op.table if c.engine is Engine.scalar else None


ACTIVATION = Instruction(
    name="activation",
    engines=ENGINES,
    operands=OPERANDS,
    attrs={
        "op": Attr(convert=activation_function),
        "reduce_op": Attr(None, optional(alu_op)),
        "reduce_cmd": Attr(ReduceCmd.idle, member(ReduceCmd, "reduce_cmd")),
        "engine": ENGINE,
    },
    limits=[*LIMITS, *on_engine(reduce_op="add")],
    effects=lambda c: operand_effects(c) + register_effects(c, SCALAR),
    work=lambda c: one_pass(c, c.data.free, table_of(c)),
    run=activation,
    result=like("data"),
    mask=MaskBehaviour.elementwise,
    gathers=("dst", "data"),
    table_input=table_input,
    examples=[
        Example({"dst": "float32[2, 2] sbuf", "op": "square", "data": _X, "scale": 2.0},
                {"dst": 4 * _X * _X}),
        Example({"dst": "float32[2, 2] sbuf", "op": "relu", "data": _X, "bias": -1.0,
                 "scale": np.array([[1.0], [2.0]]), "reduce_op": "add",
                 "reduce_cmd": ReduceCmd.reset_reduce, "reduce_res": "float32[2, 1] sbuf"},
                {"dst": np.array([[0.0, 0.0], [3.0, 7.0]]),
                 "reduce_res": np.array([[0.0], [10.0]])},
                note="the registers start anew and hold the sum of the results"),
    ],
)  # fmt: skip
