"""Loads of the same rows of a parameter: share a tile, widen a tile, put one beside itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Self

from nkigym.tile_rewrites.component import Component, Rank, TileRewrite
from nkigym.tile_rewrites.interning import InternTable
from nkigym.tile_rewrites.kinds import LOAD_TWICE, MERGE_LOADS, REUSE
from nkigym.tile_rewrites.nodes import Pair, Relocation, Renaming, Slice, checked_renaming, union

BEHIND = 6
"""The rank of what comes last: that of calls and stores is below."""

Groups = Mapping[Slice, tuple[int, ...]]


class Loads(Component):
    """Loaded tiles, each with the numbers of the variables that contain it, in statement order.

    Statement order is that of the numbers; groups are in order of their first member.
    """

    def __init__(self, table: InternTable, groups: Groups) -> None:
        super().__init__(frozenset())
        self.table = table
        self.groups = groups

    @classmethod
    def of(cls, table: InternTable, members: Mapping[int, Slice]) -> Self:
        groups: dict[Slice, tuple[int, ...]] = {}
        for number, place in members.items():
            groups[place] = (*groups.get(place, ()), number)
        return table.part(cls, groups)

    @cached_property
    def slices(self) -> Mapping[int, Slice]:
        """Where each variable is loaded from, in statement order."""
        pairs = [(n, place) for place, numbers in self.groups.items() for n in numbers]
        return dict(sorted(pairs, key=lambda pair: pair[0]))

    @cached_property
    def merges(self) -> tuple[Pair, ...]:
        """Loads that touch."""
        if MERGE_LOADS not in self.table.kinds:
            return ()
        if not self.table.repeats:
            return adjacent_loads(self.groups)
        return adjacent_loads({place: n for place, n in self.groups.items() if place.copies == 1})

    @cached_property
    def twice(self) -> tuple[Pair, ...]:
        """Loads of one slice, of any number of copies."""
        if LOAD_TWICE not in self.table.kinds:
            return ()
        alike: dict[object, list[int]] = {}
        for number, place in self.slices.items():
            alike.setdefault(place.columns, []).append(number)
        return tuple(pair for numbers in alike.values() for pair in combinations(numbers, 2))

    @property
    def _shareable(self) -> Iterable[tuple[int, ...]]:
        return self.groups.values() if REUSE in self.table.kinds else ()

    @cached_property
    def steps(self) -> Mapping[TileRewrite, Rank]:
        """Every two loads of one slice, by groups; then loads that touch; behind all that is the
        public original's, loads of one slice beside each other.
        """
        found: dict[TileRewrite, Rank] = {
            TileRewrite(REUSE, *pair): (0, group[0], *pair)
            for group in self._shareable
            for pair in combinations(group, 2)
        }
        first = min(group[0] for group in self.groups.values())
        for place, pair in enumerate(self.merges):
            found[TileRewrite(MERGE_LOADS, *pair)] = (1, first, place)
        for pair in self.twice:
            found[TileRewrite(LOAD_TWICE, *pair)] = (BEHIND, *pair)
        return found

    @property
    def count(self) -> int:
        return sum(map(_pairs, self._shareable)) + len(self.merges) + len(self.twice)

    def step_at(self, index: int) -> TileRewrite:
        for group in self._shareable:
            if index < _pairs(group):
                for at, first in enumerate(group):
                    others = group[at + 1 :]
                    if index < len(others):
                        return TileRewrite(REUSE, first, others[index])
                    index -= len(others)
            index -= _pairs(group)
        if index < len(self.merges):
            return TileRewrite(MERGE_LOADS, *self.merges[index])
        return TileRewrite(LOAD_TWICE, *self.twice[index - len(self.merges)])

    def shared(self) -> tuple[Loads, Renaming]:
        """All of each group by its first member."""
        moved = {
            number: Relocation(group[0], 0, place)
            for place, group in self.groups.items()
            for number in group[1:]
        }
        groups = {place: group[:1] for place, group in self.groups.items()}
        return self.table.part(Loads, groups), self.table.renaming(moved)

    def _apply(self, step: TileRewrite) -> tuple[Loads, Renaming]:
        if step.kind == REUSE:
            return self._reuse(step)
        pair = {number: self._place(number) for number in sorted(step[1:])}
        return self._beside(pair) if step.kind == LOAD_TWICE else self._merge(pair)

    def _place(self, number: int) -> Slice:
        return next(place for place, numbers in self.groups.items() if number in numbers)

    def _reuse(self, step: TileRewrite) -> tuple[Loads, Renaming]:
        there, gone = self._place(step.first), self._place(step.second)
        groups = {**self.groups, gone: tuple(n for n in self.groups[gone] if n != step.second)}
        renaming = self.table.renaming({step.second: Relocation(step.first, 0, there)})
        after = self.table.part(Loads, groups)
        return after, checked_renaming(renaming, {step.second: gone.values}, there.values)

    def _merge(self, pair: Mapping[int, Slice]) -> tuple[Loads, Renaming]:
        one, other = pair.values()
        columns = union(one.columns, other.columns)
        wide = self.table.slice(one.source, one.rows, columns)
        return self._as_one(pair, wide, {n: p.columns[0] - columns[0] for n, p in pair.items()})

    def _beside(self, pair: Mapping[int, Slice]) -> tuple[Loads, Renaming]:
        one, other = pair.values()
        copies = one.copies + other.copies
        wide = self.table.slice(one.source, one.rows, one.columns, copies)
        start, stop = one.columns
        shifts = (0, one.copies * (stop - start))
        return self._as_one(pair, wide, dict(zip(pair, shifts, strict=True)))

    def _as_one(
        self, pair: Mapping[int, Slice], wide: Slice, shifts: Mapping[int, int]
    ) -> tuple[Loads, Renaming]:
        """One load in the place of two, and where in it these are."""
        kept = min(pair)
        left = {
            place: tuple(n for n in numbers if n not in pair)
            for place, numbers in self.groups.items()
        }
        left[wide] = tuple(sorted((*left.get(wide, ()), kept)))
        ordered = sorted((n, place) for place, n in left.items() if n)
        renaming = self.table.renaming(
            {n: Relocation(kept, shift, wide) for n, shift in shifts.items()}
        )
        old = {number: place.values for number, place in pair.items()}
        after = self.table.part(Loads, {place: numbers for numbers, place in ordered})
        return after, checked_renaming(renaming, old, wide.values)

    def _move(self, renaming: Renaming) -> Loads:
        raise AssertionError("a load reads parameters, which are never renamed")


def _pairs(group: tuple[int, ...]) -> int:
    return len(group) * (len(group) - 1) // 2


def adjacent_loads(groups: Groups) -> tuple[Pair, ...]:
    """Loads that touch, by their start: each in one pair at most, with the first that fits.

    Loads that start at one place are paired in order with loads that end there.
    """
    starting: dict[int, list[Slice]] = {}
    for place in groups:
        starting.setdefault(place.columns[0], []).append(place)
    numbers = {start: _in_order(places, groups) for start, places in starting.items()}
    used = dict.fromkeys(starting, 0)
    pairs: list[Pair] = []
    for start in sorted(starting):
        for run, stop in _runs(starting[start], numbers[start][used[start] :], groups):
            others = numbers.get(stop)
            if others is not None:
                before = len(pairs)
                pairs += zip(run, others[used[stop] :], strict=False)
                used[stop] += len(pairs) - before
    return tuple(pairs)


def _in_order(places: list[Slice], groups: Groups) -> Sequence[int]:
    if len(places) == 1:
        return groups[places[0]]
    return sorted([number for place in places for number in groups[place]])


def _runs(
    places: list[Slice], numbers: Sequence[int], groups: Groups
) -> list[tuple[Sequence[int], int]]:
    """Loads that start at one place, in order, with where they stop."""
    if len(places) == 1:
        return [(numbers, places[0].columns[1])]
    stops = {number: place.columns[1] for place in places for number in groups[place]}
    return [((number,), stops[number]) for number in numbers]
