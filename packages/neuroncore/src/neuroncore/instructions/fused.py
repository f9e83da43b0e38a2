"""scalar_tensor_tensor: tensor_scalar and tensor_tensor in one pass through VectorE.

data, operand1, dst (P, F…); operand0: a number or (P, 1). Float32 inside, rounded once into dst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.alu import alu_op
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour
from neuroncore.instructions._convert import flag
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import (
    common_shape,
    like,
    reader,
    rounds,
    scalar_stage,
    stage,
    writer,
)
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Out
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
    """dst = op1(op0(data, operand0), operand1); `reverse0`/`reverse1` swap the arguments."""
    shape = common_shape(c.dst, c.data, c.operand1)
    read, other = reader(c.data, shape), reader(c.operand1, shape)
    first, second = scalar_stage(c, shape), stage(c.op1, c.reverse1)
    if not rounds(c.dst) and shape == c.dst.shape:

        def into(dst: View, data: View, operand0: Any, operand1: View) -> None:
            between = first(read(data), operand0, np.empty(shape, np.float32))
            second(between, other(operand1), dst.array)

        return into
    write = writer(c.dst)

    def rounded(dst: View, data: View, operand0: Any, operand1: View) -> None:
        between = first(read(data), operand0, np.empty(shape, np.float32))
        write(dst, second(between, other(operand1), between))

    return rounded


def _tensor_work(c: Call) -> list[MicroOp]:
    """N for bf16 inputs, subtract then multiply, N even; otherwise 2 N [NKI 0.1 API documents]."""
    fast = c.data.dtype is bfloat16 and c.operand1.dtype is bfloat16 and c.data.free % 2 == 0
    fast = fast and (c.op0.name, c.op1.name) == ("subtract", "multiply")
    return one_pass(c, c.data.free * (1 if fast else 2))


_RAMP = np.arange(32.0).reshape(4, 8)

SCALAR_TENSOR_TENSOR = Instruction(
    name="scalar_tensor_tensor",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "data": In("P F", ON_CHIP),
        "operand0": In("P 1", ON_CHIP, number=True),
        "operand1": In("P F", ON_CHIP),
    },
    attrs={
        "op0": Attr(convert=alu_op),
        "op1": Attr(convert=alu_op),
        "reverse0": Attr(False, flag),
        "reverse1": Attr(False, flag),
    },
    limits=[
        same_partitions("dst", "data", "operand1", data="float32[8, 8] sbuf"),
        same_free("dst", "data", "operand1", operand1="float32[4, 9] sbuf"),
        one_per_partition("data", "operand0", operand0="float32[4, 8] sbuf"),
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
    ],
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
    ],
)  # fmt: skip
