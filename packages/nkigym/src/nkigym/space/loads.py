"""Loads of the same rows of a parameter: share a tile, widen a tile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from nkigym.space.pairs import Pair, union
from nkigym.space.part import Part, Rank, Step
from nkigym.space.renaming import Moved, Renaming, Slice, proved

if TYPE_CHECKING:
    from nkigym.space.table import Table

REUSE = "reuse"
MERGE_LOADS = "merge loads"


class Loads(Part):
    """Where variables are loaded from, in statement order, which is that of their numbers."""

    def __init__(self, table: Table, slices: Mapping[int, Slice]) -> None:
        super().__init__()
        self.table = table
        self.slices = slices

    @cached_property
    def steps(self) -> Mapping[Step, Rank]:
        """Every two loads of one slice, by groups; then loads that touch."""
        same: dict[Slice, list[int]] = {}
        for number, place in self.slices.items():
            same.setdefault(place, []).append(number)
        found: dict[Step, Rank] = {
            Step(REUSE, *pair): (0, group[0], *pair)
            for group in same.values()
            for pair in combinations(group, 2)
        }
        first = next(iter(self.slices))
        for place, pair in enumerate(touching_loads(self.slices)):
            found[Step(MERGE_LOADS, *pair)] = (1, first, place)
        return found

    def _apply(self, step: Step) -> tuple[Loads, Renaming]:
        return self._reuse(step) if step.kind == REUSE else self._merge(step)

    def _reuse(self, step: Step) -> tuple[Loads, Renaming]:
        there = self.slices[step.first]
        slices = {number: s for number, s in self.slices.items() if number != step.second}
        renaming = self.table.renaming({step.second: Moved(step.first, 0, there)})
        return self.table.part(Loads, slices), proved(
            renaming, {step.second: self.slices[step.second].values}, there.values
        )

    def _merge(self, step: Step) -> tuple[Loads, Renaming]:
        kept, gone = sorted(step[1:])
        pair = {number: self.slices[number] for number in (kept, gone)}
        columns = union(pair[kept].columns, pair[gone].columns)
        wide = self.table.slice(pair[kept].source, pair[kept].rows, columns)
        slices = {n: s for n, s in ({**self.slices, kept: wide}).items() if n != gone}
        renaming = self.table.renaming(
            {n: Moved(kept, old.columns[0] - columns[0], wide) for n, old in pair.items()}
        )
        old = {number: place.values for number, place in pair.items()}
        return self.table.part(Loads, slices), proved(renaming, old, wide.values)

    def _move(self, renaming: Renaming) -> Loads:
        raise AssertionError("a load reads parameters, which nobody moves")


def touching_loads(slices: Mapping[int, Slice]) -> tuple[Pair, ...]:
    """Loads that touch, by their start: each in one pair at most, with the first that fits."""
    ordered = sorted(slices, key=lambda number: (slices[number].columns[0], number))
    waiting: dict[int, list[int]] = {}
    for number in reversed(ordered):
        waiting.setdefault(slices[number].columns[0], []).append(number)
    used: set[int] = set()
    pairs = []
    for number in ordered:
        if number in used:
            continue
        others = waiting.get(slices[number].columns[1], [])
        while others and others[-1] in used:
            others.pop()
        if others:
            pairs.append((number, others[-1]))
            used |= {number, others[-1]}
    return tuple(pairs)
