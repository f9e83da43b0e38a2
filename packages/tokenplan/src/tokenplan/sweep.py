"""Tensors with many accesses: which pairs need a look at all.

A write that covers an earlier access stands for it: what conflicts with the earlier one later on,
conflicts with the write, too, and waits for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from tokenplan.footprints import linear
from tokenplan.model import Mode
from tokenplan.order import Place
from tokenplan.rules import Pair

Candidate = tuple[Place, Place, bool]
"""Source, sink, and whether the sink is in a later iteration."""


Test = Callable[[Place, Place, bool], Pair]
_WRITE = "RWA".index(Mode.write)


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


def sweep(group: list[Place], test: Test) -> int:
    """Tests the pairs of one buffer that may overlap and that no covering write stands for.

    How many were found to lie apart on the way.
    """
    state = _Sweep(group, test)
    state.forward()
    state.backward()
    return state.apart


class _Sweep:
    def __init__(self, group: list[Place], test: Test) -> None:
        self.group, self.test = group, test
        self.apart = 0
        digits = min(len(place.bounds) for place in group)
        if any(len(place.bounds) != digits for place in group):
            bounds = [[linear(place.access).bounds(place.trips)] for place in group]
        else:
            bounds = [place.bounds for place in group]
        both = np.array(bounds, np.int64)
        self.digits = [(low.copy(), high.copy()) for low, high in both.transpose(1, 2, 0)]
        """Bounds of every access, digit by digit."""
        self.mode = np.array(["RWA".index(place.access.mode) for place in group], np.int8)
        self.at = np.array([place.at for place in group], np.int64)
        self.last = np.ones(len(group), bool)
        """No later write of the same loops covers it."""
        self.first = np.ones(len(group), bool)
        """No earlier write of the same loops covers it."""

    def forward(self) -> None:
        alive = np.zeros(0, np.int64)
        for n, sink in enumerate(self.group):
            for at in self._near(alive[self.at[alive] != self.at[n]], n):
                self._note_covers(self.test(self.group[at], sink, False), at, n)
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
                    for at in self._near(sinks[self.at[sinks] <= self.at[n]], n):
                        self.test(self.group[n], self.group[at], True)

    def _near(self, among: np.ndarray, n: int) -> list[int]:
        """Those of `among` that do not commute with n and may overlap it; counts the others."""
        writes = self.mode[n] == _WRITE
        among = among if writes else among[self.mode[among] != self.mode[n]]
        near = among
        for low, high in self.digits:
            near = near[(low[near] < high[n]) & (high[near] > low[n])]
        self.apart += len(among) - len(near)
        return near.tolist()

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
