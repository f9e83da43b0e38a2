"""peel and unroll: iterations written out beside the loop, or instead of it.

    for m in range(4):          f(0)
        f(m)              →     for m in range(1, 4):
                                    f(m)

Tiles that an iteration makes get names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Affine, Loop, Program
from nkigym.analysis.claims import StepResult
from nkigym.kernels.contents import contents_of
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import (
    Body,
    Names,
    check_size,
    loop_at,
    renamed,
    replaced,
    rewritten,
    used_names,
)
from nkigym.transforms._transform import Transform

WRITTEN_OUT = 8
"""The most iterations that `unroll` writes out."""


def _copies(program: Program, loop: Loop, count: int) -> Iterator[Body]:
    """The first iterations; the first of all keeps the names of its buffers."""
    used = Names(used_names(program))
    made = contents_of(loop.body).buffers
    for value in loop.values[:count]:
        is_first = value == loop.start
        names = {name: name if is_first else used.unused(name) for name in made}
        yield rewritten(loop.body, {loop.variable: Affine(value)}, names)


def _unroll(program: Program, step: TransformStep) -> StepResult:
    loop = loop_at(program, step.at)
    if loop.trips > WRITTEN_OUT:
        raise TransformError(
            f"{loop.trips} iterations of {loop.variable} are more than {WRITTEN_OUT}"
        )
    copies = _copies(program, loop, loop.trips)
    made = tuple(s for body in copies for s in body)
    return StepResult(check_size(replaced(program, step.at, made)))


def _unrolls(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    if loop.trips <= WRITTEN_OUT:
        yield TransformStep("unroll", at)


def _peel(program: Program, step: TransformStep) -> StepResult:
    loop = loop_at(program, step.at)
    if loop.trips < 2:
        raise TransformError(f"loop {loop.variable} has one iteration")
    made = contents_of(loop.body).buffers
    used = Names(used_names(program))
    names = {name: used.unused(name) for name in made}
    (first,) = _copies(program, loop, 1)
    rest = Loop(
        loop.variable, loop.start + loop.step, loop.stop, renamed(loop.body, names), loop.step,
        loop.origin,
    )  # fmt: skip
    return StepResult(check_size(replaced(program, step.at, (*first, rest))))


def _peels(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    if loop.trips > 1:
        yield TransformStep("peel", at)


UNROLL = Transform(
    "unroll", "all iterations of a short loop written out", _unrolls, _unroll, rank=12
)
PEEL = Transform(
    "peel", "the first iteration of a loop written out before it", _peels, _peel, rank=11
)
