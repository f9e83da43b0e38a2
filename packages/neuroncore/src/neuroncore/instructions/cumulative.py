"""tensor_scalar_cumulative: a running reduction along the free elements.

src, dst (P, F…), the free dimensions flattened in row-major order; imm0, imm1: a float32 number or
(P, 1). The state is float32; results are rounded once, into dst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.alu import AluOp, alu_op
from neuroncore.effects import Effect, Touch, reads, register, writes
from neuroncore.enums import ON_CHIP, Engine, ReduceCmd
from neuroncore.instructions._accumulators import VECTOR, lanes, registers
from neuroncore.instructions._convert import member
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import (
    FLOATS,
    ONLY_FLOAT32,
    columns,
    lane_value,
    like,
    reader,
    stage,
    writer,
)
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Out
from neuroncore.instructions._rules import (
    arithmetic,
    initial_with_load,
    known_to_hardware,
    known_to_version,
    on_vector,
    one_of,
    one_per_partition,
    same_free,
    same_partitions,
    ways,
)
from neuroncore.memory import View
from neuroncore.work import MicroOp, constant
from nki_dtypes import int8, int16, tfloat32, uint8, uint16

_NARROW = (FLOATS - {tfloat32}) | {int8, int16, uint8, uint16}
_COMMUTES = {"add", "multiply", "maximum", "minimum"}


def tensor_scalar_cumulative(c: Call) -> Callable[..., None]:
    """reg = op1(op0(src[i], imm0), reg); dst[i] = reg. The last reg stays in VectorE's registers.

    reg starts at op1's identity, at the registers (reduce) or at imm1 (load_reduce).
    """
    shape = (c.dst.partitions, c.dst.free)
    read, write, used = reader(c.src, shape), writer(c.dst), lanes(c, c.src)
    scalar, run = stage(c.op0), _running(c.op1)
    value, initial = lane_value(c.imm0, shape), lane_value(c.imm1, shape)
    identity = np.float32(c.op1.identity)
    resets, loads = (c.reduce_cmd is k for k in (ReduceCmd.reset_reduce, ReduceCmd.load_reduce))

    def accumulate(dst: View, src: View, imm0: Any, imm1: Any) -> None:
        held = registers(dst.core, VECTOR)
        if resets:
            held[...] = identity
        elif loads:
            held[used] = np.reshape(initial(imm1), -1)
        new = scalar(read(src), value(imm0), np.empty(shape, np.float32))
        results = run(new, held[used])
        held[used] = results[:, -1]
        write(dst, results)

    return accumulate


def _running(op: AluOp) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """All states (P, F) of reg = op(new[:, i], reg) from values `new` (P, F) and a start (P,).

    NumPy's accumulate takes the same steps in the same order, with the arguments the other way.
    """
    function: Any = op.function

    def commuting(new: np.ndarray, start: np.ndarray) -> np.ndarray:
        function(new[:, 0], start, out=new[:, 0])
        return function.accumulate(new, axis=1)

    def ordered(new: np.ndarray, start: np.ndarray) -> np.ndarray:
        steps, state = columns(new), start
        for step in steps:
            state = function(step, state, out=step)
        return steps.T

    return commuting if op.name in _COMMUTES else ordered


def _effects(c: Call) -> list[Effect]:
    continues = c.reduce_cmd is ReduceCmd.reduce  # every result depends on what was held
    before = register(VECTOR, Touch.read) if continues else []
    numbers = [n for n in ("imm0", "imm1") if n in c.tiles]
    return reads("src", *numbers) + writes("dst") + before + register(VECTOR, Touch.write)


def _work(c: Call) -> list[MicroOp]:
    """max(MIN_II, N) + MIN_II, as tensor_scalar_reduce [NKI 0.1 API documents]."""
    least = constant("MIN_II")
    return one_pass(c, max(c.src.free, least) + least)


TENSOR_SCALAR_CUMULATIVE = Instruction(
    name="tensor_scalar_cumulative",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP, dtypes=_NARROW),
        "src": In("P F", ON_CHIP, dtypes=_NARROW),
        "imm0": In("P 1", ON_CHIP, number=True, dtypes=ONLY_FLOAT32),
        "imm1": In("P 1", ON_CHIP, number=True, optional=True, dtypes=ONLY_FLOAT32),
    },
    attrs={
        "op0": Attr(convert=alu_op),
        "op1": Attr(convert=alu_op),
        "reduce_cmd": Attr(ReduceCmd.reset_reduce, member(ReduceCmd, "reduce_cmd")),
    },
    limits=[
        same_partitions("dst", "src", src="float32[8, 4] sbuf"),
        same_free("dst", "src", src="float32[2, 5] sbuf"),
        one_per_partition("src", "imm0", "imm1", imm0="float32[2, 2] sbuf"),
        arithmetic("op0", binary=True, op0="bitwise_xor"),
        on_vector("op0", op0="power"),
        *ways(known_to_hardware("op0", op0="divide"), {"op0": "abs_max"}),
        known_to_version("op0", op0="abs_max", target="trn3", version=(0, 3)),
        one_of("op1", "add", "subtract", "multiply", "maximum", "minimum", op1="logical_or"),
        one_of("reduce_cmd", "reset_reduce", "reduce", "load_reduce", reduce_cmd=ReduceCmd.reset),
        *ways(
            initial_with_load("imm1", imm1=1.0), {"reduce_cmd": ReduceCmd.load_reduce}
        ),
    ],
    effects=_effects,
    work=_work,
    run=tensor_scalar_cumulative,
    result=like("src"),
    gathers=("dst", "src"),
    examples=[
        Example({"dst": "float32[2, 4] sbuf", "src": np.arange(8.0).reshape(2, 4),
                 "op0": "multiply", "imm0": 2.0, "op1": "add"},
                {"dst": 2 * np.arange(8.0).reshape(2, 4).cumsum(1)}),
        Example({"dst": "float32[1, 4] sbuf", "src": np.array([[1.0, 2.0, 3.0, 4.0]]),
                 "op0": "add", "imm0": 0.0, "op1": "subtract", "imm1": 10.0,
                 "reduce_cmd": ReduceCmd.load_reduce},
                {"dst": np.array([[-9.0, 11.0, -8.0, 12.0]])},
                note="the new value minus the register: 1 - 10, 2 - (-9), …"),
    ],
)  # fmt: skip
