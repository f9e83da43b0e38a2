"""Loads of the same rows of a parameter: share a tile, widen a tile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Self

from nkigym.space.kinds import MERGE_LOADS, REUSE
from nkigym.space.pairs import Pair, union
from nkigym.space.part import Part, Rank, Step
from nkigym.space.renaming import Moved, Renaming, Slice, proved

if TYPE_CHECKING:
    from nkigym.space.table import Table

Groups = Mapping[Slice, tuple[int, ...]]


class Loads(Part):
    """What is loaded, each with the numbers of the variables that hold it, in statement order.

    Statement order is that of the numbers; groups are in order of their first member.
    """

    def __init__(self, table: Table, groups: Groups) -> None:
        super().__init__(frozenset())
        self.table = table
        self.groups = groups

    @classmethod
    def of(cls, table: Table, members: Mapping[int, Slice]) -> Self:
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
        return touching_loads(self.groups) if MERGE_LOADS in self.table.kinds else ()

    @property
    def _shareable(self) -> Iterable[tuple[int, ...]]:
        return self.groups.values() if REUSE in self.table.kinds else ()

    @cached_property
    def steps(self) -> Mapping[Step, Rank]:
        """Every two loads of one slice, by groups; then loads that touch."""
        found: dict[Step, Rank] = {
            Step(REUSE, *pair): (0, group[0], *pair)
            for group in self._shareable
            for pair in combinations(group, 2)
        }
        first = min(group[0] for group in self.groups.values())
        for place, pair in enumerate(self.merges):
            found[Step(MERGE_LOADS, *pair)] = (1, first, place)
        return found

    @property
    def count(self) -> int:
        return sum(map(_pairs, self._shareable)) + len(self.merges)

    def step_at(self, index: int) -> Step:
        for group in self._shareable:
            if index < _pairs(group):
                for at, first in enumerate(group):
                    others = group[at + 1 :]
                    if index < len(others):
                        return Step(REUSE, first, others[index])
                    index -= len(others)
            index -= _pairs(group)
        return Step(MERGE_LOADS, *self.merges[index])

    def shared(self) -> tuple[Loads, Renaming]:
        """All of each group by its first member."""
        moved = {
            number: Moved(group[0], 0, place)
            for place, group in self.groups.items()
            for number in group[1:]
        }
        groups = {place: group[:1] for place, group in self.groups.items()}
        return self.table.part(Loads, groups), self.table.renaming(moved)

    def _apply(self, step: Step) -> tuple[Loads, Renaming]:
        return self._reuse(step) if step.kind == REUSE else self._merge(step)

    def _place(self, number: int) -> Slice:
        return next(place for place, numbers in self.groups.items() if number in numbers)

    def _reuse(self, step: Step) -> tuple[Loads, Renaming]:
        there, gone = self._place(step.first), self._place(step.second)
        groups = {**self.groups, gone: tuple(n for n in self.groups[gone] if n != step.second)}
        renaming = self.table.renaming({step.second: Moved(step.first, 0, there)})
        after = self.table.part(Loads, groups)
        return after, proved(renaming, {step.second: gone.values}, there.values)

    def _merge(self, step: Step) -> tuple[Loads, Renaming]:
        kept, gone = sorted(step[1:])
        pair = {number: self._place(number) for number in (kept, gone)}
        columns = union(pair[kept].columns, pair[gone].columns)
        wide = self.table.slice(pair[kept].source, pair[kept].rows, columns)
        left = {
            place: tuple(n for n in numbers if n not in pair)
            for place, numbers in self.groups.items()
        }
        left[wide] = tuple(sorted((*left.get(wide, ()), kept)))
        ordered = sorted((n, place) for place, n in left.items() if n)
        renaming = self.table.renaming(
            {n: Moved(kept, old.columns[0] - columns[0], wide) for n, old in pair.items()}
        )
        old = {number: place.values for number, place in pair.items()}
        after = self.table.part(Loads, {place: numbers for numbers, place in ordered})
        return after, proved(renaming, old, wide.values)

    def _move(self, renaming: Renaming) -> Loads:
        raise AssertionError("a load reads parameters, which nobody moves")


def _pairs(group: tuple[int, ...]) -> int:
    return len(group) * (len(group) - 1) // 2


def touching_loads(groups: Groups) -> tuple[Pair, ...]:
    """Loads that touch, by their start: each in one pair at most, with the first that fits.

    Who starts at one place is used up in order, by those that end there.
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
