"""Transformations of a program by a version's toolchain, each named, with its evidence.

NKI 0.1 goes through the closed compiler, which rewrites; from 0.2 on a kernel's instructions are
explicit, and the NKI compiler places buffers, picks engines that are left open, and schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import AttributeValueError
from neuroncore.integers.affine import Affine
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Access,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    calls,
    whole,
)
from neuroncore.surface import version_tuple
from neuroncore.timeline.compilation.buffer_places import privatized
from neuroncore.timeline.compilation.loop_transformations import (
    hoisted,
    vectorized,
    written,
)
from neuroncore.timeline.compilation.movements import (
    broadcast_by_tensor,
    transposed_by_tensor,
    written_directly,
)
from neuroncore.timeline.compilation.rewriting import rewritten

CLOSED, EXPLICIT = "closed", "explicit"
"""Through the closed compiler (0.1), and explicit instructions through the NKI compiler."""

Rewrite = Callable[[Program, NeuronCore], Program]


@dataclass(frozen=True, slots=True)
class Transformation:
    """One thing that a toolchain does. `rewrite` None: the timeline plays it."""

    name: str
    does: str
    toolchains: tuple[str, ...]
    evidence: str
    rewrite: Rewrite | None = None

    def applies(self, toolchain: str) -> bool:
        return toolchain in self.toolchains


def toolchain_of(program: Program) -> str:
    """Which toolchain makes the program."""
    return CLOSED if version_tuple(program.nki) < (0, 2) else EXPLICIT


def in_force(program: Program, without: Collection[str] = ()) -> tuple[Transformation, ...]:
    """The transformations of its toolchain, less the ones that `without` names.

    Raises AttributeValueError for a name that none has.
    """
    for name in without:
        if name not in TRANSFORMATIONS:
            raise AttributeValueError(
                f"{name!r} is not a transformation",
                expected=" or ".join(TRANSFORMATIONS),
                operand="without",
            )
    toolchain = toolchain_of(program)
    every = TRANSFORMATIONS.values()
    return tuple(t for t in every if t.applies(toolchain) and t.name not in without)


def transformed(
    program: Program, core: NeuronCore, transformations: Collection[Transformation]
) -> Program:
    """The program after the transformations that rewrite it."""
    for each in transformations:
        if each.rewrite is not None:
            program = each.rewrite(program, core)
    return program


# -- rewrites -------------------------------------------------------------------------------------


def _is_open(call: Call) -> bool:
    """Whether the kernel left the engine to the compiler."""
    return call.attrs.get("engine") is Engine.unknown


def _without_dead_fills(program: Program, core: NeuronCore) -> Program:
    """Zeros of PSUM that only matmuls add to: the first product overwrites."""
    buffers = program.buffers()
    added: dict[str, set[str]] = {}
    for call in calls(program.body):
        for name in written(call):
            added.setdefault(name, set()).add(call.instruction)

    def change(call: Call) -> tuple[Statement, ...]:
        (name, *_) = written(call) or [""]
        is_zero = call.instruction == "memset" and call.operands.get("value") == 0
        is_psum = is_zero and buffers[name].space is MemorySpace.psum
        return () if is_psum and added[name] == {"memset", "nc_matmul"} else (call,)

    return rewritten(program, change)


def _without_overwritten_fills(program: Program, core: NeuronCore) -> Program:
    """Of a fill of which a DMA overwrites columns next, the columns on both sides."""
    buffers = program.buffers()

    def kept(body: tuple[Statement, ...]) -> Iterator[Statement]:
        for statement, after in zip(body, (*body[1:], None), strict=True):
            if isinstance(statement, Loop):
                yield replace(statement, body=tuple(kept(statement.body)))
            elif isinstance(statement, Call) and isinstance(after, Call) and after.is_dma:
                yield from _beside(statement, after, buffers)
            else:
                yield statement

    return replace(program, body=tuple(kept(program.body)))


def _beside(fill: Call, load: Call, buffers: Mapping[str, Buffer]) -> Iterator[Call]:
    """The fill, or the parts of it that the load does not overwrite."""
    filled, over = fill.accesses.get("dst"), load.accesses.get("dst")
    if fill.instruction != "memset" or filled is None or over is None or _is_read(filled, load):
        yield fill
        return
    first, columns = over.offset.constant, filled.shape[-1]
    if filled != whole(buffers[filled.buffer]) or over != _columns(filled, first, over.shape[-1]):
        yield fill
        return
    for at, count in ((0, first), (first + over.shape[-1], columns - first - over.shape[-1])):
        if count:
            part = {**fill.operands, "dst": _columns(filled, at, count)}
            yield replace(fill, operands=part)


def _is_read(filled: Access, load: Call) -> bool:
    """Whether a DMA adds to a tile, or reads it."""
    reads = [a.buffer for name, a in load.accesses.items() if name not in load.record.outputs]
    return load.attrs.get("dst_rmw_op") is not None or filled.buffer in reads


def _columns(access: Access, first: int, count: int) -> Access:
    return replace(access, shape=(*access.shape[:-1], count), offset=Affine(first))


def _on_engine(program: Program, rule: Callable[[Call], Engine | None]) -> Program:
    def change(call: Call) -> tuple[Statement, ...]:
        engine = rule(call) if _is_open(call) else None
        made = call if engine is None else replace(call, attrs={**call.attrs, "engine": engine})
        return (made,)

    return rewritten(program, change)


def _fills_on_gpsimd(program: Program, core: NeuronCore) -> Program:
    return _on_engine(program, lambda c: Engine.gpsimd if c.instruction == "memset" else None)


def _copies_on_scalar(program: Program, core: NeuronCore) -> Program:
    buffers = program.buffers()

    def rule(call: Call) -> Engine | None:
        src = call.accesses.get("src")
        if call.instruction != "tensor_copy" or src is None:
            return None
        return Engine.scalar if buffers[src.buffer].space is MemorySpace.psum else None

    return _on_engine(program, rule)


TRANSFORMATIONS = {
    t.name: t
    for t in (
        Transformation(
            "transposing_loads", "transposing loads of floats are contiguous loads and TensorE "
            "transposes", (CLOSED,),
            "benchmarks/model s1 to s6: DMA of 4-byte runs would take longer than the kernels",
            transposed_by_tensor,
        ),
        Transformation(
            "partition_broadcasts", "a row of SBUF reaches all partitions through TensorE",
            (CLOSED,),
            "benchmarks/model m1 to m5: TensorE is busy with them",
            broadcast_by_tensor,
        ),
        Transformation(
            "direct_results", "a result that only a copy reads is written to its place", (CLOSED,),
            "benchmarks/model m3: from its source 2.13 ms with the copies, 1.66 ms without, "
            "measured 1.61 ms",
            written_directly,
        ),
        Transformation(
            "dead_fills", "zeros of PSUM that matmuls add to are not written", (CLOSED,),
            "benchmarks/model a6, a7: cleared tiles cost nothing; 0.1 products overwrite first",
            _without_dead_fills,
        ),
        Transformation(
            "overwritten_fills", "of a tile that a load overwrites in part, the rest is filled",
            (CLOSED,), "benchmarks/model d6: VectorE has no time for more",
            _without_overwritten_fills,
        ),
        Transformation(
            "vectorization", "innermost elementwise loops of at most 512 elements are one "
            "instruction", (CLOSED,),
            "benchmarks/model d5 and d6: the same calls, 10.7 times faster as 32 x 64 iterations",
            vectorized,
        ),
        Transformation(
            "loop_invariants", "calls that do the same in every iteration are before their loop",
            (CLOSED,),
            "benchmarks/model m3 to m5 (delta x u), n_matmul_add_rmsnorm (bytes read)",
            hoisted,
        ),
        Transformation(
            "copy_engine", "open copies out of PSUM are on ScalarE", (CLOSED,),
            "benchmarks/model s1 to s5, n_matmul_add_rmsnorm: ScalarE is busy with them",
            _copies_on_scalar,
        ),
        Transformation(
            "engine_shares", "calls that VectorE and ScalarE both execute are shared out evenly",
            (CLOSED,),
            "benchmarks/model n_adamw: products by a constant on both engines",
        ),
        Transformation(
            "fill_engine", "open fills are on GpSimdE", (CLOSED, EXPLICIT),
            "benchmarks/model a1: the profile shows them there; d0 to d6, m3 and m5 are nearer so",
            _fills_on_gpsimd,
        ),
        Transformation(
            "privatization", "a buffer of SBUF that every iteration writes anew has two places",
            (EXPLICIT,), "benchmarks/model a4: an iteration is shorter than a load's round trip, "
            "and longer than with four places",
            privatized,
        ),
        Transformation(
            "slot_rotation", "a buffer that is allocated in a loop has several places",
            (CLOSED, EXPLICIT), "benchmarks/model a5 to a8, c13: iterations overlap",
        ),
        Transformation(
            "scheduling", "an instruction starts in the first gap of its engine",
            (CLOSED, EXPLICIT),
            "benchmarks/model a2 and a3: skewed in the text or not, the same time",
        ),
    )
}  # fmt: skip
"""In the order in which they are applied."""
