"""reuse: a value that is computed twice from the same data is computed once.

    load(a, x[0:128, :])           load(a, x[0:128, :])
    turn(s, a)                     turn(s, a)
    load(b, x[0:128, :])     →     turn(t, a)      →     use(s, s)
    turn(t, b)                     use(s, t)
    use(s, t)

A statement may be a loop: tiles that it makes inside and loop variables may have other names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement
from nkigym.analysis.accesses import READ, carried_state
from nkigym.analysis.claims import Claims, StepResult
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import (
    MAX_CACHED_PROGRAMS,
    Body,
    block_of,
    renamed,
    statement_at,
    with_block,
)
from nkigym.transforms._transform import Transform


@dataclass(slots=True)
class Match:
    """Names of the second statement → names of the first. `own` are the buffers of their block."""

    own: dict[str, Buffer]
    buffers: dict[str, str] = field(default_factory=dict)
    loops: dict[str, str] = field(default_factory=dict)

    def equal(self, a: Statement, b: Statement) -> bool:
        """Whether both do the same, tiles of `own` and of themselves aside."""
        match a, b:
            case Allocate(), Allocate():
                self.buffers[b.buffer.name] = a.buffer.name
                return a.buffer == replace(b.buffer, name=a.buffer.name)
            case Loop(), Loop():
                self.loops[b.variable] = a.variable
                return a.values == b.values and len(a.body) == len(b.body) and all(
                    map(self.equal, a.body, b.body)
                )  # fmt: skip
            case Call(), Call():
                return a.instruction == b.instruction and a.attrs == b.attrs and all(
                    map(self._operand, a.operands.values(), b.operands.values())
                )  # fmt: skip
        return False

    def _operand(self, a: Access | float | None, b: Access | float | None) -> bool:
        if not isinstance(a, Access) or not isinstance(b, Access):
            return type(a) is type(b) and a == b
        if a.indirect is not None or b.indirect is not None or not self._buffer(a.buffer, b.buffer):
            return False
        terms = sorted((self.loops.get(name, name), c) for name, c in b.offset.terms)
        return (a.shape, a.strides, a.dtype, a.offset.constant, list(a.offset.terms)) == (
            b.shape, b.strides, b.dtype, b.offset.constant, terms
        )  # fmt: skip

    def _buffer(self, a: str, b: str) -> bool:
        if b in self.buffers:
            return self.buffers[b] == a
        one, other = self.own.get(a), self.own.get(b)
        if a == b or one is None or other is None or one != replace(other, name=a):
            return a == b
        self.buffers[b] = a
        return True

    @property
    def made(self) -> dict[str, str]:
        """Tiles of the block that the second statement touches in the place of others."""
        return {b: a for b, a in self.buffers.items() if b in self.own}


def _own(block: Iterable[Statement]) -> dict[str, Buffer]:
    made = (s.buffer for s in block if isinstance(s, Allocate))
    return {b.name: b for b in made if b.space.on_chip and b.address is None}


def _reuse(program: Program, step: TransformStep) -> StepResult:
    first, n, m = statement_at(program, step.at), step.at[-1], step.option("other")
    block = block_of(program, step.at)
    if not n < m < len(block):
        raise TransformError(f"{m} is not a later statement")
    found = Match(_own(block))
    if not found.equal(first, block[m]) or not found.made:
        raise TransformError(f"statements {n} and {m} do not do the same")
    claims = Claims(program, step.at)
    _only_made_by(claims, block, {n: set(found.made.values()), m: set(found.made)})
    reads = [t for t in claims.accesses((first,)) if t.buffer not in found.made.values()]
    if (left_off := carried_state(reads)) is not None:
        raise TransformError(f"the second goes on with what the first left in {left_off}")
    between = claims.accesses(block[n + 1 : m])
    claims.require_disjoint(reads, between, (), "what is read is written in between")
    gone = (
        m, *(k for k, s in enumerate(block)
             if isinstance(s, Allocate) and s.buffer.name in found.made),
    )  # fmt: skip
    left = tuple(s for k, s in enumerate(block) if k not in gone)
    return claims.result(with_block(program, step.at, renamed(left, found.made)))


def _only_made_by(
    claims: Claims, block: tuple[Statement, ...], makers: dict[int, set[str]]
) -> None:
    """Raise TransformError where another statement writes the buffers of one of `makers`, or reads
    them before it.
    """
    for maker, names in makers.items():
        for k, statement in enumerate(block):
            for touch in claims.accesses((statement,)) if k != maker else ():
                if touch.buffer in names and (touch.kind != READ or k < maker):
                    raise TransformError(f"{touch.buffer} is not made by one statement alone")


class _Block(NamedTuple):
    """A block, its tiles, and the places of the statements that may do the same as each."""

    statements: Body
    own: dict[str, Buffer]
    alike: list[list[int]]


_blocks: dict[int, _Block] = {}
"""By identity: the options of all statements of a block are listed, one after the other."""


def _described(block: Body) -> _Block:
    known = _blocks.get(id(block))
    if known is None:
        if len(_blocks) >= MAX_CACHED_PROGRAMS:
            _blocks.clear()
        own, groups = _own(block), defaultdict[Hashable, list[int]](list)
        tiles = {name: replace(buffer, name="") for name, buffer in own.items()}
        alike = [groups[_form(statement, tiles)] for statement in block]
        for place, group in enumerate(alike):
            group.append(place)
        known = _blocks[id(block)] = _Block(block, own, alike)
    return known


def _form(statement: Statement, tiles: Mapping[str, Buffer]) -> Hashable:
    """Equal for statements that do the same but for the names of `tiles`."""
    if not isinstance(statement, Call):
        return type(statement)
    accesses = [
        (a.offset, a.shape, a.strides, tiles.get(a.buffer, a.buffer))
        for a in statement.accesses.values()
    ]
    return statement.instruction, *accesses


def _options(program: Program, at: Path, statement: Statement) -> Iterator[TransformStep]:
    block, own, alike = _described(block_of(program, at))
    for m in alike[at[-1]]:
        found = Match(own)
        if m > at[-1] and found.equal(statement, block[m]) and found.made:
            yield TransformStep("reuse", at, (("other", m),))


REUSE = Transform(
    "reuse",
    "a later statement that does the same is left out",
    _options,
    _reuse,
    (Call, Loop),
    rank=14,
)
