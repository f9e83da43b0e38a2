"""Vector clocks: the completions that an instance has observed when it starts.

An instance has observed what the one before it on its queue had observed, what it waits for, and
everything that this knew. It completes after all before it on its queue. That a queue may start an
instance before the one ahead has completed is allowed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tokenplan.kernel.model import Loop
from tokenplan.neuroncore.counters import Counted, counted
from tokenplan.neuroncore.needs import Need
from tokenplan.neuroncore.nests import Nests, linear, with_trips

MOST_INSTANCES = 60_000
"""Instances up to which a run is followed; what is longer keeps every wait."""


Count = tuple[int, int]
"""A queue, and how many of its instances have completed."""


class Run:
    """One run of all operations; `starts` gives the clocks for a choice of waits."""

    def __init__(self, nests: Nests) -> None:
        self.nests, self.ops = nests, nests.ops
        self.order = list(nests.sequence())
        self.queues = sorted({nests.queue[op.id] for op in self.ops})
        number = {name: n for n, name in enumerate(self.queues)}
        self.lane = [number[nests.queue[op.id]] for op in self.ops]
        self.number = number

    def starts(self, waits: Iterable[Counted]) -> dict[str, np.ndarray]:
        """Operation → instances x queues: completions that are known when it starts."""
        per_op = self._by_op(waits)
        seen: list[list[list[int]]] = [[] for _ in self.ops]
        now = [[0] * len(self.queues) for _ in self.queues]
        done: list[list[list[int]]] = [[] for _ in self.queues]
        for which in self.order:
            lane, mine = self.lane[which], seen[which]
            clock, nth = now[lane], len(mine)
            for _, queue, values in per_op[which]:
                if clock[queue] < values[nth]:
                    other = done[queue][values[nth] - 1]
                    clock = [a if a > b else b for a, b in zip(clock, other, strict=True)]
            mine.append(clock)
            now[lane] = clock = clock.copy()
            clock[lane] = len(done[lane]) + 1
            done[lane].append(clock)
        return {op.id: np.array(each) for op, each in zip(self.ops, seen, strict=True)}

    def _by_op(self, waits: Iterable[Counted]) -> list[list[tuple[int, int, list[int]]]]:
        """Per operation its waits: number, queue, and completions for each instance."""
        of_op: dict[str, list[tuple[int, int, list[int]]]] = {op.id: [] for op in self.ops}
        for index, wait in enumerate(waits):
            of_op[wait.need.op].append((index, self.number[wait.queue], wait.values.tolist()))
        return [of_op[op.id] for op in self.ops]

    def is_covered(self, needs: Iterable[Counted], waits: Iterable[Counted]) -> bool:
        """Whether every need holds if only these waits are made."""
        starts = self.starts(waits)
        return all(
            bool((starts[n.need.op][:, self.number[n.queue]] >= n.values).all()) for n in needs
        )

    def waits_for_itself(self, waits: Iterable[Counted]) -> bool:
        """Whether a wait needs completions of operations that do not come before it in program
        order.

        Without such waits no instance waits forever.
        """
        before = {op.id: [] for op in self.ops}
        passed = [0] * len(self.queues)
        for which in self.order:
            before[self.ops[which].id].append(tuple(passed))
            passed[self.lane[which]] += 1
        return any(
            bool((wait.values > np.array(before[wait.need.op])[:, self.number[wait.queue]]).any())
            for wait in waits
        )

    def idle(self, waits: Sequence[Counted]) -> tuple[list[bool], list[bool]]:
        """For each wait, whether all its instances follow from other waits; whether it shares one.

        An order between instances that follows from others can go, and all that do can go at once.
        Of waits that ask for the same count, the first counts as the one that is needed.
        """
        per_op, nths = self._by_op(waits), [0] * len(self.ops)
        follows, shared = [True] * len(waits), [False] * len(waits)
        now = [[0] * len(self.queues) for _ in self.queues]
        done: list[list[list[int]]] = [[] for _ in self.queues]
        for which in self.order:
            lane, nth = self.lane[which], nths[which]
            nths[which] += 1
            clock = now[lane]
            asked: dict[Count, list[int]] = {}
            for index, queue, values in per_op[which]:
                if values[nth]:
                    asked.setdefault((queue, values[nth]), []).append(index)
            rows = {(queue, count): done[queue][count - 1] for queue, count in asked}
            for same in map(asked.__getitem__, _unobserved(clock, rows)):
                follows[same[0]] = False
                for index in same:
                    shared[index] |= len(same) > 1
            now[lane] = clock = [max(column) for column in zip(clock, *rows.values(), strict=True)]
            clock[lane] = len(done[lane]) + 1
            done[lane].append(clock)
        return follows, shared


def _unobserved(clock: list[int], rows: Mapping[Count, list[int]]) -> Iterator[Count]:
    """The counts that neither the clock nor what another count brings with it has observed."""
    for (queue, count), own in rows.items():
        if clock[queue] < count and all(
            row is own or row[queue] < count for row in rows.values()
        ):  # fmt: skip
            yield queue, count


@dataclass(frozen=True, slots=True)
class Minimal:
    """The waits that are left, and how far it was proved that they order everything."""

    kept: tuple[Need, ...]
    proof: str


def minimal(nests: Nests, needs: Sequence[Need]) -> Minimal:
    """A smallest set of needs to wait for that implies all others: none of it can be left out.

    Outermost loops are followed until what is known repeats from iteration to iteration, which
    proves it for all further ones; if it does not, to their end.
    """
    outer = {node.id: node.trips for node in nests.kernel.body if isinstance(node, Loop)}
    back = _reach(nests, needs, outer)
    most = {loop: min(trips, 2 * back[loop] + 4) for loop, trips in outer.items()}
    while True:
        short = Nests(with_trips(nests.kernel, most), nests.queue)
        if sum(short.num_iterations(op) for op in short.ops) > MOST_INSTANCES:
            crossing = [n for n in needs if nests.queue[n.op] != nests.queue[n.after]]
            return Minimal(tuple(crossing), "none was left out: too long to follow")
        run = Run(short)
        every = counted(short, needs)
        if run.waits_for_itself(every):
            raise AssertionError("a wait needs a later completion")
        kept = _without_implied(run, every)
        if most == outer:
            return Minimal(tuple(c.need for c in kept), "every iteration was followed")
        if repeats(run, kept, every, {k: back[k] for k in outer if most[k] < outer[k]}):
            cut = [loop for loop in most if most[loop] < outer[loop]]
            shown = ", ".join(f"{loop} from iteration {most[loop] - 2} on" for loop in cut)
            return Minimal(tuple(c.need for c in kept), f"what is known repeats: {shown}")
        most = {loop: min(outer[loop], 2 * trips) for loop, trips in most.items()}


def _reach(nests: Nests, needs: Iterable[Need], loops: Iterable[str]) -> dict[str, int]:
    """Outermost loop → how many of its iterations any need goes back, at least one."""
    back = dict.fromkeys(loops, 1)
    for need in needs:
        around = nests.by_id[need.op].loops[: len(need.distance)]
        if around:
            inner = max(1, prod(nests.trips(around[1:])))
            far = -(-linear(need.distance, nests.trips(around)) // inner)
            back[around[0]] = max(back[around[0]], far)
    return back


def _without_implied(run: Run, needs: list[Counted]) -> list[Counted]:
    """Needs without the ones that others imply."""
    follows, shared = run.idle(needs)
    kept = [need for need, idle in zip(needs, follows, strict=True) if not idle]
    for each in [n for n, is_shared in zip(needs, shared, strict=True) if is_shared and n in kept]:
        rest = [other for other in kept if other is not each]
        if run.is_covered(needs, rest):
            kept = rest
    assert run.is_covered(needs, kept)
    return kept


def repeats(run: Run, waits: list[Counted], needs: list[Counted], back: Mapping[str, int]) -> bool:
    """Whether clocks of the last iterations of these loops are those before, or moved on evenly.

    Then the clocks of every further iteration are, too: clocks are maxima of clocks at most `back`
    iterations before.
    """
    starts = run.starts(waits)
    for node in run.nests.kernel.body:
        if not isinstance(node, Loop) or node.id not in back:
            continue
        step = np.array([run.nests.sizes[node.id][name] for name in run.queues])
        moving = _moving(needs, node.id)
        for op in run.ops:
            if op.loops[:1] != (node.id,):
                continue
            clocks = starts[op.id].reshape(node.trips, -1, len(run.queues))[-back[node.id] - 2 :]
            grown = clocks[1:] - clocks[:-1]
            evenly = grown == step
            if not (evenly | (grown == 0)).all():
                return False
            for queue in moving.get(op.id, ()):
                if not evenly[..., run.number[queue]].all():
                    return False
    return True


def _moving(needs: Iterable[Counted], loop: str) -> dict[str, set[str]]:
    """Operation → queues whose counter it needs more of in every iteration of `loop`."""
    found: dict[str, set[str]] = {}
    for need in needs:
        if any(name == loop for name, _ in need.count.terms):
            found.setdefault(need.need.op, set()).add(need.queue)
    return found
