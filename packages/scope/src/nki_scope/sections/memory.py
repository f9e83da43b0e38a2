"""Tensors in SBUF and PSUM over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.program import Allocate, Buffer, Call, Loop, Statement, accesses
from neuroncore.targets import resolve_target
from neuroncore.timeline import Timeline, machine, ticks_per_ns
from nki_scope.document import Columns

SPACES = (MemorySpace.sbuf, MemorySpace.psum)


@dataclass(slots=True)
class Life:
    """A buffer from its first use to its last, in instructions by number and in ticks."""

    buffer: Buffer
    first: int
    last: int
    start: int = 0
    end: int = 0


def memory_section(
    timeline: Timeline, instances: Sequence[int], columns: Columns
) -> dict[str, Any]:
    """Capacity, what is occupied over time, and the buffers with their times and addresses.

    Buffers without an address are shown at the lowest free one. Their lives are left out where
    not every iteration was played.
    """
    per_ns = ticks_per_ns(machine(timeline.target))
    occupied = timeline.occupancy()
    lives = [] if timeline.repeats else list(_lives(timeline.program.body))
    starts, ends = _times(timeline, instances, per_ns)
    for life in lives:
        life.start = int(starts[life.first : life.last + 1].min())
        life.end = int(ends[life.first : life.last + 1].max())
    target = resolve_target(timeline.target)
    sizes = (target.usable_sbuf_bytes, 1), (target.psum_bytes, target.psum_bank_bytes)
    return {
        space.name: {
            "bytes": size, "unit": unit,
            "time": columns.add([round(time * per_ns) for time, _ in occupied[space.name]]),
            "held": columns.add([held for _, held in occupied[space.name]]),
            **_buffers([life for life in lives if life.buffer.space is space], unit, columns),
        }
        for space, (size, unit) in zip(SPACES, sizes, strict=True)
    }  # fmt: skip


def _buffers(lives: Sequence[Life], unit: int, columns: Columns) -> dict[str, Any]:
    buffers = {id(life.buffer): life.buffer for life in lives}
    numbers = {key: number for number, key in enumerate(buffers)}
    return {
        "buffers": [
            {"name": b.name, "shape": b.shape, "dtype": b.dtype.name, "bytes": b.free_bytes}
            for b in buffers.values()
        ],
        "lives": {
            "buffer": columns.add([numbers[id(life.buffer)] for life in lives]),
            "start": columns.add(map(attrgetter("start"), lives)),
            "end": columns.add(map(attrgetter("end"), lives)),
            "address": columns.add(_addresses(lives, unit)),
        },
    }


def _lives(body: tuple[Statement, ...]) -> Iterator[Life]:
    """Every allocation that is used, in the order in which the buffers are allocated."""
    now: dict[str, Life] = {}
    made: list[Life] = []
    number = 0
    for statement in _executed(body):
        if isinstance(statement, Allocate):
            if statement.buffer.space.on_chip:
                now[statement.buffer.name] = life = Life(statement.buffer, number, -1)
                made.append(life)
            continue
        for access in accesses(statement):
            life = now.get(access.buffer)
            if life is not None:
                life.first = number if life.last < 0 else life.first
                life.last = number
        number += 1
    return (life for life in made if life.last >= 0)


def _executed(body: tuple[Statement, ...]) -> Iterator[Allocate | Call]:
    for statement in body:
        if isinstance(statement, Loop):
            for _ in range(statement.trips):
                yield from _executed(statement.body)
        else:
            yield statement


def _times(
    timeline: Timeline, instances: Sequence[int], per_ns: float
) -> tuple[np.ndarray, np.ndarray]:
    """When each instruction accesses its operands and when its result is there, in ticks."""
    bars = timeline.bars
    if not bars:
        return np.zeros(0, int), np.zeros(0, int)
    first = np.flatnonzero(np.diff(np.asarray(instances), prepend=-1))
    busy_ns = (bar.end_ns if bar.kind == "table_load" else bar.start_ns for bar in bars)
    starts = np.array([round(start * per_ns) for start in busy_ns])
    ends = np.array([round(bar.end_ns * per_ns) for bar in bars])
    return np.minimum.reduceat(starts, first), np.maximum.reduceat(ends, first)


def _addresses(lives: Sequence[Life], unit: int) -> list[int]:
    """The byte in each partition where a buffer is drawn, in whole units."""
    placed: list[int] = [0] * len(lives)
    present: list[tuple[int, int, int]] = []  # address, behind, end
    for number in sorted(range(len(lives)), key=lambda n: (lives[n].start, lives[n].end)):
        life = lives[number]
        size = -(-life.buffer.free_bytes // unit) * unit
        present = [other for other in present if other[2] > life.start]
        fixed = life.buffer.address
        placed[number] = address = _lowest(present, size) if fixed is None else fixed[1]
        present.append((address, address + size, life.end))
    return placed


def _lowest(present: Sequence[tuple[int, int, int]], size: int) -> int:
    """The first address with so many free bytes behind it."""
    at = 0
    for low, behind, _ in sorted(present):
        if low - at >= size:
            break
        at = max(at, behind)
    return at
