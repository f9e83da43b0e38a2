"""exponential: exp(src - max_value) on VectorE, optionally accumulating its sum (gen4).

src, dst (P, F…); max_value, reduce_init: a number or float32 (P, 1); reduce_res (P, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS
from neuroncore.enums import ON_CHIP, Engine, ReduceCmd
from neuroncore.errors import AttributeValueError, ShapeError
from neuroncore.instructions._accumulators import VECTOR, folding, giving, register_effects
from neuroncore.instructions._convert import member
from neuroncore.instructions._cost import one_pass, with_read_out
from neuroncore.instructions._numerics import (
    FLOATS,
    ONLY_FLOAT32,
    common_shape,
    lane_value,
    like,
    reader,
    writer,
)
from neuroncore.instructions._record import (
    Attr,
    Call,
    Example,
    In,
    Instruction,
    Out,
    operand_effects,
)
from neuroncore.instructions._rules import (
    each,
    from_generation,
    one_of,
    one_per_partition,
    same_free,
    same_partitions,
)
from neuroncore.memory import View
from neuroncore.work import MicroOp
from nki_dtypes import ALL, float8_e4m3fn, tfloat32, uint32

RULE = "NKI: exponential"
_RESULTS = FLOATS - {float8_e4m3fn}
_INTEGERS = frozenset(d for d in ALL if d.is_integer)


def exponential(c: Call) -> Callable[..., None]:
    """dst = exp(src - max_value); VectorE's registers may add up the results over the free axes.

    The sum is of the float32 results, before they are rounded into dst.
    """
    shape = common_shape(c.dst, c.src)
    read, write = reader(c.src, shape), writer(c.dst)
    most = lane_value(c.max_value, shape)
    initial = lane_value(c.reduce_init, (c.src.partitions, 1))
    fold, give = folding(c, VECTOR, c.src, ALU_OPS["add"]), giving(c.reduce_res)

    def run(dst: View, src: View, max_value: Any, reduce_res: View | None, init: Any) -> None:
        start = initial(init)
        if c.reduce_cmd is not ReduceCmd.load_reduce and start != 0:
            raise _unused_start(start)
        values = read(src) - most(max_value)
        np.exp(values, out=values)
        write(dst, values)
        give(reduce_res, fold(dst.core, values, start))

    return run


def _unused_start(start: Any) -> AttributeValueError:
    return AttributeValueError(
        f"reduce_init {start:g} goes with load_reduce only", expected="0.0",
        got=f"{start:g}", operand="reduce_init", instruction="exponential",
        rule=f"{RULE}, reduce_init",
    )  # fmt: skip


def _work(c: Call) -> list[MicroOp]:
    """N / 4: four times ScalarE's throughput [Trainium3 architecture guide; inferred]."""
    cycles = c.src.free / 4
    return one_pass(c, cycles) if c.reduce_res is None else with_read_out(c, cycles)


_ZEROS = np.zeros((2, 4))
_LEVELS = np.repeat([[3.0], [5.0]], 4, axis=1)

EXPONENTIAL = Instruction(
    name="exponential",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP, dtypes=(_RESULTS | _INTEGERS) - {uint32}),
        "src": In("P F", ON_CHIP, dtypes=(_RESULTS | _INTEGERS) - {tfloat32}),
        "max_value": In("P 1", ON_CHIP, number=True, dtypes=ONLY_FLOAT32),
        "reduce_res": Out("P 1", ON_CHIP, optional=True, dtypes=_RESULTS),
        "reduce_init": In("P 1", ON_CHIP, number=True, dtypes=ONLY_FLOAT32),
    },
    attrs={"reduce_cmd": Attr(ReduceCmd.idle, member(ReduceCmd, "reduce_cmd"))},
    limits=[
        same_partitions("dst", "src", src="float32[8, 4] sbuf"),
        same_free("dst", "src", src="float32[2, 5] sbuf"),
        one_per_partition(
            "src", "max_value", "reduce_res", "reduce_init", max_value="float32[2, 2] sbuf"
        ),
        each(
            ["dst", "src"], lambda c, spec: spec.rank <= 4, ShapeError,
            "{name} has {it.rank} dimensions", expected="at most 4",
            src="float32[2, 1, 1, 1, 4] sbuf",
        ),
        one_of(
            "reduce_cmd", "idle", "reset_reduce", "reduce", "load_reduce",
            reduce_cmd=ReduceCmd.reset,
        ),
        each(
            ["reduce_init"], lambda c, spec: c.reduce_cmd is ReduceCmd.load_reduce,
            AttributeValueError, "a reduce_init tile goes with load_reduce only", expected="0.0",
            got="shape {it!r} with {c.reduce_cmd.name}", section="reduce_init",
            reduce_init="float32[2, 1] sbuf",
        ),
        from_generation(4, "dst", "trn2"),
    ],
    effects=lambda c: operand_effects(c) + register_effects(c, VECTOR),
    work=_work,
    run=exponential,
    result=like("src"),
    gathers=("dst", "src"),
    examples=[
        Example({"dst": "float32[2, 4] sbuf", "src": _ZEROS, "max_value": 0.0, "reduce_init": 0.0,
                 "target": "trn3"}, {"dst": np.ones((2, 4))}),
        Example({"dst": "bfloat16[2, 4] sbuf", "src": _LEVELS, "target": "trn3",
                 "max_value": np.array([[3.0], [5.0]]), "reduce_res": "float32[2, 1] sbuf",
                 "reduce_cmd": ReduceCmd.load_reduce, "reduce_init": 10.0},
                {"dst": np.ones((2, 4)), "reduce_res": np.full((2, 1), 14.0)},
                note="each row less its own maximum; the sums start from 10"),
    ],
)  # fmt: skip
