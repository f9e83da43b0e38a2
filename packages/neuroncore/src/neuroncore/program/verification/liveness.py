"""Live ranges of buffers, and a program's peak occupancy of SBUF and PSUM.

A buffer lives from its first use to its last. One that was allocated outside of a loop and is used
inside lives through the whole loop: its content may be carried around. SBUF counts bytes per
partition, PSUM whole banks; tensors with a fixed address count where they lie, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

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
    every = lives(program)
    found: dict[MemorySpace, Peak] = {}
    for space in (MemorySpace.sbuf, MemorySpace.psum):
        mine = [life for life in every if life.buffer.space is space]
        moments = [_held(space, mine, life, target) for life in mine]
        found[space] = max(moments, key=lambda p: p.held, default=Peak(space, 0, ()))
    return found


def _held(space: MemorySpace, every: list[Life], start: Life, target: Target) -> Peak:
    """The occupancy when `start` comes to life."""
    now = start.first or 0
    alive = [life.buffer for life in every if (life.first or 0) <= now <= life.last]
    sizes = [(b, units_held(space, target, b.free_bytes)) for b in alive]
    floating = sum(size for b, size in sizes if b.address is None)
    placed = covered(
        units_between(space, target, b.address[1], b.free_bytes)
        for b in alive
        if b.address is not None
    )
    by = tuple(sorted(sizes, key=lambda pair: -pair[1]))
    return Peak(space, floating + placed, by, start.made)


def over_capacity(program: Program, target: Target, usable_sbuf: int) -> Iterator[Finding]:
    """A finding for each memory that is too small."""
    for space, peak in peaks(program, target).items():
        holders = [f"{b.name} {size}" for b, size in peak.by]
        violation = occupancy.over_capacity(space, target, peak.held, usable_sbuf, holders)
        if violation is not None:
            yield found(peak.at, violation)
