"""reorder, distribute, join: the same iterations in another order.

for m in range(4):           for n in range(4):
    for n in range(4):   →       for m in range(4):
        f(m, n)                      f(m, n)

for i in range(4):           for i in range(4):
    f(i)                 ⇄       f(i)
    g(i)                     for i in range(4):
                                 g(i)
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Affine, Allocate, Loop, Program, Statement
from nkigym.loops.apart import EARLIER, LATER
from nkigym.loops.slots import expand_body
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.transform import Claims, Taken, Transform, loops_only
from nkigym.loops.tree import (
    Body,
    allocated,
    block_of,
    loop_at,
    replaced,
    substituted,
    with_block,
    with_body,
)


def _reorder(program: Program, step: Step) -> Taken:
    outer = loop_at(program, step.at)
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, Loop):
        raise Refused(f"loop {outer.variable} holds more than a loop")
    claims = Claims(program, step.at)
    touches = claims.touches(inner.body, allocated(inner.body))
    related = ((outer, LATER), (inner, EARLIER))
    claims.apart(touches, touches, related, f"{inner.variable} cannot be around {outer.variable}")
    made = with_body(inner, (with_body(outer, inner.body),))
    return claims.taken(replaced(program, step.at, (made,)))


def _reorders(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    if len(loop.body) == 1 and isinstance(loop.body[0], Loop):
        yield Step("reorder", at)


def cut_loop(claims: Claims, loop: Loop, cut: int) -> Body:
    """The loop as two, the second of what stands from statement `cut` on.

    Tiles that cross the cut get a slot for each iteration, and are made in front of both loops.
    Raises Refused where the second part of an iteration must come before the first part of a later
    one.
    """
    first, second = loop.body[:cut], loop.body[cut:]
    if not any(not isinstance(s, Allocate) for s in first) or not second:
        raise Refused(f"there is nothing on one side of {cut} in loop {loop.variable}")
    made = {*allocated(first), *allocated(second)}
    before = {t.buffer for t in claims.touches(first)} & made
    after = {t.buffer for t in claims.touches(second)} & made
    claims.apart(
        claims.touches(first, made), claims.touches(second, made), ((loop, LATER),),
        f"loop {loop.variable} cannot be cut at {cut}",
    )  # fmt: skip
    front, grown = expand_body(loop, frozenset(before & after))
    calls = [s for s in grown.body if not isinstance(s, Allocate)]
    count = sum(not isinstance(s, Allocate) for s in first)
    parts = calls[:count], calls[count:]
    loops = []
    for names, part in zip((made - after, after), parts, strict=True):
        own = [s for s in grown.body if isinstance(s, Allocate) and s.buffer.name in names]
        loops.append(with_body(grown, (*own, *part)))
    return (*front, *loops)


def _distribute(program: Program, step: Step) -> Taken:
    loop, claims = loop_at(program, step.at), Claims(program, step.at)
    return claims.taken(replaced(program, step.at, cut_loop(claims, loop, step.option("cut"))))


def _distributes(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    seen = False
    for n, statement in enumerate(loop.body):
        if isinstance(statement, Allocate):
            continue
        if seen:
            yield Step("distribute", at, (("cut", n),))
        seen = True


def _next_loop(block: Body, n: int) -> int | None:
    """The number of the next loop behind statement n, with nothing but allocations between."""
    for m in range(n + 1, len(block)):
        if not isinstance(block[m], Allocate):
            return m if isinstance(block[m], Loop) else None
    return None


def _join(program: Program, step: Step) -> Taken:
    first = loop_at(program, step.at)
    block, n = block_of(program, step.at), step.at[-1]
    m = _next_loop(block, n)
    if m is None:
        raise Refused(f"no loop follows {first.variable}")
    second = block[m]
    assert isinstance(second, Loop)
    if first.values != second.values:
        raise Refused(f"{first.variable} and {second.variable} do not run over the same values")
    claims = Claims(program, step.at)
    renamed = second.body
    if first.variable != second.variable:
        renamed = substituted(renamed, {second.variable: Affine.variable(first.variable)})
    private = (*allocated(first.body), *allocated(second.body))
    claims.apart(
        claims.touches(first.body, private), claims.touches(renamed, private), ((first, LATER),),
        f"loops {first.variable} and {second.variable} cannot be one",
    )  # fmt: skip
    between: tuple[Statement, ...] = block[n + 1 : m]
    made = with_body(first, first.body + renamed)
    return claims.taken(with_block(program, step.at, (*block[:n], *between, made, *block[m + 1 :])))


def _joins(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    block = block_of(program, at)
    m = _next_loop(block, at[-1])
    following = None if m is None else block[m]
    if isinstance(following, Loop) and following.values == loop.values:
        yield Step("join", at)


REORDER = Transform(
    "reorder", "two loops, one inside the other, change places", loops_only(_reorders), _reorder
)
DISTRIBUTE = Transform(
    "distribute", "a loop's body, cut before statement `cut`, as two loops",
    loops_only(_distributes), _distribute,
)  # fmt: skip
JOIN = Transform(
    "join", "a loop and the next one, of equal range, as one", loops_only(_joins), _join
)
