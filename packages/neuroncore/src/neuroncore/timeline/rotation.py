"""Which buffers the compiler keeps several copies of, so that iterations may overlap.

A buffer that is allocated inside a loop is a new one in every iteration; the compiler gives it as
many places as the memory has room for, up to one per DMA queue. Outermost loops follow one another,
so each has the memory to itself but for what is allocated outside of loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.program import Allocate, Buffer, Loop, Program, Statement, walk


def copies(program: Program, core: NeuronCore, most: int) -> dict[str, int]:
    """Buffer → how many copies of it take turns."""
    found: dict[str, int] = {}
    for space in (Space.sbuf, Space.psum):
        room = core.free_bytes_of(space) - sum(b.free_bytes for b in _buffers(program.body, space))
        for loop in program.body:
            if not isinstance(loop, Loop):
                continue
            rotating = [b for b in _inside(loop, space) if b.address is None]
            size = sum(buffer.free_bytes for buffer in rotating)
            number = max(1, min(most, room // size)) if size else 1
            found |= {buffer.name: number for buffer in rotating}
    return found


def _inside(loop: Loop, space: Space) -> Iterator[Buffer]:
    return _buffers(tuple(walk(loop.body)), space)


def _buffers(body: tuple[Statement, ...], space: Space) -> Iterator[Buffer]:
    """The buffers of `space` that are allocated right here."""
    for statement in body:
        if isinstance(statement, Allocate) and statement.buffer.space is space:
            yield statement.buffer
