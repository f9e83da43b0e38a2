"""hoist and sink: a statement leaves its loop, to stand before or behind it (compute-at).

    for n in range(4):                          a = buffer(bfloat16[128, 2048], sbuf)
        a = buffer(bfloat16[128, 2048], sbuf)   load(a, x[0:128, :])
        load(a, x[0:128, :])                →   for n in range(4):
        b = buffer(bfloat16[128, 512], sbuf)        b = buffer(bfloat16[128, 512], sbuf)
        load(b, y[512*n …])                         load(b, y[512*n …])
        use(a, b)                                   use(a, b)

What is the same in every iteration is done once; what is not gets a loop of its own, and the tiles
that it makes for the iterations get a slot each.
"""

from __future__ import annotations

from collections.abc import Iterable

from neuroncore.program import Allocate, Call, Loop, Program, Statement, accesses
from nkigym.loops.apart import ANY, SAME
from nkigym.loops.order import cut_loop
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.touches import READ, goes_on_with
from nkigym.loops.transform import Claims, Taken, Transform
from nkigym.loops.tree import Body, allocated, loop_at, replaced, statement_at, with_body


def _hoist(program: Program, step: Step) -> Taken:
    loop, n, moved = _found(program, step)
    claims = Claims(program, step.at[:-1])
    rest = (*loop.body[:n], *loop.body[n + 1 :])
    claims.apart(
        claims.touches(loop.body[:n]), claims.touches((moved,)), ((loop, SAME),),
        "it cannot come first in its loop",
    )  # fmt: skip
    mine = _private(claims, loop, (moved,))
    if _is_invariant(loop, moved, claims, mine, rest):
        return _once(program, step, loop, claims, mine, rest)
    return _apart(program, step, loop, claims, (moved,), rest)


def _sink(program: Program, step: Step) -> Taken:
    loop, n, moved = _found(program, step)
    claims = Claims(program, step.at[:-1])
    claims.apart(
        claims.touches((moved,)), claims.touches(loop.body[n + 1 :]), ((loop, SAME),),
        "it cannot come last in its loop",
    )  # fmt: skip
    rest = (*loop.body[:n], *loop.body[n + 1 :])
    return _apart(program, step, loop, claims, rest, (moved,))


def _found(program: Program, step: Step) -> tuple[Loop, int, Statement]:
    if len(step.at) < 2:
        raise Refused("it is in no loop")
    moved = statement_at(program, step.at)
    if isinstance(moved, Allocate):
        raise Refused("an allocation moves with what uses it")
    return loop_at(program, step.at[:-1]), step.at[-1], moved


def _private(claims: Claims, loop: Loop, body: Body) -> set[str]:
    """The buffers that each iteration makes and `body` touches."""
    return {t.buffer for t in claims.touches(body)} & set(allocated(loop.body))


def _is_invariant(loop: Loop, moved: Statement, claims: Claims, mine: set[str], rest: Body) -> bool:
    """Whether the statement does the same in every iteration, and nothing undoes it."""
    if any(name == loop.variable for a in accesses(moved) for name, _ in a.offset.terms):
        return False
    others = claims.touches(rest)
    if any(t.buffer in mine and t.kind != READ for t in others):
        return False
    return goes_on_with(claims.touches((moved,), mine)) is None


def _once(
    program: Program, step: Step, loop: Loop, claims: Claims, mine: set[str], rest: Body
) -> Taken:
    moved = loop.body[step.at[-1]]
    writers = [t for t in claims.touches(rest) if t.kind != READ and t.buffer not in mine]
    claims.apart(
        claims.touches((moved,), mine), writers, ((loop, ANY),),
        "it does not do the same in every iteration",
    )  # fmt: skip
    front = tuple(s for s in rest if isinstance(s, Allocate) and s.buffer.name in mine)
    left = tuple(s for s in rest if not (isinstance(s, Allocate) and s.buffer.name in mine))
    if not any(not isinstance(s, Allocate) for s in left):
        return claims.taken(replaced(program, step.at[:-1], (*front, moved)))
    made = with_body(loop, left)
    return claims.taken(replaced(program, step.at[:-1], (*front, moved, made)))


def _apart(
    program: Program, step: Step, loop: Loop, claims: Claims, first: Body, second: Body
) -> Taken:
    """The loop cut between two parts of its body."""
    allocations = tuple(s for s in loop.body if isinstance(s, Allocate))
    parts = [tuple(s for s in part if not isinstance(s, Allocate)) for part in (first, second)]
    ordered = with_body(loop, (*allocations, *parts[0], *parts[1]))
    loops = cut_loop(claims, ordered, len(allocations) + len(parts[0]))
    return claims.taken(replaced(program, step.at[:-1], loops))


def _options(name: str) -> Transform:
    def options(program: Program, at: Path, statement: Statement) -> Iterable[Step]:
        return (Step(name, at),) if len(at) > 1 else ()

    does = {"hoist": "a statement goes before its loop", "sink": "a statement goes behind its loop"}
    take = {"hoist": _hoist, "sink": _sink}[name]
    return Transform(name, does[name], options, take, (Call, Loop))


HOIST = _options("hoist")
SINK = _options("sink")
