"""Stores of one result, that could become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from nkigym.space.kinds import MERGE_STORES
from nkigym.space.pairs import greedy_pairs, touching, union
from nkigym.space.part import Part, Rank, Step
from nkigym.space.renaming import Renaming
from nkigym.space.values import CertificateError, Numbers
from nkigym.tiles.program import Interval
from nkigym.tiles.tiling import TILE

if TYPE_CHECKING:
    from nkigym.space.table import Table

Box = tuple[Interval, Interval]


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Part of a variable to part of an output. The same where it is identical."""

    number: int
    read: Box
    into: str
    written: Box
    values: Numbers

    @property
    def outputs(self) -> dict[tuple[str, int, int], int]:
        """Which value is where in which output, by the starts of its atoms."""
        (row, _), columns = self.written
        starts = ((self.into, row, column) for column in range(*columns, TILE))
        return dict(zip(starts, self.values, strict=True))


class Stores(Part):
    """Stores by their place among the root's, in statement order."""

    def __init__(self, table: Table, stores: Mapping[int, Store]) -> None:
        super().__init__(frozenset(store.number for store in stores.values()))
        self.table = table
        self.stores = stores

    @cached_property
    def steps(self) -> Mapping[Step, Rank]:
        """Every two stores of one variable whose columns touch on both sides in one order, of the
        same rows; in order of the first.
        """
        if len(self.stores) == 1 or MERGE_STORES not in self.table.kinds:
            return {}
        groups: dict[tuple[int, str], list[int]] = {}
        for place, store in self.stores.items():
            groups.setdefault((store.number, store.into), []).append(place)
        return {
            Step(MERGE_STORES, *pair): (3, *pair)
            for group in groups.values()
            for pair in greedy_pairs(group, self._fit)
        }

    def _fit(self, first: int, second: int) -> bool:
        one, other = self.stores[first], self.stores[second]
        touch = _columns_touch(one.written, other.written) and _columns_touch(one.read, other.read)
        return touch and (one.written < other.written) == (one.read < other.read)

    def _apply(self, step: Step) -> tuple[Stores, None]:
        kept, gone = step[1:]
        one, other = self.stores[kept], self.stores[gone]
        left, right = sorted((one, other), key=lambda store: store.read)
        written, read = _united(one.written, other.written), _united(one.read, other.read)
        wide = self.table.store(one.number, read, one.into, written, left.values + right.values)
        if one.outputs | other.outputs != wide.outputs:
            raise CertificateError(f"stores {kept} and {gone} are not one store")
        after = {n: s for n, s in ({**self.stores, kept: wide}).items() if n != gone}
        return self.table.part(Stores, after), None

    def _move(self, renaming: Renaming) -> Stores:
        return self.table.part(
            Stores, {place: self._moved(store, renaming) for place, store in self.stores.items()}
        )

    def _moved(self, store: Store, renaming: Renaming) -> Store:
        at = renaming.moved.get(store.number)
        if at is None:
            return store
        rows, (start, stop) = store.read
        read = (rows, (start + at.shift, stop + at.shift))
        return self.table.store(at.number, read, store.into, store.written, store.values)


def _columns_touch(one: Box, other: Box) -> bool:
    """Whether two boxes of the same rows are beside each other."""
    return one[0] == other[0] and touching(one[1], other[1])


def _united(one: Box, other: Box) -> Box:
    rows, columns = (a if a == b else union(a, b) for a, b in zip(one, other, strict=True))
    return rows, columns
