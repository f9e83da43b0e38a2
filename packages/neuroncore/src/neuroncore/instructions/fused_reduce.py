"""tensor_scalar_reduce and activation_reduce: one pass that also reduces what it computes.

data, dst (P, F…); operand0, reduce_init: a number or (P, 1); reduce_res (P, 1). The reduction runs
over all free axes, on the float32 results before they are rounded into dst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from neuroncore.alu import alu_op
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, ReduceCmd
from neuroncore.errors import AttributeValueError, UnsupportedError
from neuroncore.instructions._accumulators import VECTOR, folding, giving, register_effects
from neuroncore.instructions._convert import flag, member
from neuroncore.instructions._cost import with_read_out
from neuroncore.instructions._numerics import (
    ONLY_FLOAT32,
    common_shape,
    lane_value,
    like,
    reader,
    scalar_stage,
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
    arithmetic,
    free_dims,
    initial_with_load,
    known_to_hardware,
    known_to_version,
    on_vector,
    one_of,
    one_per_partition,
    rule,
    same_free,
    same_partitions,
    ways,
)
from neuroncore.instructions.activation import ACTIVATION, LIMITS, activation
from neuroncore.memory import View

# -- tensor_scalar_reduce -------------------------------------------------------------------------


def tensor_scalar_reduce(c: Call) -> Callable[..., None]:
    """dst = op0(data, operand0), and VectorE's registers reduce the results over the free axes.

    reduce_res gets the registers, negated when asked; the registers themselves keep their sign.
    """
    shape = common_shape(c.dst, c.data)
    read, first, write = reader(c.data, shape), scalar_stage(c, shape), writer(c.dst)
    fold = folding(c, VECTOR, c.data, c.reduce_op)
    initial = lane_value(c.reduce_init, (c.data.partitions, 1))
    give = giving(c.reduce_res, c.reduce_res_negate)

    def reducing(
        dst: View, data: View, operand0: Any, reduce_res: View | None, reduce_init: Any
    ) -> None:
        start = initial(reduce_init)
        results = first(read(data), operand0, np.empty(shape, np.float32))
        write(dst, results)
        give(reduce_res, fold(dst.core, results, start))

    return reducing


def _result_given(what: str) -> Limit:
    return rule(
        lambda c: c.reduce_res is not None or c.version >= (0, 6), AttributeValueError,
        "reduce_res", "reduce_res is None", section="NKI 0.6: {c.record.name}, reduce_res",
        expected=f"a (P, 1) tile; None, which keeps the {what} in the registers, from 0.6 on",
        reduce_res=None, version=(0, 5),
    )  # fmt: skip


_RAMP = np.arange(32.0).reshape(4, 8)

TENSOR_SCALAR_REDUCE = Instruction(
    name="tensor_scalar_reduce",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "data": In("P F", ON_CHIP),
        "operand0": In("P 1", ON_CHIP, number=True, optional=True),
        "reduce_res": Out("P 1", ON_CHIP, optional=True),
        "reduce_init": In("P 1", ON_CHIP, number=True, optional=True, dtypes=ONLY_FLOAT32),
    },
    attrs={
        "op0": Attr(convert=alu_op),
        "reverse0": Attr(False, flag),
        "reduce_op": Attr(convert=alu_op),
        "reduce_cmd": Attr(ReduceCmd.reset_reduce, member(ReduceCmd, "reduce_cmd")),
        "reduce_res_negate": Attr(False, flag),
    },
    limits=[
        same_partitions("dst", "data", data="float32[8, 8] sbuf"),
        same_free("dst", "data", data="float32[4, 9] sbuf"),
        one_per_partition(
            "data", "operand0", "reduce_res", "reduce_init", reduce_res="float32[4, 2] sbuf"
        ),
        free_dims(3, "dst", "data", data="float32[4, 1, 1, 1, 8] sbuf"),
        arithmetic("op0", op0="bitwise_and"),
        on_vector("op0", op0="rsqrt", operand0=0),
        *ways(known_to_hardware("op0", op0="square", operand0=0), {"op0": "divide"}),
        known_to_version("op0", op0="square", operand0=0, target="trn3", version=(0, 3)),
        one_of("reduce_op", "add", "multiply", "maximum", "minimum", reduce_op="logical_and"),
        one_of("reduce_cmd", "reset_reduce", "reduce", "load_reduce", reduce_cmd=ReduceCmd.idle),
        rule(
            lambda c: c.op0.is_unary or c.operand0 is not None,
            AttributeValueError, "operand0", "{c.op0.name} needs operand0",
            expected="a number or a (P, 1) tile", got="None", section="operands", operand0=None,
        ),
        rule(
            lambda c: not c.reverse0,
            UnsupportedError, "reverse0", "reverse0 is not supported here", expected="False",
            got="True", hint="use tensor_scalar, then tensor_reduce", section="reverse0",
            reverse0=True,
        ),
        rule(
            lambda c: c.reduce_op.name != "subtract" or c.version not in {(0, 2), (0, 3)},
            UnsupportedError, "reduce_op", "reduce_op subtract is not modelled",
            expected="add, multiply, maximum or minimum", section="reduce_op",
            hint="0.2 and 0.3 name it, and no document says what is subtracted from what",
            reduce_op="subtract", version=(0, 2),
        ),
        *ways(
            initial_with_load("reduce_init", reduce_cmd=ReduceCmd.load_reduce), {"reduce_init": 1.0}
        ),
        _result_given("result"),
    ],
    effects=lambda c: operand_effects(c) + register_effects(c, VECTOR),
    work=lambda c: with_read_out(c, c.data.free),
    run=tensor_scalar_reduce,
    result=like("data"),
    mask=MaskBehaviour.rectangular,
    gathers=("dst", "data"),
    examples=[
        Example({"dst": "float32[4, 8] sbuf", "data": _RAMP, "op0": "multiply", "operand0": 2.0,
                 "reduce_op": "maximum", "reduce_res": "float32[4, 1] sbuf"},
                {"dst": 2 * _RAMP, "reduce_res": 2 * _RAMP.max(1, keepdims=True)}),
        Example({"dst": "float32[4, 8] sbuf", "data": _RAMP, "op0": "add", "operand0": 1.0,
                 "reduce_op": "add", "reduce_res": "float32[4, 1] sbuf", "reduce_init": 100.0,
                 "reduce_cmd": ReduceCmd.load_reduce, "reduce_res_negate": True},
                {"dst": _RAMP + 1, "reduce_res": -100 - (_RAMP + 1).sum(1, keepdims=True)},
                note="starts from reduce_init; the result is given out negated"),
    ],
)  # fmt: skip


# -- activation_reduce ----------------------------------------------------------------------------


def activation_reduce(c: Call) -> Callable[..., Any]:
    """dst = op(data · scale + bias); reduce_res = Σ results: activation with reset_reduce."""
    return activation(c)


_X = np.array([[0.0, 1.0], [2.0, 4.0]])

ACTIVATION_REDUCE = replace(
    ACTIVATION,
    name="activation_reduce",
    engines=(Engine.scalar,),
    source="NKI reference: nki.isa.activation_reduce",
    attrs={
        "op": ACTIVATION.attrs["op"],
        "reduce_op": Attr(convert=ACTIVATION.attrs["reduce_op"].convert),
        "reduce_cmd": Attr(ReduceCmd.reset_reduce, member(ReduceCmd, "reduce_cmd")),
    },
    limits=[
        *LIMITS,
        rule(
            lambda c: c.reduce_op is not None,
            AttributeValueError, "reduce_op", "reduce_op is None", expected="nl.add", got="None",
            section="reduce_op", reduce_op=None,
        ),
        _result_given("sum"),
    ],
    work=lambda c: with_read_out(c, c.data.free, c.op.table),
    run=activation_reduce,
    mask=MaskBehaviour.rectangular,
    gathers=("dst", "data"),
    examples=[
        Example({"dst": "float32[2, 2] sbuf", "op": "square", "data": _X, "scale": 2.0,
                 "reduce_op": "add", "reduce_res": "float32[2, 1] sbuf"},
                {"dst": 4 * _X * _X, "reduce_res": np.array([[4.0], [80.0]])}),
    ],
)  # fmt: skip
