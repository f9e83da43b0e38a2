"""What a program does, counted: instructions and bytes of HBM traffic, loops multiplied out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from neuroncore.enums import HBM
from neuroncore.program import Access, Call, Loop, Program, Statement


@dataclass(frozen=True, slots=True)
class Counts:
    """Executed calls by instruction; bytes that DMAs read from HBM and write to it."""

    calls: Counter[str]
    read_bytes: int
    written_bytes: int


def count(program: Program) -> Counts:
    """The counts of one run of the program."""
    buffers = program.buffers()
    calls: Counter[str] = Counter()
    moved = {"src": 0, "dst": 0}
    for call, times in _executed(program.body, 1):
        calls[call.instruction] += times
        for side in moved:
            value = call.operands.get(side)
            if call.is_dma and isinstance(value, Access) and buffers[value.buffer].space in HBM:
                moved[side] += times * value.size * buffers[value.buffer].dtype.itemsize
    return Counts(calls, moved["src"], moved["dst"])


def _executed(body: tuple[Statement, ...], times: int) -> Iterator[tuple[Call, int]]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from _executed(statement.body, times * statement.trips)
        elif isinstance(statement, Call):
            yield statement, times
