"""A plan played under random latencies, many timings at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokenplan.checker.memory import Memory
from tokenplan.checker.queues import Queues
from tokenplan.checker.records import Plan

_CELLS = 4_000_000
"""Times (instances × timings) that are held at once."""
_SPREAD = 6.0
"""Queues differ in speed by up to this power of two, either way."""


@dataclass(frozen=True, slots=True)
class Times:
    """start and end (instances, timings) of every instance, in mean durations of one."""

    start: np.ndarray
    end: np.ndarray


def play(
    queues: Queues, plan: Plan, order: list[int], duration: np.ndarray, without: int | None = None
) -> Times:
    """Every instance starts when its queue is free and its waits hold.

    `duration` is (instances, timings); `order` is one in which they can start. A wait holds when
    the instance that brings the counter to its threshold ends. `without` drops a wait.
    """
    unrolled = queues.unrolled
    number = {name: n for n, name in enumerate(queues.names)}
    start, end = np.zeros_like(duration), np.zeros_like(duration)
    ops, numbers = unrolled.op.tolist(), unrolled.number.tolist()
    where, places = queues.queue.tolist(), queues.place.tolist()
    for instance in order:
        queue, place = where[instance], places[instance]
        begins = start[instance]
        if place > 1:
            begins[:] = end[queues.order[queue][place - 2]]
        for n in queues.by_op.get(ops[instance], ()):
            count = int(queues.thresholds[n][numbers[instance]])
            if n != without and count > 0:
                counted = queues.order[number[plan.waits[n].queue]][count - 1]
                np.maximum(begins, end[counted], out=begins)
        np.add(begins, duration[instance], out=end[instance])
    return Times(start, end)


def random_durations(queues: Queues, timings: int, random: np.random.Generator) -> np.ndarray:
    """(instances, timings): exponential times; the speeds of queues differ by timing."""
    size = queues.unrolled.size
    speed = 2.0 ** random.uniform(-_SPREAD, _SPREAD, (len(queues.names), timings))
    durations = random.standard_exponential((size, timings), np.float32)
    return durations * speed[queues.queue].astype(np.float32)


def timings_at_once(queues: Queues, timings: int) -> Iterator[int]:
    """`timings` in portions that fit in memory."""
    most = max(1, _CELLS // max(1, queues.unrolled.size))
    for first in range(0, timings, most):
        yield min(most, timings - first)


def races(
    queues: Queues, needed: list[list[int]], times: Times
) -> dict[tuple[int, int], np.ndarray]:
    """(earlier, later) -> (timings,), where `later` starts before `earlier` has ended.

    `needed` are the last places on every queue that must be done (of `needed_places`): the rest of
    a queue has ended before them.
    """
    found = {}
    for later, row in enumerate(needed):
        for queue, place in enumerate(row):
            if place:
                earlier = int(queues.order[queue][place - 1])
                early = times.start[later] < times.end[earlier]
                if early.any():
                    found[earlier, later] = early
    return found


# -- what is computed, in symbols ------------------------------------------------------------------


_PRIME = (1 << 61) - 1
_FACTOR = 1_000_003


@dataclass(slots=True)
class Machine:
    """Memory cells and what every instance has read so far.

    An instance writes a number made of what it read, its own number and the place in its output;
    accumulation adds such a number, so it commutes. Two histories give one number with a chance of
    about 2⁻⁶¹.
    """

    memory: Memory
    cells: list[int]
    read: list[int]

    @classmethod
    def new(cls, memory: Memory) -> Machine:
        """No instance has run; every cell holds a number of its own."""
        initial = [_mix(_mix(1, n), 17) for n in range(len(memory.owners))]
        return cls(memory, initial, [0] * len(memory.accesses))

    def reads(self, instance: int) -> None:
        """The instance reads everything that it reads."""
        value = _mix(7, instance)
        for mode, cells in self.memory.accesses[instance]:
            if mode == "R":
                for cell in cells:
                    value = _mix(value, self.cells[cell])
        self.read[instance] = value

    def writes(self, instance: int) -> None:
        """The instance writes everything that it writes, from what it has read."""
        for number, (mode, cells) in enumerate(self.memory.accesses[instance]):
            if mode == "R":
                continue
            result = _mix(self.read[instance], number)
            for place, cell in enumerate(cells):
                made = _mix(result, place)
                self.cells[cell] = made if mode == "W" else (self.cells[cell] + made) % _PRIME


def in_sequence(memory: Memory) -> Machine:
    """The machine after all instances, one after another in program order."""
    machine = Machine.new(memory)
    for instance in range(len(memory.accesses)):
        machine.reads(instance)
        machine.writes(instance)
    return machine


def at_times(
    memory: Memory, start: np.ndarray, end: np.ndarray, random: np.random.Generator
) -> Machine:
    """The machine after one timing, start and end (instances,).

    Every instance reads and then writes somewhere between its start and its end: at one of them
    or at random times, drawn for each.
    """
    size = len(start)
    share = np.sort(random.choice([0.0, random.random(), 1.0], (size, 2)), axis=1)
    moments = start[:, None] + share * (end - start)[:, None]
    moments = np.where(share == 1.0, end[:, None], moments)  # exactly, as waits compare with it
    instances, phases = np.indices((size, 2))
    order = np.lexsort((phases.ravel(), instances.ravel(), moments.ravel()))
    machine = Machine.new(memory)
    for event in order.tolist():
        instance, writes = divmod(event, 2)
        (machine.writes if writes else machine.reads)(instance)
    return machine


def differences(expected: Machine, machine: Machine) -> tuple[list[int], list[int]]:
    """Instances that read something else, cells that hold something else in the end."""
    reads = [n for n, (a, b) in enumerate(zip(expected.read, machine.read, strict=True)) if a != b]
    both = zip(expected.cells, machine.cells, strict=True)
    return reads, [n for n, (a, b) in enumerate(both) if a != b]


def _mix(value: int, other: int) -> int:
    return ((value ^ (value >> 29)) * _FACTOR + other * 0x9E3779B97F4A7C15 + 1) % _PRIME
