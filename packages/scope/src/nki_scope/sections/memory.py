"""Tensors in SBUF and PSUM over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from neuroncore.enums import MemorySpace
from neuroncore.program import Buffer
from neuroncore.targets import resolve_target
from neuroncore.timeline import Timeline, machine, ticks_per_ns
from nki_scope.document import Columns, ticks

SPACES = (MemorySpace.sbuf, MemorySpace.psum)


class Life(NamedTuple):
    """A buffer from its first use to its last, in ticks."""

    buffer: Buffer
    start: int
    end: int


def memory_section(timeline: Timeline, columns: Columns) -> dict[str, Any]:
    """Capacity, what is occupied over time, and the buffers with their times and addresses.

    Buffers without an address are shown at the lowest free one. Their lives are left out where
    not every iteration was played.
    """
    per_ns = ticks_per_ns(machine(timeline.target))
    occupied = timeline.occupancy()
    lives = [] if timeline.repeats else [
        Life(buffer, round(start * per_ns), round(end * per_ns))
        for buffer, start, end in timeline.lives()
    ]  # fmt: skip
    target = resolve_target(timeline.target)
    sizes = (target.usable_sbuf_bytes, 1), (target.psum_bytes, target.psum_bank_bytes)
    return {
        space.name: {
            "bytes": size, "unit": unit,
            "time": columns.add(ticks([time for time, _ in occupied[space.name]], per_ns)),
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
            "start": columns.add([life.start for life in lives]),
            "end": columns.add([life.end for life in lives]),
            "address": columns.add(_addresses(lives, unit)),
        },
    }


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
