"""split and fuse: one loop as two, and two as one.

for k in range(16):                 for k in range(4):
    load(t, x[128*k …])      ⇄          for k1 in range(4):
                                            load(t, x[512*k + 128*k1 …])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from neuroncore.program import Affine, Loop, Program, accesses
from nkigym.analysis.claims import StepResult
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import loop_at, replaced, substituted, unused_name, with_body
from nkigym.transforms._transform import Transform


def halves(loop: Loop, factor: int, inner: str) -> tuple[Loop, Loop, Mapping[str, Affine]]:
    """The outer loop, the inner one of `factor` iterations, both still around the body as it was,
    and what its variable is in them.
    """
    if factor < 2 or factor >= loop.trips or loop.trips % factor:
        raise TransformError(
            f"{factor} is not a divisor of the {loop.trips} trips of {loop.variable}"
        )
    outer = Affine.variable(loop.variable, loop.step * factor)
    value = outer + Affine.variable(inner, loop.step) + loop.start
    within = Loop(inner, 0, factor, loop.body, 1, loop.origin)
    around = Loop(loop.variable, 0, loop.trips // factor, loop.body, 1, loop.origin)
    return around, within, {loop.variable: value}


def _split(program: Program, step: TransformStep) -> StepResult:
    loop = loop_at(program, step.at)
    outer, inner, values = halves(loop, step.option("factor"), unused_name(program, loop.variable))
    inner = with_body(inner, substituted(loop.body, values))
    return StepResult(replaced(program, step.at, (with_body(outer, (inner,)),)))


def _splits(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    for factor in range(2, loop.trips // 2 + 1):
        if loop.trips % factor == 0:
            yield TransformStep("split", at, (("factor", factor),))


def _fuse(program: Program, step: TransformStep) -> StepResult:
    outer = loop_at(program, step.at)
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, Loop):
        raise TransformError(f"loop {outer.variable} contains more than a loop")
    if (outer.start, outer.step, inner.start, inner.step) != (0, 1, 0, 1):
        raise TransformError(
            f"loops {outer.variable} and {inner.variable} do not count from 0 by 1"
        )
    for statement in inner.body:
        for access in accesses(statement):
            terms = dict(access.offset.terms)
            far, near = terms.get(outer.variable, 0), terms.get(inner.variable, 0)
            if far != near * inner.trips:
                raise TransformError(
                    f"{access.buffer} moves by {far} with {outer.variable}, "
                    f"not by {inner.trips} times the {near} of {inner.variable}"
                )
    gone = {outer.variable: Affine(), inner.variable: Affine.variable(outer.variable)}
    trips = outer.trips * inner.trips
    made = Loop(outer.variable, 0, trips, substituted(inner.body, gone), 1, outer.origin)
    return StepResult(replaced(program, step.at, (made,)))


def _fuses(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    if len(loop.body) == 1 and isinstance(loop.body[0], Loop):
        yield TransformStep("fuse", at)


SPLIT = Transform("split", "one loop as two, the inner of `factor` trips", _splits, _split, rank=1)
FUSE = Transform("fuse", "two loops, one inside the other, as one", _fuses, _fuse, rank=2)
