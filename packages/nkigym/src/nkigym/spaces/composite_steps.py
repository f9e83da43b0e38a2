"""Moves: several steps that only together make a kernel faster.

    for column in range(4):                       t = buffer(bfloat16[128, 4, 8, 512], sbuf)
        for k in range(8):                        for column in range(4):
            t = buffer(bfloat16[128, 512], sbuf)      load(t[:, column, :, :], x[…])
            load(t[:, :], x[128*k …])          →  for column in range(4):
            use(t[:, :])                              for k in range(8):
                                                          use(t[:, column, k, :])

`stage` takes a statement out of `levels` loops, one hoist after the other, and makes the innermost
`wide` loops that are then around it one instruction each. `drain` sinks it instead. `trail`
leaves the first iteration of a loop of transfers where it is and takes the others behind the next
`levels` statements; `lead` takes the first in front of those before: what is needed first comes
first. A move is not a step: a schedule lists the steps of which it consists.

There are hundreds of ways to cut a long body into parts that overlap, which take as long as the
longest of them. A balanced pipeline is the `pipeline` step whose longest part is shortest, of the
legal ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, pairwise

from neuroncore.program import Allocate, Call, Loop, Program, Statement, walk
from nkigym import transforms
from nkigym.analysis.roofline import Rooflines
from nkigym.kernels.step import Path
from nkigym.kernels.tree import block_of, following, places, statement_at
from nkigym.transforms import TransformError, TransformStep

WIDEST = 2
"""Loops that one move makes one instruction of."""
PASSED = 2
"""Statements that one move lets iterations of a loop of transfers pass."""


@dataclass(frozen=True, slots=True)
class CompositeStep:
    """`stage` or `drain` the statement at a place out of `levels` loops, `wide` of them in one; or
    let the first iteration of the loop there `lead`, or the others `trail`, by `levels` statements.
    """

    kind: str
    at: Path
    levels: int
    wide: int


@dataclass(slots=True)
class StepSequence:
    """A program as steps are taken, which are kept."""

    program: Program
    steps: list[TransformStep] = field(default_factory=list)

    def take(self, transform: str, at: Path) -> None:
        """One step more. Raises TransformError."""
        step = TransformStep(transform, at)
        self.program = transforms.apply(self.program, step)
        self.steps.append(step)


def composite_steps(program: Program) -> Iterator[CompositeStep]:
    """Every composite step whose form fits, by place."""
    for at, statement in places(program):
        if len(at) > 1 and not isinstance(statement, Allocate):
            yield from _out_of_loops(at, statement)
    for at, loop in places(program):
        if isinstance(loop, Loop) and loop.trips > 1 and _transfers(loop):
            yield from _past_neighbours(at, block_of(program, at))


def _out_of_loops(at: Path, statement: Statement) -> Iterator[CompositeStep]:
    is_transfer = isinstance(statement, Call) and statement.is_dma
    kinds = ("stage", "drain") if is_transfer else ("stage",)
    for levels in range(1, len(at)):
        around = levels + _depth(statement)
        for wide in range(min(WIDEST, around) + 1):
            yield from (CompositeStep(kind, at, levels, wide) for kind in kinds)


def _past_neighbours(at: Path, block: tuple[Statement, ...]) -> Iterator[CompositeStep]:
    others = {"lead": block[: at[-1]], "trail": block[at[-1] + 1 :]}
    for kind, passed in others.items():
        count = sum(not isinstance(s, Allocate) for s in passed)
        yield from (CompositeStep(kind, at, n, 0) for n in range(1, min(PASSED, count) + 1))


def apply_composite(
    program: Program, move: CompositeStep
) -> tuple[Program, tuple[TransformStep, ...]]:
    """The program after a composite step, and its steps. Raises TransformError where one fails."""
    if move.kind in ("lead", "trail"):
        return _peeled(program, move)
    taking, at = StepSequence(program), move.at
    transform = {"stage": "hoist", "drain": "sink"}[move.kind]
    for _ in range(move.levels):
        at = _moved_out(taking, at, transform)
    for _ in range(move.wide):
        _widen(taking, at)
    return taking.program, tuple(taking.steps)


def _peeled(program: Program, move: CompositeStep) -> tuple[Program, tuple[TransformStep, ...]]:
    """The first iteration of a loop before other statements, its other iterations behind them."""
    taking, around, number = StepSequence(program), move.at[:-1], move.at[-1]
    before = block_of(program, move.at)
    taking.take("peel", move.at)
    if move.kind == "trail":
        number += len(block_of(taking.program, move.at)) - len(before)
    elif len(block_of(taking.program, move.at)) != len(before) + 1:
        raise TransformError("an iteration is more than one statement")
    for _ in range(move.levels):
        block = block_of(taking.program, move.at)
        passed = number if move.kind == "trail" else _previous(block, number)
        taking.take("swap", (*around, passed))
        number = (following(block, number) or number) if move.kind == "trail" else number - 1
    return taking.program, tuple(taking.steps)


def _previous(block: tuple[Statement, ...], number: int) -> int:
    """The number of the statement before, allocations apart."""
    return max(n for n in range(number) if not isinstance(block[n], Allocate))


def _moved_out(taking: StepSequence, at: Path, transform: str) -> Path:
    """The statement in front of its loop (hoist) or behind it (sink); where it is then."""
    taking.take(transform, at)
    block, number = block_of(taking.program, at[:-1]), at[-2]
    while isinstance(block[number], Allocate):
        number += 1
    return (*at[:-2], number + (transform == "sink"))


def _widen(taking: StepSequence, at: Path) -> None:
    """One loop of the nest at a place goes into its instruction: the innermost that can.

    Raises TransformError where none can.
    """
    depth = _nest(statement_at(taking.program, at))
    why: TransformError | None = None
    for chosen in reversed(range(depth)):
        tried = StepSequence(taking.program)
        try:
            for level in range(chosen, depth - 1):
                tried.take("reorder", (*at, *(0,) * level))
            tried.take("widen", (*at, *(0,) * (depth - 1)))
        except TransformError as rejected:
            why = why or rejected
            continue
        taking.program = tried.program
        taking.steps += tried.steps
        return
    raise why or TransformError("no loop is around the instruction")


def _transfers(loop: Loop) -> bool:
    """Whether a loop does nothing but move data between memories."""
    calls = [s for s in walk(loop.body) if isinstance(s, Call)]
    return bool(calls) and all(call.is_dma for call in calls)


def _depth(statement: Statement) -> int:
    """How many loops, one in the other, a statement is made of."""
    return 1 + _depth(statement.body[0]) if isinstance(statement, Loop) else 0


def _nest(statement: Statement) -> int:
    """The same, where they contain nothing but one call; 0 where they contain more."""
    depth = 0
    while isinstance(statement, Loop):
        if len(statement.body) != 1:
            return 0
        statement, depth = statement.body[0], depth + 1
    return depth


# -- parts of a loop that overlap ---------------------------------------------------------------

ORDERS: Mapping[int, tuple[str, ...]] = {
    2: ("0,1", "1,0"),
    3: ("0,1,2", "1,0,2", "0,2,1", "1,2,0", "2,1,0"),
    4: ("0,1,2,3", "1,0,2,3", "1,2,0,3", "1,2,3,0", "3,2,1,0"),
}
"""In which order the parts come that overlap, by how many there are."""
TRIED = 4
"""Ways to cut that are tried, the best first."""


@dataclass(frozen=True, slots=True)
class BalancedPipeline:
    """The parts of the loop at a place overlap, in this order."""

    at: Path
    parts: int
    order: str

    kind = "overlap"


def balanced_pipelines(program: Program) -> Iterator[BalancedPipeline]:
    """Every overlap whose form fits, by place."""
    for at, loop in places(program):
        if not isinstance(loop, Loop):
            continue
        count = sum(not isinstance(s, Allocate) for s in loop.body)
        for parts, orders in ORDERS.items():
            if parts <= min(count, loop.trips):
                yield from (BalancedPipeline(at, parts, order) for order in orders)


def apply_balanced_pipeline(
    program: Program, overlap: BalancedPipeline, rooflines: Rooflines
) -> tuple[Program, tuple[TransformStep]]:
    """The program after it, and its step. Raises TransformError where no cut can be taken."""
    why: TransformError | None = None
    work = rooflines.work(program, overlap.at)
    for cuts in islice(_cuts(work, overlap.parts), TRIED):
        options = (("cuts", ",".join(map(str, cuts))), ("order", overlap.order))
        step = TransformStep("pipeline", overlap.at, options)
        try:
            return transforms.apply(program, step), (step,)
        except TransformError as rejected:
            why = why or rejected
    raise why or TransformError("there are not as many statements")


def _cuts(work: Sequence[tuple[int, float]], parts: int) -> list[tuple[int, ...]]:
    """Where to cut, by number of statement; the shortest longest part first."""
    ways = []
    for chosen in combinations(range(1, len(work)), parts - 1):
        ends = pairwise((0, *chosen, len(work)))
        longest = max(sum(ns for _, ns in work[a:b]) for a, b in ends)
        ways.append((longest, tuple(work[n][0] for n in chosen)))
    return [cuts for _, cuts in sorted(ways)]
