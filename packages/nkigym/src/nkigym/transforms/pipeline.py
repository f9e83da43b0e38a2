"""pipeline: the parts of a loop's body overlap, each one iteration behind the part before it.

    for i in range(4):        f(0)[0]
        f(i)              →   for i in range(1):
        g(i)                      f(2*i + 1)[1]; g(2*i)[0]; f(2*i + 2)[0]; g(2*i + 1)[1]
                              f(3)[1]; g(2)[0]; g(3)[1]

Engines take instructions in order: f of the next iteration no longer waits behind g of this one.
Tiles that one part makes for another have as many places as there are parts, and take turns; the
loop is written out as often, so that every place is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from neuroncore.program import Affine, Allocate, Loop, Program, Statement
from nkigym.analysis.accesses import ADD
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import LATER
from nkigym.kernels.contents import contents_of
from nkigym.kernels.slots import slot_rewriter, with_slots
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import (
    Body,
    Names,
    allocated,
    changed_body,
    check_count,
    loop_at,
    replaced,
    rewritten,
    used_names,
)
from nkigym.transforms._transform import Transform

SLOT = "slot of the tile"
"""The variable of the slot of an iteration's tile; it belongs to no loop."""

ORDERS = {1: ("0,1",), 2: ("0,1,2", "1,0,2", "0,2,1")}
"""The orders that are offered, by the number of cuts."""

MOST_PLACES = 12
"""Bodies with as many places for a cut are offered one cut, others two."""


def _pipeline(program: Program, step: TransformStep) -> StepResult:
    loop, claims = loop_at(program, step.at), Claims(program, step.at)
    parts = _parts(loop, step.option("cuts", str))
    if loop.trips < len(parts):
        raise TransformError(f"loop {loop.variable} has fewer iterations than {len(parts)} parts")
    crossing = _related(claims, loop, parts)
    front, parts = _with_places(loop, claims.loops, parts, crossing)
    own = [_own(loop, part, crossing, claims) for part in parts]
    order = _order(step.option("order", str), len(parts))
    check_count(_count(program, loop, front, own))
    writer = _Writer(program, loop, own, order)
    return claims.result(replaced(program, step.at, (*front, *writer.body())))


def _count(program: Program, loop: Loop, front: Body, parts: Sequence[Body]) -> int:
    """How many statements the program will have."""
    sizes, count = [contents_of(part).count for part in parts], len(parts)
    groups = (loop.trips - count + 1) // count
    copies = loop.trips - groups * count + bool(groups) * count
    others = contents_of(program.body).count - contents_of(loop.body).count - 1
    return others + len(front) + bool(groups) + copies * sum(sizes)


def _parts(loop: Loop, cuts: str) -> list[Body]:
    """The calls and loops of the body between the cuts."""
    try:
        ends = [0, *map(int, cuts.split(",")), len(loop.body)]
    except ValueError:
        raise TransformError(
            f"cuts are statement numbers with commas between, got {cuts!r}"
        ) from None
    parts: list[Body] = [
        tuple(s for s in loop.body[a:b] if not isinstance(s, Allocate)) for a, b in pairwise(ends)
    ]
    if ends != sorted(ends) or not all(parts):
        raise TransformError(f"cuts {cuts} leave a part of loop {loop.variable} empty")
    return parts


def _order(text: str, count: int) -> list[int]:
    """In which order the parts come that overlap; being of different iterations, any will do."""
    order = [int(n) for n in text.split(",") if n.isdigit()]
    if sorted(order) != list(range(count)):
        raise TransformError(f"an order names each of {count} parts, got {text!r}")
    return order


def _related(claims: Claims, loop: Loop, parts: Sequence[Body]) -> frozenset[str]:
    """The tiles that more than one part touches; claims that nothing else orders the parts."""
    made = set(allocated(loop.body))
    sums = {t.buffer for t in claims.accesses(loop.body) if t.kind == ADD} & made
    touched = [{t.buffer for t in claims.accesses(part)} & made for part in parts]
    for n, first in enumerate(parts):
        for second in parts[n + 1 :]:
            claims.require_disjoint(
                claims.accesses(first, made), claims.accesses(second, made), ((loop, LATER),),
                f"parts of loop {loop.variable} cannot overlap",
            )  # fmt: skip
    crossing = frozenset().union(*(a & b for n, a in enumerate(touched) for b in touched[:n]))
    if crossing & sums:
        raise TransformError(
            f"sums in {min(crossing & sums)} begin with its allocation, in each iteration"
        )
    return crossing


def _with_places(
    loop: Loop, around: Sequence[Loop], parts: Sequence[Body], crossing: frozenset[str]
) -> tuple[Body, list[Body]]:
    """Allocations of the tiles with a place per part, and parts that use place SLOT."""
    turns = Loop(SLOT, 0, len(parts), ())
    made = [s for s in loop.body if isinstance(s, Allocate) and s.buffer.name in crossing]
    old = {s.buffer.name: s.buffer for s in made}
    if any(b.address is not None or b.content is not None for b in old.values()):
        raise TransformError(f"a tile of loop {loop.variable} has a fixed place or content")

    scope = {each.variable: each for each in (*around, loop, turns)}
    change = slot_rewriter(old, turns, scope)
    front = tuple([Allocate(with_slots(s.buffer, turns.trips), s.origin) for s in made])
    return front, [changed_body(part, change, scope=scope) for part in parts]


def _own(loop: Loop, part: Body, crossing: frozenset[str], claims: Claims) -> Body:
    """The part with the allocations of what it alone touches."""
    mine = {t.buffer for t in claims.accesses(part)} - crossing
    made = (s for s in loop.body if isinstance(s, Allocate) and s.buffer.name in mine)
    return (*made, *part)


class _Writer:
    """Writes the parts of iterations out."""

    def __init__(
        self, program: Program, loop: Loop, parts: Sequence[Body], order: Sequence[int]
    ) -> None:
        self.loop, self.order = loop, order
        self.used = Names(used_names(program))
        self.made = [contents_of(part).buffers for part in parts]
        self.slots = [Affine(slot) for slot in range(len(parts))]
        self.parts = parts

    def body(self) -> Body:
        """The prologue of the pipeline, the loop, its remaining iterations, the epilogue."""
        count, trips = len(self.parts), self.loop.trips
        groups = (trips - count + 1) // count
        body = [s for t in range(count - 1) for s in self.time(Affine(t), t)]
        if groups:
            name = self.loop.variable
            inner = [
                s for c in range(count)
                for s in self.time(Affine.variable(name, count) + (count - 1 + c), count - 1 + c)
            ]  # fmt: skip
            body.append(Loop(name, 0, groups, tuple(inner), 1, self.loop.origin))
        done = count - 1 + groups * count
        return (
            *body,
            *(s for t in range(done, trips + count - 1) for s in self.time(Affine(t), t)),
        )

    def time(self, at: Affine, number: int) -> Body:
        """All that happens at one time: part n of iteration `at` - n, where there is one."""
        found: list[Statement] = []
        loop, count = self.loop, len(self.parts)
        first = at * loop.step + loop.start
        for n in self.order:
            if at.is_constant and not 0 <= at.constant - n < loop.trips:
                continue
            value = first + -n * loop.step
            values = {loop.variable: value, SLOT: self.slots[(number - n) % count]}
            made = {name: self.used.unused(name) for name in self.made[n]}
            found += rewritten(self.parts[n], values, made)
        return tuple(found)


def _pipelines(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    places = [n for n, s in enumerate(loop.body) if not isinstance(s, Allocate)][1:]
    for count in (1, 2) if len(places) < MOST_PLACES else (1,):
        for cuts in combinations(places, count) if loop.trips > count else ():
            for order in ORDERS[count]:
                shown = ",".join(map(str, cuts))
                yield TransformStep("pipeline", at, (("cuts", shown), ("order", order)))


PIPELINE = Transform(
    "pipeline", "parts of a loop's body overlap, each an iteration behind the one before",
    _pipelines, _pipeline, rank=15)  # fmt: skip
