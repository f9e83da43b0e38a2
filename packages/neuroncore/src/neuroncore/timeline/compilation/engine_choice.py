"""Engines that the compiler gives to calls that leave theirs open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from neuroncore.enums import Engine, MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Buffer, Call, Program, Statement, make_call
from neuroncore.program.ir.binding import seen_as
from neuroncore.program.ir.traversal import Ranges
from neuroncore.timeline.compilation.rewriting import Legality, rewritten
from nki_dtypes import DType, tfloat32

Choices = Callable[[Call, Legality], list[Call]]
"""What a compiler would rather execute than a call that leaves its engine open."""


def fills_on_gpsimd(program: Program, core: NeuronCore) -> Program:
    """The program with its open fills on GpSimdE."""
    return _chosen(program, _fills)


def copies_on_scalar(program: Program, core: NeuronCore) -> Program:
    """The program with its open copies out of PSUM on ScalarE."""
    return _chosen(program, _copies)


def _chosen(program: Program, choices: Choices) -> Program:
    """The program with the first choice for each call that its machine takes."""
    legality = Legality(program)

    def change(call: Call, ranges: Ranges) -> tuple[Statement, ...]:
        is_open = call.attrs.get("engine") is Engine.unknown
        others = choices(call, legality) if is_open else []
        return (next((c for c in others if legality.takes(c, ranges)), call),)

    return rewritten(program, change)


def _fills(call: Call, legality: Legality) -> list[Call]:
    return [_on(call, Engine.gpsimd)] if call.instruction == "memset" else []


def _copies(call: Call, legality: Legality) -> list[Call]:
    """The copy itself, and the activation that copies where ScalarE has no other copy."""
    src = call.accesses.get("src")
    if call.instruction != "tensor_copy" or src is None:
        return []
    if legality.buffers[src.buffer].space is not MemorySpace.psum:
        return []
    found = [_on(call, Engine.scalar)]
    if goes_through_float32(call, legality.buffers):
        dst = call.accesses["dst"]
        copy = make_call(
            "activation", call.name, call.origin, dst=dst, data=src, op="copy", scale=1.0
        )
        found.append(copy)
    return found


def goes_through_float32(call: Call, buffers: Mapping[str, Buffer]) -> bool:
    """Whether a copy gives the same where its values are float32 on the way."""
    dst, src = (seen_as(a, buffers[a.buffer]) for a in (call.accesses["dst"], call.accesses["src"]))
    return is_float32_between(dst, src)


def is_float32_between(dst: DType, src: DType) -> bool:
    """Whether values are the same where they are float32 between these dtypes: tfloat32 is copied
    with bits that it does not count.
    """
    return dst is not src or (src.is_float and src is not tfloat32)


def _on(call: Call, engine: Engine) -> Call:
    return replace(call, attrs={**call.attrs, "engine": engine})
