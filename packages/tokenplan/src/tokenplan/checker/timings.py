"""A plan played under random latencies, many timings at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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
