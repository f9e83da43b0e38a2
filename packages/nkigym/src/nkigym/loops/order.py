"""reorder, distribute, join, swap: the same iterations in another order.

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

from neuroncore.program import Affine, Allocate, Call, Loop, Program, Statement, walk
from nkigym.loops.apart import EARLIER, LATER
from nkigym.loops.slots import expand_body
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.transform import Claims, Taken, Transform
from nkigym.loops.tree import (
    Body,
    allocated,
    block_of,
    following,
    fresh,
    loop_at,
    replaced,
    statement_at,
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
    front, grown = expand_body(loop, claims.loops, frozenset(before & after))
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
    m = following(block, n)
    return m if m is not None and isinstance(block[m], Loop) else None


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
    first, second = _of_one_name(program, first, second)
    private = (*allocated(first.body), *allocated(second.body))
    claims.apart(
        claims.touches(first.body, private), claims.touches(second.body, private),
        ((first, LATER),), f"loops {first.variable} and {second.variable} cannot be one",
    )  # fmt: skip
    made = with_body(first, first.body + second.body)
    return claims.taken(
        with_block(program, step.at, (*block[:n], *block[n + 1 : m], made, *block[m + 1 :]))
    )


def _of_one_name(program: Program, first: Loop, second: Loop) -> tuple[Loop, Loop]:
    """Both with the first's variable, or a fresh one where a loop inside the second has it."""
    inner = {s.variable for s in walk(second.body) if isinstance(s, Loop)}
    name = fresh(program, first.variable) if first.variable in inner else first.variable
    return _with_variable(first, name), _with_variable(second, name)


def _with_variable(loop: Loop, name: str) -> Loop:
    if loop.variable == name:
        return loop
    body = substituted(loop.body, {loop.variable: Affine.variable(name)})
    return Loop(name, loop.start, loop.stop, body, loop.step, loop.origin)


def _joins(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    block = block_of(program, at)
    m = _next_loop(block, at[-1])
    following = None if m is None else block[m]
    if isinstance(following, Loop) and following.values == loop.values:
        yield Step("join", at)


def _swap(program: Program, step: Step) -> Taken:
    block, n = block_of(program, step.at), step.at[-1]
    first = statement_at(program, step.at)
    m = following(block, n)
    if isinstance(first, Allocate) or m is None:
        raise Refused("there are no two statements")
    claims = Claims(program, step.at)
    claims.apart(claims.touches((first,)), claims.touches((block[m],)), (), "they need their order")
    swapped = (*block[:n], *block[n + 1 : m], block[m], first, *block[m + 1 :])
    return claims.taken(with_block(program, step.at, swapped))


def _swaps(program: Program, at: Path, statement: Statement) -> Iterator[Step]:
    if following(block_of(program, at), at[-1]):
        yield Step("swap", at)


SWAP = Transform("swap", "a statement and the next one change places", _swaps, _swap, (Call, Loop))
REORDER = Transform(
    "reorder", "two loops, one inside the other, change places", _reorders, _reorder
)
DISTRIBUTE = Transform(
    "distribute", "a loop's body, cut before statement `cut`, as two loops",
    _distributes, _distribute,
)  # fmt: skip
JOIN = Transform("join", "a loop and the next one, of equal range, as one", _joins, _join)
