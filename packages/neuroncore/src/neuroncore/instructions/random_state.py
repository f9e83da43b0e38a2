"""set_rng_seed, rand_set_state, rand_get_state: where the random generators stand.

States are (P, 6) on GpSimdE and (P, 24) on VectorE: four XORWOW states of 6 words each, in the
order of _generator.py, one lane per partition. The order of words in hardware is not published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from neuroncore.effects import Touch, register, writes
from neuroncore.enums import ON_CHIP, SBUF, Engine
from neuroncore.errors import EngineError, MemorySpaceError, ShapeError, UnsupportedError, Violation
from neuroncore.instructions._convert import as_engine
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._generator import STATES, WORDS, generator_name, restart, state
from neuroncore.instructions._numerics import like
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
from neuroncore.instructions._rules import rule
from neuroncore.memory import View
from nki_dtypes import ALL, uint32

_UINT32 = frozenset({uint32})
_32_BITS = frozenset(d for d in ALL if d.itemsize == 4 and not d.is_packed)


def set_rng_seed(c: Call) -> Callable[..., None]:
    """VectorE's generator starts anew from the 32 bits of src_seeds (1, 1)."""

    def seed(src_seeds: View) -> None:
        restart(src_seeds.core, Engine.vector, int(src_seeds.array.view(np.uint32).flat[0]))

    return seed


def rand_set_state(c: Call) -> Callable[..., None]:
    """The generators of the first P lanes take the words of src_seeds (P, 6 or 24)."""
    engine, lanes = c.engine, c.src_seeds.partitions

    def load(src_seeds: View) -> None:
        words = src_seeds.array.reshape(lanes, -1, WORDS)
        state(src_seeds.core, engine)[:, :lanes] = np.moveaxis(words, -1, 0)

    return load


def rand_get_state(c: Call) -> Callable[..., None]:
    """dst (P, 6 or 24) = the words of the generators of the first P lanes."""
    engine, lanes = c.engine, c.dst.partitions

    def store(dst: View) -> None:
        words = state(dst.core, engine)[:, :lanes]
        dst.array[...] = np.moveaxis(words, 0, -1).reshape(dst.shape)

    return store


def _state_is_legal(operand: str) -> Callable[[Call], Iterable[Violation]]:
    """The generation has the instruction and the engine; the states have its width."""

    def check(c: Call) -> Iterable[Violation]:
        name, spec, width = c.record.name, c.tiles[operand], WORDS * STATES[c.engine]
        if c.target.generation < 3:
            yield Violation(
                UnsupportedError, f"{c.target.name} has no {name}", operand,
                expected="gen3 or later", got=c.target.name, rule=f"NKI: {name}, generations",
            )  # fmt: skip
        elif c.engine is Engine.vector and c.target.generation < 4:
            yield Violation(
                EngineError, f"the vector engine of {c.target.name} does not give its states",
                "engine", expected="gpsimd; vector from gen4 on", got=f"vector on {c.target.name}",
                rule=f"NKI: {name}, engines",
            )  # fmt: skip
        if spec.rank != 2 or spec.free != width:
            yield Violation(
                ShapeError, f"{operand} has shape {spec.shape}", operand,
                expected=f"(P, {width}): {STATES[c.engine]} x {WORDS} words on {c.engine.name}",
                got=f"shape {spec!r}", rule=f"NKI: {name}, shapes",
            )  # fmt: skip

    return check


def _limits(operand: str) -> list[Limit]:
    check = _state_is_legal(operand)
    return [
        Limit(check, {"target": "trn1"}),
        Limit(check, {"engine": Engine.vector, operand: "uint32[4, 24] sbuf"}),
        Limit(check, {operand: "uint32[4, 5] sbuf"}),
        Limit(check, {operand: "uint32[4, 6, 1] sbuf"}),
    ]


SET_RNG_SEED = Instruction(
    name="set_rng_seed",
    engines=(Engine.vector,),
    operands={"src_seeds": In("1 1", ON_CHIP, dtypes=_32_BITS)},
    limits=[
        rule(
            lambda c: c.src_seeds.shape == (1, 1),
            ShapeError, "src_seeds", "src_seeds has shape {c.src_seeds.shape}", expected="(1, 1)",
            section="shapes", src_seeds="uint32[1, 2] sbuf",
        ),
    ],
    effects=lambda c: operand_effects(c) + register(generator_name(Engine.vector), Touch.write),
    work=lambda c: one_pass(c, 1),
    run=set_rng_seed,
    result=like("src_seeds"),
    examples=[Example({"src_seeds": ("sbuf uint32", np.array([[42]]))}, {})],
)  # fmt: skip

RAND_SET_STATE = Instruction(
    name="rand_set_state",
    engines=(Engine.gpsimd, Engine.vector),
    operands={"src_seeds": In("P 6S", ON_CHIP, dtypes=_UINT32)},
    attrs={"engine": Attr(Engine.unknown, as_engine)},
    limits=[
        *_limits("src_seeds"),
        rule(
            lambda c: c.src_seeds.space in SBUF or c.version == (0, 2),
            MemorySpaceError, "src_seeds", "src_seeds is in PSUM", expected="SBUF",
            hint="copy them to SBUF with nisa.tensor_copy first",
            section="NKI 0.3: rand_set_state, memories", src_seeds="uint32[4, 24] psum",
            engine=Engine.vector, target="trn3",
        ),
    ],
    effects=lambda c: operand_effects(c) + register(generator_name(c.engine), Touch.write),
    work=lambda c: one_pass(c, c.src_seeds.free),  # a copy of its words; no figure is published
    run=rand_set_state,
    result=like("src_seeds"),
    examples=[
        Example({"src_seeds": ("sbuf uint32", np.arange(24).reshape(4, 6))}, {}),
        Example({"src_seeds": ("sbuf uint32", np.arange(48).reshape(2, 24)),
                 "engine": Engine.vector, "target": "trn3"}, {}),
    ],
)  # fmt: skip

RAND_GET_STATE = Instruction(
    name="rand_get_state",
    engines=(Engine.gpsimd, Engine.vector),
    operands={"dst": Out("P 6S", ON_CHIP, dtypes=_UINT32)},
    attrs={"engine": Attr(Engine.unknown, as_engine)},
    limits=_limits("dst"),
    effects=lambda c: register(generator_name(c.engine), Touch.read) + writes("dst"),
    work=lambda c: one_pass(c, c.dst.free),  # a copy of its words; no figure is published
    run=rand_get_state,
    result=like("dst"),
    examples=[
        Example({"dst": "uint32[4, 6] sbuf"}, {}),
        Example({"dst": "uint32[2, 24] psum", "engine": Engine.vector, "target": "trn3"}, {}),
    ],
)
