"""range_select: elements whose place in the row lies between two bounds of their partition.

on_true_tile, dst (P, F…); bound0, bound1 (P, 1) float32; reduce_res (P, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.alu import alu_op
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, ReduceCmd
from neuroncore.errors import AttributeValueError, ShapeError, UnsupportedError
from neuroncore.instructions._accumulators import VECTOR, folding, giving, register_effects
from neuroncore.instructions._convert import member
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._execute import is_beyond
from neuroncore.instructions._numerics import (
    FLOATS,
    ONLY_FLOAT32,
    choose,
    common_shape,
    like,
    per_partition,
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
    from_generation,
    one_of,
    one_per_partition,
    rule,
    same_free,
    same_partitions,
)
from neuroncore.memory import View

FLOAT32_MIN = np.finfo(np.float32).min
"""What stands where nothing is selected; no other value works [NKI: range_select]."""

_COMPARES = ("equal", "less", "less_equal", "greater", "greater_equal")
_EXACT = 1 << 24  # places are float32 numbers
_RULE = "NKI: range_select"


def range_select(c: Call) -> Callable[..., None]:
    """dst[i] = on_true_tile[i] where comp_op0(k, bound0) and comp_op1(k, bound1).

    k is range_start + i. Elsewhere dst is the smallest float32. VectorE's registers take the
    maximum of the selected values before they are rounded.
    """
    shape = common_shape(c.dst, c.on_true_tile)
    read, write = reader(c.on_true_tile, shape), writer(c.dst)
    low, high = (reader(b, per_partition(shape)) for b in (c.bound0, c.bound1))
    above, below = c.comp_op0.function, c.comp_op1.function
    places = np.arange(c.range_start, c.range_start + c.dst.free, dtype=np.float32)
    places = places.reshape(shape[1:])
    fold, give = folding(c, VECTOR, c.on_true_tile, c.reduce_op), giving(c.reduce_res)

    def select(
        dst: View, on_true_tile: View, bound0: View, bound1: View, reduce_res: View | None
    ) -> None:
        inside = above(places, low(bound0)) & below(places, high(bound1))
        chosen = choose(inside, read(on_true_tile), FLOAT32_MIN)
        write(dst, chosen)
        give(reduce_res, fold(dst.core, chosen, None))

    return select


def _whole_start(value: Any) -> int:
    """0.2 prints the default as 0.0."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    raise AttributeValueError(
        f"range_start {value!r} is not a whole number", expected="a compile-time int",
        got=repr(value)[:80], operand="range_start", rule=f"{_RULE}, range_start",
    )  # fmt: skip


def _number(value: Any) -> float:
    is_real = isinstance(value, (int, float, np.integer, np.floating))
    if is_real and not is_beyond(value):
        return float(value)
    raise AttributeValueError(
        "on_false_value is not a number", got=repr(value)[:80], operand="on_false_value",
        rule=f"{_RULE}, on_false_value",
    )  # fmt: skip


_TILE = np.arange(8.0).reshape(2, 4)
_LOW, _HIGH = np.array([[0.0], [2.0]]), np.array([[2.0], [9.0]])

RANGE_SELECT = Instruction(
    name="range_select",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "on_true_tile": In("P F", ON_CHIP, dtypes=FLOATS),
        "bound0": In("P 1", ON_CHIP, dtypes=ONLY_FLOAT32),
        "bound1": In("P 1", ON_CHIP, dtypes=ONLY_FLOAT32),
        "reduce_res": Out("P 1", ON_CHIP, optional=True),
    },
    attrs={
        "comp_op0": Attr(convert=alu_op),
        "comp_op1": Attr(convert=alu_op),
        "reduce_cmd": Attr(ReduceCmd.reset_reduce, member(ReduceCmd, "reduce_cmd")),
        "reduce_op": Attr("maximum", alu_op),
        "range_start": Attr(0, _whole_start),
        "on_false_value": Attr(FLOAT32_MIN, _number),
    },
    limits=[
        same_partitions("dst", "on_true_tile", on_true_tile="float32[8, 4] sbuf"),
        same_free("dst", "on_true_tile", on_true_tile="float32[2, 5] sbuf"),
        one_per_partition(
            "on_true_tile", "bound0", "bound1", "reduce_res", bound0="float32[2, 4] sbuf"
        ),
        one_of("comp_op0", *_COMPARES, comp_op0="not_equal"),
        one_of("comp_op1", *_COMPARES, comp_op1="logical_and"),
        one_of("reduce_op", "maximum", reduce_op="minimum"),
        one_of("reduce_cmd", "idle", "reset_reduce", "reduce", reduce_cmd=ReduceCmd.load_reduce),
        rule(
            lambda c: np.float32(c.on_false_value) == FLOAT32_MIN,
            AttributeValueError, "on_false_value", "on_false_value {c.on_false_value}",
            expected=f"{FLOAT32_MIN}, the smallest float32", section="on_false_value",
            on_false_value=0.0,
        ),
        rule(
            lambda c: abs(c.range_start) + c.dst.free <= _EXACT,
            ShapeError, "range_start",
            lambda c: f"places {c.range_start} to {c.range_start + c.dst.free - 1}",
            expected=f"range_start + F <= {_EXACT}, exact in float32",
            got="range_start {c.range_start}, F {c.dst.free}", section="range_start",
            range_start=_EXACT,
        ),
        rule(
            lambda c: c.version != (0, 2) or c.reduce_cmd is ReduceCmd.reset_reduce,
            UnsupportedError, "reduce_cmd", "reduce_cmd {c.reduce_cmd.name} in NKI 0.2",
            expected="reset_reduce", hint="0.2 takes the argument and ignores it",
            section="NKI 0.3: range_select", reduce_cmd=ReduceCmd.reduce, version=(0, 2),
        ),
        from_generation(3, "dst", "trn1"),
    ],
    effects=lambda c: operand_effects(c) + register_effects(c, VECTOR),
    work=lambda c: one_pass(c, c.dst.free),  # [NKI 0.1 API documents]
    run=range_select,
    result=like("on_true_tile"),
    mask=MaskBehaviour.rectangular,
    examples=[
        Example({"dst": "float32[2, 4] sbuf", "on_true_tile": _TILE, "bound0": _LOW,
                 "bound1": _HIGH, "comp_op0": "greater_equal", "comp_op1": "less",
                 "reduce_res": "float32[2, 1] sbuf"},
                {"dst": np.where([[1, 1, 0, 0], [0, 0, 1, 1]], _TILE, FLOAT32_MIN),
                 "reduce_res": np.array([[1.0], [7.0]])},
                note="row 0 keeps places 0 and 1, row 1 from place 2 on"),
    ],
)  # fmt: skip
