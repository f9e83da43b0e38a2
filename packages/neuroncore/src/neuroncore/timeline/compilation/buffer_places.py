"""Places of the buffers of loops: iterations overlap where each has a place of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Allocate,
    Buffer,
    Loop,
    Program,
    Statement,
    accesses,
    walk,
)
from neuroncore.records import record
from neuroncore.timeline.compilation.dead_stores import DefinedElements
from neuroncore.timeline.compilation.loop_transformations import allocates
from neuroncore.timeline.compilation.rewriting import Legality


@record
class PingPong(Allocate):
    """An allocation of one of two places."""


def privatized(program: Program, core: NeuronCore) -> Program:
    """The program with each SBUF buffer that every iteration writes anew allocated in its loop."""
    users, changed, moved = _users(program), dict[int, Loop](), set[str]()
    legality = Legality(program)
    for buffer in _buffers(program.body, MemorySpace.sbuf):
        match users.get(buffer.name):
            case [Loop() as loop] if legality.may_live_longer(buffer.name):
                inside = _allocated_inside(changed.get(id(loop), loop), buffer, legality)
                if inside is not None:
                    changed[id(loop)] = inside
                    moved.add(buffer.name)
    body = (changed.get(id(s), s) for s in program.body)
    kept = (s for s in body if not allocates(s, moved))
    return replace(program, body=tuple(kept))


def _users(program: Program) -> dict[str, list[Statement]]:
    """Buffer → the outermost statements that use it."""
    found: dict[str, list[Statement]] = {}
    for statement in program.body:
        for name in {access.buffer for access in accesses(statement)}:
            found.setdefault(name, []).append(statement)
    return found


def _allocated_inside(loop: Loop, buffer: Buffer, legality: Legality) -> Loop | None:
    """The loop that allocates the buffer before its first use, or a loop inside does; None where
    an iteration may need what another one wrote.
    """
    at, first = next((n, s) for n, s in enumerate(loop.body) if _uses(s, buffer.name))
    if isinstance(first, Loop) and not any(_uses(s, buffer.name) for s in loop.body[at + 1 :]):
        inner = _allocated_inside(first, buffer, legality)
        if inner is not None:
            return replace(loop, body=(*loop.body[:at], inner, *loop.body[at + 1 :]))
    if not DefinedElements(buffer, legality.covers, are_defined=False).cover(loop.body):
        return None
    return replace(loop, body=(*loop.body[:at], PingPong(buffer), *loop.body[at:]))


def _uses(statement: Statement, name: str) -> bool:
    return any(access.buffer == name for access in accesses(statement))


def copies(program: Program, core: NeuronCore, most: int) -> dict[str, int]:
    """Buffer → how many copies iterations rotate through; small buffers get another one first."""
    found: dict[str, int] = {}
    for space in (MemorySpace.sbuf, MemorySpace.psum):
        unused = core.free_bytes_of(space) - sum(
            b.free_bytes for b in _buffers(program.body, space)
        )
        for loop in program.body:
            if isinstance(loop, Loop):
                rotating = [b for b in _inside(loop, space) if b.address is None]
                found |= _shared_out(rotating, unused, most)
    pairs = [s.buffer.name for s in walk(program.body) if isinstance(s, PingPong)]
    return found | {name: min(found[name], 2) for name in pairs}


def _shared_out(buffers: Sequence[Buffer], unused: int, most: int) -> dict[str, int]:
    """How many copies of each buffer fit, up to `most`; powers of two, so that the
    buffers of a loop are soon all in their first place again.
    """
    found = dict.fromkeys((b.name for b in buffers), 1)
    unused -= sum(b.free_bytes for b in buffers)
    by_size = sorted(buffers, key=lambda b: b.free_bytes)
    for number in (2**power for power in range(1, most.bit_length())):
        for buffer in by_size:
            more = (number - found[buffer.name]) * buffer.free_bytes
            if more > unused:
                return found
            unused -= more
            found[buffer.name] = number
    return found


def _inside(loop: Loop, space: MemorySpace) -> Iterator[Buffer]:
    return _buffers(tuple(walk(loop.body)), space)


def _buffers(body: tuple[Statement, ...], space: MemorySpace) -> Iterator[Buffer]:
    """The buffers of `space` that are allocated right here."""
    for statement in body:
        if isinstance(statement, Allocate) and statement.buffer.space is space:
            yield statement.buffer
