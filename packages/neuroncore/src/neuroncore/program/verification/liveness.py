"""Live ranges of buffers, and a program's peak occupancy of SBUF and PSUM.

A buffer lives from its first use to its last. One that was allocated outside of a loop and is used
inside lives through the whole loop: its content may be carried around. SBUF counts bytes per
partition, PSUM whole banks; tensors with a fixed address count where they lie, once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter

from neuroncore.enums import MemorySpace
from neuroncore.findings import Finding
from neuroncore.memory import occupancy
from neuroncore.memory.occupancy import covered, units_between, units_held
from neuroncore.program.ir.nodes import Allocate, Buffer, Call, Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.traversal import accesses
from neuroncore.program.verification.findings import found
from neuroncore.targets import Target


@dataclass(slots=True)
class Life:
    """A buffer and the statements, by number, between which it is alive (last inclusive)."""

    buffer: Buffer
    made: Allocate
    depth: int
    first: int | None = None
    last: int = -1


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that is held of a memory: bytes per partition of SBUF, banks of PSUM."""

    space: MemorySpace
    held: int
    by: tuple[tuple[Buffer, int], ...]
    """Who holds how much then, the largest first."""
    at: Statement | None = None


def lives(program: Program) -> list[Life]:
    """The on-chip buffers that are used, in order of allocation."""
    walker = _Walker()
    walker.block(program.body, [])
    return [life for life in walker.lives.values() if life.first is not None]


@dataclass(slots=True)
class _Walker:
    lives: dict[str, Life] = field(default_factory=dict)
    number: Iterator[int] = field(default_factory=count)

    def block(self, body: tuple[Statement, ...], loops: list[list[Life]]) -> None:
        for statement in body:
            at = next(self.number)
            match statement:
                case Loop():
                    carried: list[Life] = []
                    self.block(statement.body, [*loops, carried])
                    for life in carried:
                        life.first = at if life.first is None else min(life.first, at)
                        life.last = max(life.last, next(self.number))
                case Allocate(buffer):
                    if buffer.space.on_chip:
                        self.lives[buffer.name] = Life(buffer, statement, len(loops))
                case Call():
                    self.touch(statement, at, loops)

    def touch(self, call: Call, at: int, loops: list[list[Life]]) -> None:
        for access in accesses(call):
            life = self.lives.get(access.buffer)
            if life is None:
                continue
            life.first = at if life.first is None else life.first
            life.last = at
            if len(loops) > life.depth:  # the outermost loop that the buffer survives
                loops[life.depth].append(life)


def peaks(program: Program, target: Target) -> dict[MemorySpace, Peak]:
    """The fullest moment of SBUF and of PSUM."""
    every, found = lives(program), dict[MemorySpace, Peak]()
    for space in (MemorySpace.sbuf, MemorySpace.psum):
        mine = [life for life in every if life.buffer.space is space]
        if not mine:
            found[space] = Peak(space, 0, ())
            continue
        spans = [(life.buffer, life.first or 0, life.last + 1) for life in mine]
        times, sizes = zip((-1, 0), *moments(space, target, spans), strict=True)
        held, start = max(
            ((sizes[bisect_right(times, life.first or 0) - 1], life) for life in mine),
            key=itemgetter(0),
        )
        found[space] = Peak(space, held, _holders(space, target, mine, start), start.made)
    return found


def moments(
    space: MemorySpace, target: Target, spans: Sequence[tuple[Buffer, int, int]]
) -> Iterator[tuple[int, int]]:
    """The occupancy by buffers, each from a start to before its end, whenever it changes."""
    changes = sorted(
        (time, comes, number)
        for number, (_, start, end) in enumerate(spans)
        for time, comes in ((start, 1), (end, 0))
        if start < end
    )
    floating, placed, before = 0, {}, 0
    units_of = _units(space, target, map(itemgetter(0), spans))
    for at, (time, comes, number) in enumerate(changes):
        units = units_of[id(spans[number][0])]
        if isinstance(units, int):
            floating += units if comes else -units
        elif comes:
            placed[number] = units
        else:
            del placed[number]
        is_last = at + 1 == len(changes) or changes[at + 1][0] > time
        if is_last and (held := floating + covered(placed.values())) != before:
            yield time, held
            before = held


def _units(
    space: MemorySpace, target: Target, buffers: Iterable[Buffer]
) -> dict[int, int | tuple[int, int]]:
    """By id of a buffer, how many units it holds, or which ones where it has an address."""
    return {
        key: units_held(space, target, b.free_bytes)
        if b.address is None
        else units_between(space, target, b.address[1], b.free_bytes)
        for key, b in {id(buffer): buffer for buffer in buffers}.items()
    }


def _holders(
    space: MemorySpace, target: Target, every: Sequence[Life], start: Life
) -> tuple[tuple[Buffer, int], ...]:
    """The buffers that are alive when `start` comes to life, with their units."""
    now = start.first or 0
    alive = [life.buffer for life in every if (life.first or 0) <= now <= life.last]
    sizes = [(buffer, units_held(space, target, buffer.free_bytes)) for buffer in alive]
    return tuple(sorted(sizes, key=lambda pair: -pair[1]))


def over_capacity(program: Program, target: Target, usable_sbuf: int) -> Iterator[Finding]:
    """A finding for each memory that is too small."""
    for space, peak in peaks(program, target).items():
        holders = [f"{b.name} {size}" for b, size in peak.by]
        violation = occupancy.over_capacity(space, target, peak.held, usable_sbuf, holders)
        if violation is not None:
            yield found(peak.at, violation)
