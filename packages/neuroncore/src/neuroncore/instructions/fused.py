"""scalar_tensor_tensor: tensor_scalar and tensor_tensor in one pass through VectorE.

data, operand1, dst (P, F…); operand0: a number or (P, 1); reduce_res (P, 1). Float32 inside,
rounded once into dst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.alu import AluOp, alu_op
from neuroncore.effects import Effect, Touch, register
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, ReduceCmd
from neuroncore.errors import AttributeValueError, Violation
from neuroncore.instructions._accumulators import (
    VECTOR,
    folding,
    giving,
    register_effects,
    unspecified,
)
from neuroncore.instructions._convert import flag, member
from neuroncore.instructions._cost import one_pass, with_read_out
from neuroncore.instructions._numerics import (
    common_shape,
    like,
    reader,
    rounds,
    scalar_stage,
    stage,
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
    known_to_hardware,
    known_to_version,
    not_both_in_psum,
    on_vector,
    one_per_partition,
    same_free,
    same_partitions,
    ways,
)
from neuroncore.memory import View
from neuroncore.work import MicroOp
from nki_dtypes import bfloat16


def scalar_tensor_tensor(c: Call) -> Callable[..., None]:
    """dst = op1(op0(data, operand0), operand1); `reverse0`/`reverse1` swap the arguments.

    From 0.7 on VectorE's registers may reduce the results over the free axes, before they are
    rounded. Without reduce_op no document says what the registers hold then: NaN.
    """
    if c.version >= (0, 7):
        return _reducing(c)
    shape = common_shape(c.dst, c.data, c.operand1)
    read, other = reader(c.data, shape), reader(c.operand1, shape)
    first, second = scalar_stage(c, shape), stage(c.op1, c.reverse1)
    if not rounds(c.dst) and shape == c.dst.shape:

        def into(dst: View, data: View, operand0: Any, operand1: View, _: Any) -> None:
            between = first(read(data), operand0, np.empty(shape, np.float32))
            second(between, other(operand1), dst.array)

        return into
    write = writer(c.dst)

    def rounded(dst: View, data: View, operand0: Any, operand1: View, _: Any) -> None:
        between = first(read(data), operand0, np.empty(shape, np.float32))
        write(dst, second(between, other(operand1), between))

    return rounded


def _reducing(c: Call) -> Callable[..., None]:
    shape = common_shape(c.dst, c.data, c.operand1)
    read, other, write = reader(c.data, shape), reader(c.operand1, shape), writer(c.dst)
    first, second = scalar_stage(c, shape), stage(c.op1, c.reverse1)
    fold = unspecified if c.reduce_op is None else folding(c, VECTOR, c.data, c.reduce_op)
    give = giving(c.reduce_res)

    def run(dst: View, data: View, operand0: Any, operand1: View, reduce_res: View | None) -> None:
        between = first(read(data), operand0, np.empty(shape, np.float32))
        results = second(between, other(operand1), between)
        write(dst, results)
        give(reduce_res, fold(dst.core, results, None))

    return run


def _effects(c: Call) -> list[Effect]:
    if c.version < (0, 7):
        return operand_effects(c)
    if c.reduce_op is None:
        return operand_effects(c) + register(VECTOR, Touch.clobber)
    return operand_effects(c) + register_effects(c, VECTOR)


def _reduction(c: Call) -> Iterable[Violation]:
    given = c.reduce_op is not None or c.reduce_res is not None
    if c.version < (0, 7) and given:
        yield Violation(
            AttributeValueError, "a reduction before 0.7", "reduce_op", expected="none",
            got=f"NKI {c.version[0]}.{c.version[1]}", rule=RULE,
        )  # fmt: skip
    elif given:
        yield from _operation(c)


def _operation(c: Call) -> Iterable[Violation]:
    commands = (ReduceCmd.reset_reduce, ReduceCmd.reduce)
    if c.reduce_op is None:
        yield Violation(
            AttributeValueError, "reduce_res without reduce_op", "reduce_op",
            expected="the operation: no document shows its default", got="nothing", rule=RULE,
        )  # fmt: skip
        return
    if c.reduce_op.name not in _REDUCTIONS:
        yield Violation(
            AttributeValueError, f"reduce_op {c.reduce_op.name}", "reduce_op",
            expected=" or ".join(_REDUCTIONS), got=c.reduce_op.name, rule=RULE,
        )  # fmt: skip
    if c.reduce_cmd not in commands:
        yield Violation(
            AttributeValueError, f"reduce_cmd {c.reduce_cmd.name}", "reduce_cmd",
            expected=" or ".join(command.name for command in commands), got=c.reduce_cmd.name,
            rule=RULE,
        )  # fmt: skip


def _reduce_op(value: Any) -> AluOp | None:
    """None for the default, which the documents of 0.7 print as an ellipsis."""
    return None if value is None or value is ... else alu_op(value)


def _tensor_work(c: Call) -> list[MicroOp]:
    """N for bf16 inputs, subtract then multiply, N even; otherwise 2 N [NKI 0.1 API documents]."""
    fast = c.data.dtype is bfloat16 and c.operand1.dtype is bfloat16 and c.data.free % 2 == 0
    fast = fast and (c.op0.name, c.op1.name) == ("subtract", "multiply")
    cycles = c.data.free * (1 if fast else 2)
    return one_pass(c, cycles) if c.reduce_res is None else with_read_out(c, cycles)


RULE = "NKI 0.7: scalar_tensor_tensor, reduction"
_REDUCTIONS = ("add", "multiply", "maximum", "minimum")
_RAMP = np.arange(32.0).reshape(4, 8)

SCALAR_TENSOR_TENSOR = Instruction(
    name="scalar_tensor_tensor",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "data": In("P F", ON_CHIP),
        "operand0": In("P 1", ON_CHIP, number=True),
        "operand1": In("P F", ON_CHIP),
        "reduce_res": Out("P 1", ON_CHIP, optional=True),
    },
    attrs={
        "op0": Attr(convert=alu_op),
        "op1": Attr(convert=alu_op),
        "reverse0": Attr(False, flag),
        "reverse1": Attr(False, flag),
        "reduce_cmd": Attr(ReduceCmd.reset_reduce, member(ReduceCmd, "reduce_cmd")),
        "reduce_op": Attr(None, _reduce_op),
    },
    limits=[
        same_partitions("dst", "data", "operand1", data="float32[8, 8] sbuf"),
        same_free("dst", "data", "operand1", operand1="float32[4, 9] sbuf"),
        one_per_partition("data", "operand0", "reduce_res", operand0="float32[4, 8] sbuf"),
        not_both_in_psum(
            "data", "operand1", data="float32[4, 8] psum", operand1="float32[4, 8] psum"
        ),
        arithmetic("op0", op0="bitwise_and"),
        arithmetic("op1", binary=True, op1="bitwise_or"),
        on_vector("op0", op0="power"),
        on_vector("op1", op1="power"),
        *ways(known_to_hardware("op0", op0="square"), {"op0": "mod"}),
        *ways(known_to_hardware("op1", op1="divide"), {"op1": "abs_max"}),
        known_to_version("op0", op0="abs_max", target="trn3", version=(0, 3)),
        known_to_version("op1", op1="abs_max", target="trn3", version=(0, 3)),
        *ways(
            Limit(_reduction, {"reduce_op": "add", "version": (0, 6)}),
            {"reduce_res": "float32[4, 1] sbuf", "version": (0, 7)},
            {"reduce_op": "abs_max", "version": (0, 7)},
            {"reduce_op": "add", "reduce_cmd": ReduceCmd.load_reduce, "version": (0, 7)},
        ),
    ],
    effects=_effects,
    work=_tensor_work,
    run=scalar_tensor_tensor,
    result=like("data"),
    mask=MaskBehaviour.elementwise,
    examples=[
        Example({"dst": "float32[4, 8] sbuf", "data": _RAMP, "op0": "multiply", "operand0": 2.0,
                 "op1": "subtract", "operand1": _RAMP}, {"dst": _RAMP}),
        Example({"dst": "bfloat16[4, 8] sbuf", "data": _RAMP, "op0": "subtract",
                 "operand0": np.arange(4.0).reshape(4, 1), "reverse0": True, "op1": "subtract",
                 "operand1": np.ones((4, 8)), "reverse1": True},
                {"dst": 1 - (np.arange(4.0).reshape(4, 1) - _RAMP)},
                note="both reversed: operand1 - (operand0 - data)"),
        Example({"dst": "float32[4, 8] sbuf", "data": _RAMP, "op0": "multiply", "operand0": 2.0,
                 "op1": "subtract", "operand1": _RAMP, "reduce_op": "maximum",
                 "reduce_res": "float32[4, 1] sbuf", "version": (0, 7)},
                {"dst": _RAMP, "reduce_res": _RAMP.max(1, keepdims=True)},
                note="from 0.7 on the registers reduce the results"),
    ],
)  # fmt: skip
