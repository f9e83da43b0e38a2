"""activate2: two scalar operations, a function and a reduction on ScalarE (gen4).

data, dst (P, F…); imm0, imm1, relu_param: a number or (P, 1); reduce_res (P, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from neuroncore.activations import activation_function
from neuroncore.alu import ALU_OPS, BYPASS, alu_op
from neuroncore.enums import ON_CHIP, ReduceCmd
from neuroncore.errors import AttributeValueError, DTypeError, Violation
from neuroncore.instructions._accumulators import SCALAR, folding, giving, register_effects
from neuroncore.instructions._convert import flag, member, op_or_bypass, optional
from neuroncore.instructions._cost import one_pass, with_read_out
from neuroncore.instructions._numerics import common_shape, lane_value, like, reader, stage, writer
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
    from_generation,
    one_of,
    one_per_partition,
    rule,
    same_free,
    same_partitions,
)
from neuroncore.instructions.activation import (
    DOCUMENTED,
    ENGINE,
    ENGINES,
    on_engine,
    reject_invalid,
    table_of,
)
from neuroncore.memory import View
from neuroncore.work import MicroOp

RULE = "NKI: activate2"
_REDUCTIONS = ("add", "maximum", "minimum", "abs_max", "abs_min")
_PAIRS = {
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
    ("subtract", "bypass"), ("bypass", "bypass"),
}  # fmt: skip

Scaled = Callable[[np.ndarray, Any, Any], np.ndarray]


def activate2(c: Call) -> Callable[..., None]:
    """dst = op(op1(op0(data, imm0), imm1)); the registers may reduce the results over free axes.

    reverse0 and reverse1 swap the arguments of their operation; relu_param is prelu's slope below
    zero. The results are reduced before they are rounded into dst.
    """
    shape = common_shape(c.dst, c.data)
    read, write, scaled = reader(c.data, shape), writer(c.dst), _scaled(c, shape)
    slope_of = lane_value(c.relu_param, shape)
    fold = folding(c, SCALAR, c.data, c.reduce_op or ALU_OPS["add"])
    give = giving(c.reduce_res)
    reject = c.options.activation_range == "reject"

    def run(
        dst: View, data: View, imm0: Any, imm1: Any, relu_param: Any, reduce_res: View | None
    ) -> None:
        x, slope = scaled(read(data), imm0, imm1), slope_of(relu_param)
        if reject:
            reject_invalid(c, c.op, x)
        if c.op.takes_slope:
            values = c.op.function(x, slope)
        else:
            _zero_slope(c, slope)
            values = c.op.function(x)
        write(dst, values)
        give(reduce_res, fold(dst.core, values, None))

    return run


def _scaled(c: Call, shape: tuple[int, ...]) -> Scaled:
    """op1(op0(x, imm0), imm1) in float32, in new memory."""
    first, second = stage(c.op0, c.reverse0), stage(c.op1, c.reverse1)
    value0, value1 = lane_value(c.imm0, shape), lane_value(c.imm1, shape)

    def scaled(x: np.ndarray, imm0: Any, imm1: Any) -> np.ndarray:
        between = first(x, value0(imm0), np.empty(x.shape, np.float32))
        return second(between, value1(imm1), between)

    return scaled


def _zero_slope(c: Call, slope: Any) -> None:
    if np.any(slope != 0):
        raise AttributeValueError(
            f"{c.op.name} takes no relu_param", expected="0.0, or op=nl.prelu",
            got=f"{np.max(np.abs(slope)):g}", operand="relu_param", instruction="activate2",
            rule=f"{RULE}, relu_param",
        )  # fmt: skip


def _table_input(c: Call, views: Mapping[str, Any]) -> np.ndarray:
    shape = c.data.shape
    return _scaled(c, shape)(reader(c.data, shape)(views["data"]), views["imm0"], views["imm1"])


def _stages(c: Call) -> Iterable[Violation]:
    if (c.op0.name, c.op1.name) not in _PAIRS:
        yield Violation(
            AttributeValueError, f"op0 {c.op0.name} with op1 {c.op1.name}", "op1",
            expected=", ".join(f"({a}, {b})" for a, b in sorted(_PAIRS)),
            got=f"({c.op0.name}, {c.op1.name})", rule=f"{RULE}, op0 and op1",
        )  # fmt: skip
    for name, op in (("reverse0", c.op0), ("reverse1", c.op1)):
        if getattr(c, name) and op is BYPASS:
            yield Violation(
                AttributeValueError, f"{name} without an operation", name, expected="False",
                got=f"True with op{name[-1]}=nl.bypass", rule=f"{RULE}, {name}",
            )  # fmt: skip


def _one_dtype(c: Call) -> bool:
    return len({c.tiles[n].dtype for n in ("imm0", "imm1") if n in c.tiles}) < 2


def _work(c: Call) -> list[MicroOp]:
    """As activation, of which it is the wider form: no figure of its own is published."""
    if c.reduce_res is None:
        return one_pass(c, c.data.free, table_of(c))
    return with_read_out(c, c.data.free, c.op.table)


_X = np.array([[0.0, 1.0], [-2.0, 4.0]])

ACTIVATE2 = Instruction(
    name="activate2",
    engines=ENGINES,
    operands={
        "dst": Out("P F", ON_CHIP),
        "data": In("P F", ON_CHIP),
        "imm0": In("P 1", ON_CHIP, number=True, optional=True),
        "imm1": In("P 1", ON_CHIP, number=True, optional=True),
        "relu_param": In("P 1", ON_CHIP, number=True),
        "reduce_res": Out("P 1", ON_CHIP, optional=True),
    },
    attrs={
        "op": Attr(convert=activation_function),
        "op0": Attr(convert=op_or_bypass),
        "op1": Attr(convert=op_or_bypass),
        "reverse0": Attr(False, flag),
        "reverse1": Attr(False, flag),
        "reduce_op": Attr(None, optional(alu_op)),
        "reduce_cmd": Attr(ReduceCmd.idle, member(ReduceCmd, "reduce_cmd")),
        "engine": ENGINE,
    },
    limits=[
        same_partitions("dst", "data", data="float32[8, 2] sbuf"),
        same_free("dst", "data", data="float32[2, 9] sbuf"),
        one_per_partition(
            "data", "imm0", "imm1", "relu_param", "reduce_res", imm0="float32[2, 2] sbuf"
        ),
        Limit(_stages, {"op0": "add", "op1": "add"}),
        Limit(_stages, {"op1": "bypass", "reverse1": True}),
        rule(
            lambda c: all(
                op is BYPASS or imm is not None for op, imm in ((c.op0, c.imm0), (c.op1, c.imm1))
            ),
            AttributeValueError,
            lambda c: "imm0" if c.imm0 is None and c.op0 is not BYPASS else "imm1",
            "an operation has no immediate", expected="a number or a (P, 1) tile", got="None",
            section="immediates", imm1=None,
        ),
        rule(
            _one_dtype,
            DTypeError, "imm1", "imm0 is {c.imm0.dtype}, imm1 {c.imm1.dtype}",
            expected="{c.imm0.dtype}", section="dtypes", imm0="float32[2, 1] sbuf",
            imm1="bfloat16[2, 1] sbuf",
        ),
        DOCUMENTED,
        one_of(
            "reduce_cmd", "idle", "reset", "reduce", "reset_reduce",
            reduce_cmd=ReduceCmd.load_reduce, reduce_op="add",
        ),
        rule(
            lambda c: c.reduce_op is None or c.reduce_op.name in _REDUCTIONS,
            AttributeValueError, "reduce_op", "reduce_op {c.reduce_op.name}",
            expected=" or ".join(_REDUCTIONS), section="reduce_op", reduce_op="multiply",
        ),
        rule(
            lambda c: c.reduce_op is not None or c.reduce_cmd is ReduceCmd.idle,
            AttributeValueError, "reduce_op", "reduce_cmd {c.reduce_cmd.name} without reduce_op",
            expected=" or ".join(_REDUCTIONS), got="None", section="reduce_op",
            reduce_cmd=ReduceCmd.reset,
        ),
        *on_engine(reduce_op="add", reduce_cmd=ReduceCmd.reset_reduce),
        from_generation(4, "dst", "trn2", hint="activation scales, biases and adds up before gen4"),
    ],
    effects=lambda c: operand_effects(c) + register_effects(c, SCALAR),
    work=_work,
    run=activate2,
    result=like("data"),
    gathers=("dst", "data"),
    table_input=_table_input,
    examples=[
        Example({"dst": "float32[2, 2] sbuf", "op": "square", "data": _X, "imm0": 2.0,
                 "imm1": 1.0, "op0": "multiply", "op1": "add", "relu_param": 0.0,
                 "target": "trn3"}, {"dst": (2 * _X + 1) ** 2}),
        Example({"dst": "float32[2, 2] sbuf", "op": "prelu", "data": _X, "imm0": 0.0,
                 "imm1": 0.0, "op0": "bypass", "op1": "bypass", "relu_param": 0.25,
                 "reduce_op": "abs_max", "reduce_cmd": ReduceCmd.reset_reduce,
                 "reduce_res": "float32[2, 1] sbuf", "target": "trn3"},
                {"dst": np.where(_X < 0, _X / 4, _X), "reduce_res": np.array([[1.0], [4.0]])},
                note="no scalar operations; the registers keep the largest magnitude"),
    ],
)  # fmt: skip
