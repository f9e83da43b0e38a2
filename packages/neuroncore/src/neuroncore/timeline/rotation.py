"""Which buffers the compiler keeps several copies of, so that iterations may overlap.

A buffer that is allocated inside a loop is a new one in every iteration; the compiler gives it as
many places as the memory has room for, up to one per DMA queue. Memory is shared out evenly: what
is allocated outside of loops once, the rest in equal numbers of copies.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.program import Allocate, Buffer, Loop, Program, Statement


def copies(program: Program, core: NeuronCore, most: int) -> dict[str, int]:
    """Buffer → how many copies of it take turns."""
    found: dict[str, int] = {}
    for space in (Space.sbuf, Space.psum):
        unit = core.target.psum_bank_bytes if space is Space.psum else 1
        room = core.free_bytes_of(space) // unit
        once, looped = 0, 0
        rotating = []
        for buffer, inside in _allocations(program.body):
            if buffer.space is not space:
                continue
            size = -(-buffer.free_bytes // unit)
            if inside and buffer.address is None:
                looped += size
                rotating.append(buffer.name)
            else:
                once += size
        number = max(1, min(most, (room - once) // looped)) if looped else 1
        found |= dict.fromkeys(rotating, number)
    return found


def _allocations(
    body: tuple[Statement, ...], inside: bool = False
) -> Iterator[tuple[Buffer, bool]]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from _allocations(statement.body, True)
        elif isinstance(statement, Allocate) and statement.buffer.space.on_chip:
            yield statement.buffer, inside
