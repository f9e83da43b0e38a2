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

from collections.abc import Callable, Iterable

from neuroncore.program import Allocate, Call, Loop, Program, Statement, accesses
from nkigym.analysis.accesses import READ, carried_state
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import ANY, SAME
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import Body, allocated, loop_at, replaced, statement_at, with_body
from nkigym.transforms._transform import Transform
from nkigym.transforms.distribute import cut_loop


def _hoist(program: Program, step: TransformStep) -> StepResult:
    loop, n, moved = _found(program, step)
    claims = Claims(program, step.at[:-1])
    rest = (*loop.body[:n], *loop.body[n + 1 :])
    claims.require_disjoint(
        claims.accesses(loop.body[:n]), claims.accesses((moved,)), ((loop, SAME),),
        "it cannot come first in its loop",
    )  # fmt: skip
    mine = _private(claims, loop, (moved,))
    if _is_invariant(loop, moved, claims, mine, rest):
        return _interned(program, step, loop, claims, mine, rest)
    return _cut(program, step, loop, claims, (moved,), rest)


def _sink(program: Program, step: TransformStep) -> StepResult:
    loop, n, moved = _found(program, step)
    claims = Claims(program, step.at[:-1])
    claims.require_disjoint(
        claims.accesses((moved,)), claims.accesses(loop.body[n + 1 :]), ((loop, SAME),),
        "it cannot come last in its loop",
    )  # fmt: skip
    rest = (*loop.body[:n], *loop.body[n + 1 :])
    return _cut(program, step, loop, claims, rest, (moved,))


def _found(program: Program, step: TransformStep) -> tuple[Loop, int, Statement]:
    if len(step.at) < 2:
        raise TransformError("it is in no loop")
    moved = statement_at(program, step.at)
    if isinstance(moved, Allocate):
        raise TransformError("an allocation moves with what uses it")
    return loop_at(program, step.at[:-1]), step.at[-1], moved


def _private(claims: Claims, loop: Loop, body: Body) -> set[str]:
    """The buffers that each iteration makes and `body` touches."""
    return {t.buffer for t in claims.accesses(body)} & set(allocated(loop.body))


def _is_invariant(loop: Loop, moved: Statement, claims: Claims, mine: set[str], rest: Body) -> bool:
    """Whether the statement does the same in every iteration, and nothing undoes it."""
    if any(name == loop.variable for a in accesses(moved) for name, _ in a.offset.terms):
        return False
    others = claims.accesses(rest)
    if any(t.buffer in mine and t.kind != READ for t in others):
        return False
    return carried_state(claims.accesses((moved,), mine)) is None


def _interned(
    program: Program, step: TransformStep, loop: Loop, claims: Claims, mine: set[str], rest: Body
) -> StepResult:
    moved = loop.body[step.at[-1]]
    writers = [t for t in claims.accesses(rest) if t.kind != READ and t.buffer not in mine]
    claims.require_disjoint(
        claims.accesses((moved,), mine), writers, ((loop, ANY),),
        "it does not do the same in every iteration",
    )  # fmt: skip
    front = tuple(s for s in rest if isinstance(s, Allocate) and s.buffer.name in mine)
    left = tuple(s for s in rest if not (isinstance(s, Allocate) and s.buffer.name in mine))
    if not any(not isinstance(s, Allocate) for s in left):
        return claims.result(replaced(program, step.at[:-1], (*front, moved)))
    made = with_body(loop, left)
    return claims.result(replaced(program, step.at[:-1], (*front, moved, made)))


def _cut(
    program: Program, step: TransformStep, loop: Loop, claims: Claims, first: Body, second: Body
) -> StepResult:
    """The loop cut between two parts of its body."""
    allocations = tuple(s for s in loop.body if isinstance(s, Allocate))
    parts = [tuple(s for s in part if not isinstance(s, Allocate)) for part in (first, second)]
    ordered = with_body(loop, (*allocations, *parts[0], *parts[1]))
    loops = cut_loop(claims, ordered, len(allocations) + len(parts[0]))
    return claims.result(replaced(program, step.at[:-1], loops))


def _in_loops(name: str) -> Callable[[Program, Path, Statement], Iterable[TransformStep]]:
    """Offers the transform `name` for every statement of a loop."""

    def options(program: Program, at: Path, statement: Statement) -> Iterable[TransformStep]:
        return (TransformStep(name, at),) if len(at) > 1 else ()

    return options


HOIST = Transform(
    "hoist", "a statement goes before its loop", _in_loops("hoist"), _hoist, (Call, Loop), rank=8
)
SINK = Transform(
    "sink", "a statement goes behind its loop", _in_loops("sink"), _sink, (Call, Loop), rank=9
)
