"""Every way in which the queues of a tiny plan can run, one event at a time."""

from __future__ import annotations

from dataclasses import dataclass

from tokenplan.checker.errors import TooBigError
from tokenplan.checker.queues import Queues
from tokenplan.checker.records import Plan

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
            moves = [q for q, at in enumerate(state) if at < ends[q]
                     and (at % 2 or waits.hold(lists[q][at // 2], state))]  # fmt: skip
            for queue in moves:
                if not state[queue] % 2:
                    later = lists[queue][state[queue] // 2]
                    for other, place in enumerate(needed[later]):
                        if state[other] // 2 < place:
                            races[lists[other][place - 1], later] = None
                after = (*state[:queue], state[queue] + 1, *state[queue + 1 :])
                following[after] = following.get(after, 0) + paths
            if not moves:
                ways += paths
                if state != ends:
                    stops.append(tuple(at // 2 for at in state))
        level = following
    return Explored(states, ways, races, stops)


class _Waits:
    """Whether the waits of an instance hold in a state."""

    def __init__(self, queues: Queues, plan: Plan, without: int | None) -> None:
        number = {name: n for n, name in enumerate(queues.names)}
        unrolled = queues.unrolled
        self.of: list[list[tuple[int, int]]] = []
        for op, n in zip(unrolled.op.tolist(), unrolled.number.tolist(), strict=True):
            counts = [(number[plan.waits[w].queue], int(queues.thresholds[w][n]))
                      for w in queues.by_op.get(op, ()) if w != without]  # fmt: skip
            self.of.append(counts)

    def hold(self, instance: int, state: tuple[int, ...]) -> bool:
        return all(state[queue] // 2 >= count for queue, count in self.of[instance])
