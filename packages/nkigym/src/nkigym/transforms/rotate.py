"""rotate: the tiles of a loop's body get `slots` buffers in rotation (double buffering).

The loop is split, and the buffers are expanded over the inner loop, so that the next tile is loaded
while this one is used:

    for k in range(8):                        for k in range(4):
        t = buffer(bfloat16[128, 512], sbuf)      t = buffer(bfloat16[128, 2, 512], sbuf)
        load(t[:, :], …)                   →      for k1 in range(2):
        use(t[:, :])                                  load(t[:, k1, :], …)
                                                      use(t[:, k1, :])
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.enums import HBM, MemorySpace
from neuroncore.program import Allocate, Loop, Program
from nkigym.analysis.claims import StepResult
from nkigym.kernels.slots import expand_body
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import loop_at, loops_around, replaced, unused_name, with_body
from nkigym.transforms._transform import Transform
from nkigym.transforms.split import halves

SLOTS = (2, 3, 4, 8)
"""Numbers of places that `rotate` offers."""


def _rotate(program: Program, step: TransformStep) -> StepResult:
    loop, slots, space = loop_at(program, step.at), step.option("slots"), step.option("space", str)
    chosen = frozenset(_on_chip(loop, space))
    if not chosen:
        raise TransformError(f"loop {loop.variable} makes no tile in {space}")
    around = loops_around(program, step.at)
    if slots == loop.trips:
        front, made = expand_body(loop, around, chosen)
        return StepResult(replaced(program, step.at, (*front, made)))
    outer, inner, values = halves(loop, slots, unused_name(program, loop.variable))
    front, made = expand_body(inner, (*around, outer), chosen, values)
    return StepResult(replaced(program, step.at, (with_body(outer, (*front, made)),)))


def _on_chip(loop: Loop, space: str) -> Iterator[str]:
    """The tiles that each iteration makes: in `sbuf`, in `psum`, or in both (`chip`)."""
    spaces = {
        "sbuf": (MemorySpace.sbuf,),
        "psum": (MemorySpace.psum,),
        "chip": (MemorySpace.sbuf, MemorySpace.psum),
    }
    if space not in spaces:
        raise TransformError(f"space is sbuf, psum or chip, got {space}")
    for s in loop.body:
        if isinstance(s, Allocate) and s.buffer.space in spaces[space] and not s.buffer.address:
            yield s.buffer.name


def _rotates(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    spaces = {s.buffer.space for s in loop.body if isinstance(s, Allocate)} - set(HBM)
    names = [n for n, s in (("sbuf", MemorySpace.sbuf), ("psum", MemorySpace.psum)) if s in spaces]
    for space in ["chip", *names] if len(names) > 1 else names:
        for slots in SLOTS:
            if slots <= loop.trips and loop.trips % slots == 0:
                yield TransformStep("rotate", at, (("slots", slots), ("space", space)))


ROTATE = Transform(
    "rotate", "tiles of a loop's body get `slots` places that take turns", _rotates, _rotate, rank=7
)
