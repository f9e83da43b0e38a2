"""rng and rand2: random bits and uniform numbers, dst (P, F…).

How the numbers come about is in _generator.py: a stream of the documented kind, reproducible from
Options.random_seed, and not hardware's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.effects import Effect, Touch, reads, register, writes
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour
from neuroncore.errors import AttributeValueError, DTypeError, EngineError
from neuroncore.instructions._convert import as_engine
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._generator import draw, generator_name, uniform
from neuroncore.instructions._numerics import (
    FLOATS,
    ONLY_FLOAT32,
    choose,
    lane_value,
    like,
    raw_reader,
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
    one_per_partition,
    rule,
    same_dtype,
    same_free,
    same_partitions,
)
from neuroncore.memory import View
from nki_dtypes import ALL, float8_e4m3fn, float32

INTEGERS = frozenset(d for d in ALL if d.is_integer)


def _effects(c: Call) -> list[Effect]:
    numbers = [n for n in ("min", "max") if n in c.tiles]
    return reads(*numbers) + writes("dst") + register(generator_name(c.engine), Touch.write)


# -- rng ------------------------------------------------------------------------------------------


def rng(c: Call) -> Callable[..., None]:
    """dst = the low bits of a random 32-bit word per element."""
    shape, engine = (c.dst.partitions, c.dst.free), c.engine
    kind = np.dtype(f"u{c.dst.storage.itemsize}")

    def fill(dst: View) -> None:
        words = draw(dst.core, engine, *shape)
        dst.array[...] = words.astype(kind).view(dst.array.dtype).reshape(dst.shape)

    return fill


RNG = Instruction(
    name="rng",
    engines=(Engine.vector, Engine.gpsimd),
    operands={"dst": Out("P F", ON_CHIP, dtypes=INTEGERS)},
    attrs={"engine": Attr(Engine.unknown, as_engine)},
    limits=[
        rule(
            lambda c: c.engine is not Engine.gpsimd or c.target.generation >= 3,
            EngineError, "engine", "the gpsimd engine of {c.target.name} has no generator",
            expected="vector; gpsimd from gen3 on", got="gpsimd on {c.target.name}",
            section="engines", engine=Engine.gpsimd, target="trn1",
        ),
    ],
    effects=_effects,
    # No figure is published before gen4; assumed one element per lane and cycle.
    work=lambda c: one_pass(c, c.dst.free),
    run=rng,
    result=like("dst"),
    examples=[Example({"dst": "uint32[2, 4] sbuf"}, {}), Example({"dst": "int8[2, 4] psum"}, {})],
)  # fmt: skip


# -- rand2 ----------------------------------------------------------------------------------------


def rand2(c: Call) -> Callable[..., None]:
    """dst = uniform float32 numbers in [min, max), rounded to dst; a number or (P, 1) each."""
    shape, write = (c.dst.partitions, c.dst.free), writer(c.dst)
    low_of, high_of = lane_value(c.min, shape), lane_value(c.max, shape)

    def fill(dst: View, low: Any, high: Any) -> None:
        low, high = low_of(low), high_of(high)
        if not np.all(low < high):
            raise AttributeValueError(
                "min is not below max", expected="min < max in every partition",
                got=f"min {np.max(low):g}, max {np.min(high):g}", operand="min",
                instruction="rand2", rule="NKI: rand2, min and max",
            )  # fmt: skip
        write(dst, low + uniform(draw(dst.core, Engine.vector, *shape)) * (high - low))

    return fill


_RAND2 = (FLOATS - {float8_e4m3fn}) | INTEGERS

RAND2 = Instruction(
    name="rand2",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP, dtypes=_RAND2),
        "min": In("P 1", ON_CHIP, number=True, dtypes=ONLY_FLOAT32),
        "max": In("P 1", ON_CHIP, number=True, dtypes=ONLY_FLOAT32),
    },
    limits=[
        one_per_partition("dst", "min", "max", min="float32[2, 2] sbuf"),
        from_generation(4, "dst", "trn2", hint="rng gives random bits on every generation"),
    ],
    effects=_effects,
    # Four values per lane and cycle [Trainium3 architecture guide].
    work=lambda c: one_pass(c, c.dst.free / 4),
    run=rand2,
    result=like("dst"),
    examples=[
        Example({"dst": "int32[2, 4] sbuf", "min": 6.75, "max": 7.25, "target": "trn3"},
                {"dst": np.full((2, 4), 7)}, note="numbers in [6.75, 7.25), rounded"),
        Example({"dst": "float32[2, 4] sbuf", "min": np.array([[0.0], [-1.0]]), "max": 1.0,
                 "target": "trn3"}, {}),
    ],
)  # fmt: skip


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
        each(
            ["prob"], lambda c, spec: not c.data.dtype.is_integer or spec.dtype is float32,
            DTypeError, "prob is {it.dtype} for {c.data.dtype} data", expected="float32",
            section="dtypes", dst="int8[2, 4] sbuf", data="int8[2, 4] sbuf",
            prob="bfloat16[2, 1] sbuf",
        ),
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
