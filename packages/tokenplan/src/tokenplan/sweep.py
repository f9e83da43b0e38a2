"""Tensors with many accesses: which pairs need a look at all.

A write that covers an earlier access stands for it: what conflicts with the earlier one later on,
conflicts with the write, too, and waits for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tokenplan.footprints import whole_reach
from tokenplan.footprints.levels import Trips
from tokenplan.model import Mode, commute
from tokenplan.order import Place
from tokenplan.rules import Pair

Candidate = tuple[Place, Place, bool]
"""Source, sink, and whether the sink is in a later iteration."""


def all_pairs(group: list[Place]) -> Iterator[Candidate]:
    """Every pair of accesses to one buffer, in program order, then from later iterations."""
    for n, sink in enumerate(group):
        for source in group[:n]:
            if source.at != sink.at:
                yield source, sink, False
        if sink.group < 0:
            continue
        for other in group[: n + 1]:
            if other.group == sink.group:
                yield sink, other, True
                if other.at == sink.at and other is not sink:
                    yield other, sink, True


def sweep(group: list[Place], trips: Trips, test: Callable[[Place, Place, bool], Pair]) -> None:
    """Tests the pairs of one buffer that overlap and that no covering write stands for."""
    state = _Sweep(group, trips, test)
    state.forward()
    state.backward()


class _Sweep:
    def __init__(
        self, group: list[Place], trips: Trips, test: Callable[[Place, Place, bool], Pair]
    ) -> None:
        self.group, self.test = group, test
        self.low, self.high = reaches(group, trips)
        self.last = np.ones(len(group), bool)
        """No later write of the same loops covers it."""
        self.first = np.ones(len(group), bool)
        """No earlier write of the same loops covers it."""

    def forward(self) -> None:
        alive = np.zeros(0, np.int64)
        for n, sink in enumerate(self.group):
            for at in self._overlapping(alive, n):
                source = self.group[at]
                if source.at != sink.at and not commute(source.access.mode, sink.access.mode):
                    self._note_covers(self.test(source, sink, False), at, n)
            alive = np.append(alive[self.last[alive]], n)

    def backward(self) -> None:
        inside: dict[int, list[int]] = defaultdict(list)
        for n, place in enumerate(self.group):
            if place.group >= 0:
                inside[place.group].append(n)
        for members in inside.values():
            sinks = np.array([n for n in members if self.first[n]], np.int64)
            for n in members:
                if self.last[n]:
                    self._later(n, sinks)

    def _later(self, n: int, sinks: np.ndarray) -> None:
        source = self.group[n]
        for at in self._overlapping(sinks, n):
            sink = self.group[at]
            if sink.at <= source.at and not commute(source.access.mode, sink.access.mode):
                self.test(source, sink, True)

    def _overlapping(self, among: np.ndarray, n: int) -> Iterable[int]:
        meets = (self.low[among] < self.high[n]) & (self.high[among] > self.low[n])
        return among[meets].tolist()

    def _note_covers(self, pair: Pair, source: int, sink: int) -> None:
        if pair.source.loops != pair.sink.loops or not pair.is_exact:
            return
        if pair.b.mode is Mode.write and _covers(pair, by_sink=True):
            self.last[source] = False
        if pair.a.mode is Mode.write and _covers(pair, by_sink=False):
            self.first[sink] = False


def _covers(pair: Pair, by_sink: bool) -> bool:
    """Whether, in every iteration, one end touches all bytes that the other does."""
    for a, b in pair.levels:
        big, small = (b, a) if by_sink else (a, b)
        if big.offset.terms != small.offset.terms:
            return False
        if big.steps and (big.steps, big.offset, big.extent) != (
            small.steps, small.offset, small.extent
        ):  # fmt: skip
            return False
        ahead = small.offset.constant - big.offset.constant
        reach = small.extent + sum((n - 1) * c for n, c in small.steps)
        if not big.steps and not 0 <= ahead <= big.extent - reach:
            return False
    return True


# -- counting, without looking at each pair --------------------------------------------------------


def reaches(group: list[Place], trips: Trips) -> tuple[np.ndarray, np.ndarray]:
    """First byte and one past the last of each access, over all iterations."""
    found = [whole_reach(place.access, trips) for place in group]
    both = np.array(found, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def count_apart(group: list[Place], trips: Trips) -> int:
    """How many of `count_pairs(group)` have no byte in common because their reaches lie apart."""
    inside: dict[int, list[Place]] = defaultdict(list)
    per_op: dict[int, list[Place]] = defaultdict(list)
    for place in group:
        per_op[place.at].append(place)
        if place.group >= 0:
            inside[place.group].append(place)
    own = {at: _apart(members, trips) for at, members in per_op.items() if len(members) > 1}
    count = _apart(group, trips) - sum(own.values())
    for members in inside.values():
        ops = {place.at for place in members}
        # Of one operation with itself, both orders of two accesses are pairs.
        count += _apart(members, trips) + sum(own.get(at, 0) for at in ops)
    return count


def _apart(group: list[Place], trips: Trips) -> int:
    """How many sets of two reaches lie apart."""
    low, high = reaches(group, trips)
    return int(np.searchsorted(np.sort(high), low, side="right").sum())
