"""distribute: the body of a loop, cut in two, as two loops (loop fission).

for i in range(4):           for i in range(4):
    f(i)                 →       f(i)
    g(i)                     for i in range(4):
                                 g(i)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from neuroncore.program import Allocate, Loop, Program
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import LATER
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import Body, allocated, loop_at, replaced, with_body
from nkigym.transforms._transform import Transform
from nkigym.transforms.expand import expand_body


def cut_loop(claims: Claims, loop: Loop, cut: int) -> Body:
    """The loop as two, the second of what stands from statement `cut` on.

    Tiles that cross the cut get a slot for each iteration, and are made in front of both loops.
    Raises TransformError where the second part of an iteration must come before the first part of a
    later one.
    """
    first, second = loop.body[:cut], loop.body[cut:]
    if not any(not isinstance(s, Allocate) for s in first) or not second:
        raise TransformError(f"there is nothing on one side of {cut} in loop {loop.variable}")
    made = {*allocated(first), *allocated(second)}
    before = {t.buffer for t in claims.accesses(first)} & made
    after = {t.buffer for t in claims.accesses(second)} & made
    claims.require_disjoint(
        claims.accesses(first, made), claims.accesses(second, made), ((loop, LATER),),
        f"loop {loop.variable} cannot be cut at {cut}",
    )  # fmt: skip
    front, grown = expand_body(loop, claims.loops, frozenset(before & after))
    calls = [s for s in grown.body if not isinstance(s, Allocate)]
    count = sum(not isinstance(s, Allocate) for s in first)
    parts = tuple(calls[:count]), tuple(calls[count:])
    loops = map(_with_own, (grown, grown), (made - after, after), parts)
    return (*front, *loops)


def _with_own(loop: Loop, names: Collection[str], part: Body) -> Loop:
    """The loop around a part of its body and the allocations of these names."""
    own = [s for s in loop.body if isinstance(s, Allocate) and s.buffer.name in names]
    return with_body(loop, (*own, *part))


def _distribute(program: Program, step: TransformStep) -> StepResult:
    loop, claims = loop_at(program, step.at), Claims(program, step.at)
    return claims.result(replaced(program, step.at, cut_loop(claims, loop, step.option("cut"))))


def _distributes(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    seen = False
    for n, statement in enumerate(loop.body):
        if isinstance(statement, Allocate):
            continue
        if seen:
            yield TransformStep("distribute", at, (("cut", n),))
        seen = True


DISTRIBUTE = Transform(
    "distribute", "a loop's body, cut before statement `cut`, as two loops",
    _distributes, _distribute, rank=4)  # fmt: skip
