"""A plan's queues: the operations of each queue, the meaning of a wait, and what has completed when
an instance starts.

A queue issues its instances in program order and completes them in that order, so its counter says
which of them are done; the state of a wait is a number per queue (a vector clock).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from tokenplan.checker.conflicts import bitset
from tokenplan.checker.errors import TooBigError
from tokenplan.checker.records import Plan, Wait
from tokenplan.checker.unrolled import Unrolled, linear


@dataclass(frozen=True, slots=True)
class Queues:
    """Instances on their queues; places count from 1 as the counters do."""

    unrolled: Unrolled
    names: tuple[str, ...]
    queue: np.ndarray
    """(N,): which queue runs an instance."""
    place: np.ndarray
    """(N,): the how manieth of its queue."""
    order: tuple[np.ndarray, ...]
    """Per queue its instances."""
    thresholds: tuple[np.ndarray, ...]
    """Per wait (instances of its op,): how many completions it waits for, 0 for none."""
    by_op: dict[int, list[int]]
    """Operation -> its waits."""


def assign(unrolled: Unrolled, plan: Plan) -> Queues:
    """The instances of every queue, and the concrete thresholds of every wait."""
    names = tuple(dict.fromkeys(plan.queues.values()))
    number = {name: n for n, name in enumerate(names)}
    of_op = np.array([number[plan.queues[op.id]] for op in unrolled.ops], np.int64)
    queue = of_op[unrolled.op] if unrolled.size else np.zeros(0, np.int64)
    order = tuple(np.flatnonzero(queue == n) for n in range(len(names)))
    place = np.zeros(unrolled.size, np.int64)
    for instances in order:
        place[instances] = np.arange(1, len(instances) + 1)
    index = {op.id: n for n, op in enumerate(unrolled.ops)}
    by_op: dict[int, list[int]] = {}
    for n, wait in enumerate(plan.waits):
        by_op.setdefault(index[wait.op], []).append(n)
    thresholds = tuple(_threshold(unrolled, wait, index[wait.op]) for wait in plan.waits)
    return Queues(unrolled, names, queue, place, order, thresholds, by_op)


def _threshold(unrolled: Unrolled, wait: Wait, op: int) -> np.ndarray:
    """The count at j - distance, 0 where that is before the first iteration."""
    loops = unrolled.ops[op].loops[: len(wait.distance)]
    columns = unrolled.columns(op)
    moved = {loop: columns[loop] - d for loop, d in zip(loops, wait.distance, strict=True)}
    count = np.broadcast_to(np.asarray(wait.count.at(moved)), len(unrolled.positions[op]))
    return np.where(_iterations_ago(unrolled, wait, op, len(loops)) >= 0, count, 0)


def _iterations_ago(unrolled: Unrolled, wait: Wait, op: int, depth: int) -> np.ndarray:
    """(instances,): j - distance as a number of iterations of the outermost `depth` loops."""
    sizes = [unrolled.trips[loop] for loop in unrolled.ops[op].loops[:depth]]
    back = sum(d * prod(sizes[n + 1 :]) for n, d in enumerate(wait.distance[:depth]))
    return linear(unrolled.iterations[op][:, :depth], sizes) - back


@dataclass(frozen=True, slots=True)
class Miscount:
    """A wait that counts something else than completions up to its `after`."""

    wait: Wait
    instance: int
    """The first instance where."""
    count: int
    expected: int
    """The place of `after` on its queue, that many iterations ago."""
    too_few: int
    """In how many iterations it counts less than that."""


def miscounts(queues: Queues, plan: Plan) -> list[Miscount]:
    """Waits that count less than the completions up to `after`, or more.

    Up to its last instance, that is, in an iteration of all shared loops or of the outer ones (for
    which the distance goes no deeper).
    """
    index = {op.id: n for n, op in enumerate(queues.unrolled.ops)}
    wrong = []
    for wait, counts in zip(plan.waits, queues.thresholds, strict=True):
        deepest = len(wait.distance)
        least = max((n + 1 for n, d in enumerate(wait.distance) if d), default=0)
        found = [
            _miscount(queues, wait, index[wait.op], index[wait.after], counts, depth)
            for depth in range(deepest, least - 1, -1)
        ]
        if all(found):
            wrong += [min((m for m in found if m), key=lambda m: m.too_few > 0)]
    return wrong


def _miscount(
    queues: Queues, wait: Wait, op: int, after: int, counts: np.ndarray, depth: int
) -> Miscount | None:
    unrolled = queues.unrolled
    ago = _iterations_ago(unrolled, wait, op, depth)
    last = np.searchsorted(unrolled.linear(after, depth), ago, side="right")
    places = np.concatenate(([0], queues.place[unrolled.positions[after]]))
    fewer = np.flatnonzero((counts < places[last]) & (ago >= 0))
    more = np.flatnonzero((counts > places[last]) & (ago >= 0))
    if not len(fewer) and not len(more):
        return None
    n = int((fewer if len(fewer) else more)[0])
    instance = int(unrolled.positions[op][n])
    return Miscount(wait, instance, int(counts[n]), int(places[last][n]), len(fewer))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a plan gets, and in which order its instances can start."""

    order: list[int]
    stuck: list[tuple[int, Wait | None]]
    """Heads of queues that never start, with a wait that never holds."""


def _counts(queues: Queues, plan: Plan) -> list[tuple[int, list[int]]]:
    """Per wait: its queue, and the count that it waits for in each instance."""
    number = {name: n for n, name in enumerate(queues.names)}
    return [(number[wait.queue], queues.thresholds[n].tolist())
            for n, wait in enumerate(plan.waits)]  # fmt: skip


def progress(queues: Queues, plan: Plan, without: int | None = None) -> Progress:
    """Run every queue as far as it gets; exact, as counters only grow. `without` drops a wait."""
    ends = [instances.tolist() for instances in queues.order]
    done, order = [0] * len(ends), []
    waits = _counts(queues, plan)
    ops, numbers = queues.unrolled.op.tolist(), queues.unrolled.number.tolist()

    def blocked(instance: int) -> int | None:
        for n in queues.by_op.get(ops[instance], ()):
            queue, counts = waits[n]
            if n != without and done[queue] < counts[numbers[instance]]:
                return n
        return None

    moved = True
    while moved:
        moved = False
        for queue, instances in enumerate(ends):
            while done[queue] < len(instances) and blocked(instances[done[queue]]) is None:
                order.append(instances[done[queue]])
                done[queue] += 1
                moved = True
    stuck = []
    for queue, instances in enumerate(ends):
        if done[queue] < len(instances):
            head = instances[done[queue]]
            held = blocked(head)
            stuck.append((head, None if held is None else plan.waits[held]))
    return Progress(order, stuck)


def clocks(
    queues: Queues, plan: Plan, order: list[int], without: int | None = None
) -> list[list[int]]:
    """Per instance, for every queue how many of it are sure to be done when the instance starts.

    `order` is one in which they can start (of `progress`).
    """
    unrolled = queues.unrolled
    waits = _counts(queues, plan)
    lists = [instances.tolist() for instances in queues.order]
    ops, numbers = unrolled.op.tolist(), unrolled.number.tolist()
    where, places = queues.queue.tolist(), queues.place.tolist()
    known: list[list[int]] = [[] for _ in range(unrolled.size)]
    for instance in order:
        queue, place = where[instance], places[instance]
        clock = [0] * len(lists)
        sources = [(queue, place - 1)]
        for n in queues.by_op.get(ops[instance], ()):
            if n != without:
                sources.append((waits[n][0], waits[n][1][numbers[instance]]))
        for other, count in sources:
            if count > 0:
                before = known[lists[other][count - 1]]
                clock = [max(a, b) for a, b in zip(clock, before, strict=True)]
                clock[other] = max(clock[other], count)
        known[instance] = clock
    return known


def needed_places(queues: Queues, needed: list[int]) -> list[list[int]]:
    """Per instance, for every queue the last place of an instance that must be done before."""
    masks = [bitset(instances, queues.unrolled.size) for instances in queues.order]
    places = queues.place.tolist()
    return [
        [places[hit.bit_length() - 1] if (hit := bits & mask) else 0 for mask in masks]
        for bits in needed
    ]


# -- all interleavings of a tiny plan --------------------------------------------------------------


MOST_STATES = 200_000


@dataclass(frozen=True, slots=True)
class Explored:
    """How many states there are, how many ways through them, and what goes wrong in some."""

    states: int
    ways: int
    races: dict[tuple[int, int], None]
    """(earlier, later) where `later` starts while `earlier` is not done."""
    stops: list[tuple[int, ...]]
    """How many instances every queue has done where none goes on."""


def explore(
    queues: Queues, plan: Plan, needed: list[list[int]], without: int | None = None
) -> Explored:
    """All interleavings of the events "an instance starts" and "an instance is done".

    A state is, per queue, twice the instances done, plus one while one runs. Raises TooBigError
    beyond MOST_STATES states.
    """
    lists = [instances.tolist() for instances in queues.order]
    ends = tuple(2 * len(instances) for instances in lists)
    waits = _Waits(queues, plan, without)
    level: dict[tuple[int, ...], int] = {(0,) * len(lists): 1}
    states, ways, races, stops = 0, 0, {}, []
    while level:
        states += len(level)
        if states > MOST_STATES:
            raise TooBigError(
                f"more than {MOST_STATES} states of the queues: interleavings are for tiny plans"
            )
        following: dict[tuple[int, ...], int] = {}
        for state, paths in level.items():
            moves = waits.moves(lists, state)
            for queue in moves:
                races |= dict.fromkeys(_races(lists, needed, state, queue))
                after = (*state[:queue], state[queue] + 1, *state[queue + 1 :])
                following[after] = following.get(after, 0) + paths
            if not moves:
                ways += paths
                if state != ends:
                    stops.append(tuple(at // 2 for at in state))
        level = following
    return Explored(states, ways, races, stops)


def _races(
    lists: list[list[int]], needed: list[list[int]], state: tuple[int, ...], queue: int
) -> Iterator[tuple[int, int]]:
    """(earlier, later): `later` starts on the queue while `earlier` is needed and not done."""
    if state[queue] % 2:
        return
    later = lists[queue][state[queue] // 2]
    for other, place in enumerate(needed[later]):
        if state[other] // 2 < place:
            yield lists[other][place - 1], later


class _Waits:
    """Whether the waits of an instance hold in a state."""

    def __init__(self, queues: Queues, plan: Plan, without: int | None) -> None:
        waits, unrolled = _counts(queues, plan), queues.unrolled
        self.of: list[list[tuple[int, int]]] = []
        for op, n in zip(unrolled.op.tolist(), unrolled.number.tolist(), strict=True):
            mine = [waits[w] for w in queues.by_op.get(op, ()) if w != without]
            self.of.append([(queue, counts[n]) for queue, counts in mine])

    def moves(self, lists: list[list[int]], state: tuple[int, ...]) -> list[int]:
        """The queues on which an instance can start, or be done."""
        return [
            queue
            for queue, at in enumerate(state)
            if at < 2 * len(lists[queue]) and (at % 2 or self.hold(lists[queue][at // 2], state))
        ]

    def hold(self, instance: int, state: tuple[int, ...]) -> bool:
        return all(state[queue] // 2 >= count for queue, count in self.of[instance])
