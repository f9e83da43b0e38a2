"""dropout: random elements become zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.effects import Touch, register
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour
from neuroncore.errors import AttributeValueError, DTypeError, Violation
from neuroncore.instructions._choose import choose
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._generator import draw, generator_name, uniform
from neuroncore.instructions._lanes import FLOATS, lane_value
from neuroncore.instructions._numerics import raw_reader
from neuroncore.instructions._record import (
    Call,
    Example,
    In,
    Instruction,
    Limit,
    Out,
    operand_effects,
)
from neuroncore.instructions._rules import one_per_partition, same_dtype, same_free, same_partitions
from neuroncore.instructions._shapes import like
from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_dtypes import float32

RULE = "NKI: dropout"


def dropout(c: Call) -> Callable[..., None]:
    """dst = 0 where a uniform number in [0, 1) is below prob, else data; nothing is rescaled.

    prob is a number or one per partition. The numbers come from VectorE's generator.
    """
    shape = (c.data.partitions, c.data.free)
    read, chance = raw_reader(c.data, shape), lane_value(c.prob, shape)

    def drop(dst: View, data: View, prob: Any) -> None:
        chances = chance(prob)
        if not np.all((chances >= 0) & (chances <= 1)):
            raise AttributeValueError(
                "prob is not a probability", expected="0 <= prob <= 1",
                got=f"{np.min(chances):g} to {np.max(chances):g}", operand="prob",
                instruction="dropout", rule=f"{RULE}, prob",
            )  # fmt: skip
        drawn = uniform(draw(dst.core, Engine.vector, *shape))
        values = read(data)
        kept = choose(drawn >= chances, values, values.dtype.type(0))
        dst.array[...] = kept.reshape(dst.shape)

    return drop


def _prob_fits(c: Call) -> Iterable[Violation]:
    if isinstance(c.prob, Spec) and c.data.dtype.is_integer and c.prob.dtype is not float32:
        yield Violation(
            DTypeError, f"prob is {c.prob.dtype} for {c.data.dtype} data", "prob",
            expected="float32", got=f"shape {c.prob!r}", rule=f"{RULE}, dtypes",
        )  # fmt: skip


_DATA = np.arange(1.0, 9.0).reshape(2, 4)

DROPOUT = Instruction(
    name="dropout",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "data": In("P F", ON_CHIP),
        "prob": In("P 1", ON_CHIP, number=True, dtypes=FLOATS),
    },
    limits=[
        same_partitions("dst", "data", data="float32[8, 4] sbuf"),
        same_free("dst", "data", data="float32[2, 5] sbuf"),
        one_per_partition("data", "prob", prob="float32[2, 2] sbuf"),
        same_dtype("data", dst="bfloat16[2, 4] sbuf"),
        Limit(_prob_fits, {"dst": "int8[2, 4] sbuf", "data": "int8[2, 4] sbuf",
                           "prob": "bfloat16[2, 1] sbuf"}),
    ],
    effects=lambda c: operand_effects(c) + register(generator_name(Engine.vector), Touch.write),
    work=lambda c: one_pass(c, c.data.free),  # [NKI 0.1 API documents]
    run=dropout,
    result=like("data"),
    mask=MaskBehaviour.elementwise,
    examples=[
        Example({"dst": "float32[2, 4] sbuf", "data": _DATA, "prob": 0.0}, {"dst": _DATA}),
        Example({"dst": "float32[2, 4] sbuf", "data": _DATA, "prob": np.array([[1.0], [0.0]])},
                {"dst": _DATA * [[0.0], [1.0]]}, note="everything, and nothing, is dropped"),
    ],
)  # fmt: skip
