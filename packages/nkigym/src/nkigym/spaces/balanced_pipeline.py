"""Overlaps: the body of a loop cut into parts of about equal work, which then overlap.

There are hundreds of ways to cut a long body, and parts that overlap take as long as the longest of
them. An overlap is the `pipeline` step whose longest part is shortest, of the legal ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise

from neuroncore.program import Allocate, Loop, Program, Statement
from nkigym import transforms
from nkigym.analysis.roofline import Rooflines
from nkigym.transforms import TransformError, TransformStep

Path = tuple[int, ...]

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
    for at, loop in _loops(program.body, ()):
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


def _loops(body: Sequence[Statement], at: Path) -> Iterator[tuple[Path, Loop]]:
    for number, statement in enumerate(body):
        if isinstance(statement, Loop):
            here = (*at, number)
            yield here, statement
            yield from _loops(statement.body, here)
