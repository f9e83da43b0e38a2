"""Transformations of a program by a version's toolchain, each named, with its evidence.

NKI 0.1 goes through the closed compiler, which rewrites; from 0.2 on a kernel's instructions are
explicit, and the NKI compiler places buffers, picks engines that are left open, and schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from neuroncore.errors import AttributeValueError
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Program
from neuroncore.surface import version_tuple
from neuroncore.timeline.compilation.buffer_places import privatized
from neuroncore.timeline.compilation.copies import (
    copies_on_scalar,
    fills_on_gpsimd,
    written_directly,
)
from neuroncore.timeline.compilation.dead_stores import (
    without_dead_fills,
    without_overwritten_fills,
)
from neuroncore.timeline.compilation.loop_transformations import hoisted, vectorized
from neuroncore.timeline.compilation.movements import (
    broadcast_by_tensor,
    loads_transposed_by_tensor,
    stores_transposed_by_tensor,
)

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
    if_faster: bool = False
    """Whether it is taken only where the program is faster with it."""

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
    return rewriting(program, core, transformations)[0]


def rewriting(
    program: Program, core: NeuronCore, transformations: Collection[Transformation]
) -> tuple[Program, tuple[Transformation, ...]]:
    """The program after the transformations that rewrite it, and the ones that changed it."""
    changed: list[Transformation] = []
    for each in transformations:
        if each.rewrite is not None:
            made = each.rewrite(program, core)
            if made != program:
                program = made
                changed.append(each)
    return program, tuple(changed)


TRANSFORMATIONS = {
    t.name: t
    for t in (
        Transformation(
            "transposing_loads", "transposing loads of floats are contiguous loads and TensorE "
            "transposes", (CLOSED,),
            "benchmarks/model s1 to s6: DMA of 4-byte runs would take longer than the kernels",
            loads_transposed_by_tensor,
        ),
        Transformation(
            "transposing_stores", "transposing stores of floats are TensorE transposes and "
            "contiguous stores, where that is faster", (CLOSED,),
            "as transposing_loads; benchmarks/model s1, s2 and s4 are nearer as DMA",
            stores_transposed_by_tensor, if_faster=True,
        ),
        Transformation(
            "partition_broadcasts", "a row of SBUF reaches all partitions as products with ones on "
            "TensorE, which make -0.0 of it 0.0", (CLOSED,),
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
            "dead_fills", "zeros of new tiles of PSUM that matmuls add to are not written",
            (CLOSED, EXPLICIT),
            "benchmarks/model a6, a7: cleared tiles cost nothing; the first product overwrites",
            without_dead_fills,
        ),
        Transformation(
            "overwritten_fills", "of a tile that a load overwrites in part, the rest is filled",
            (CLOSED,), "benchmarks/model d6: VectorE has no time for more",
            without_overwritten_fills,
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
            copies_on_scalar,
        ),
        Transformation(
            "engine_shares", "calls that VectorE and ScalarE both execute are shared out evenly",
            (CLOSED,),
            "benchmarks/model n_adamw: products by a constant on both engines",
        ),
        Transformation(
            "fill_engine", "open fills are on GpSimdE", (CLOSED, EXPLICIT),
            "benchmarks/model a1: the profile shows them there, one of PSUM too, which documents "
            "deny and which stays; d0 to d6, m3 and m5 are nearer so",
            fills_on_gpsimd,
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
