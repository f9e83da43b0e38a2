"""Stores of one result, that could become one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from nkigym.tile_rewrites.component import Component, Rank, TileRewrite
from nkigym.tile_rewrites.interning import InternTable
from nkigym.tile_rewrites.kinds import MERGE_STORES
from nkigym.tile_rewrites.nodes import Box, Renaming, Store, adjacent, greedy_pairs, union
from nkigym.tile_rewrites.value_numbering import CertificateError


class Stores(Component):
    """Stores by their place among the root's, in statement order."""

    def __init__(self, table: InternTable, stores: Mapping[int, Store]) -> None:
        super().__init__(frozenset(store.number for store in stores.values()))
        self.table = table
        self.stores = stores

    @cached_property
    def steps(self) -> Mapping[TileRewrite, Rank]:
        """Every two stores of one variable whose columns touch on both sides in one order, of the
        same rows; in order of the first.
        """
        if len(self.stores) == 1 or MERGE_STORES not in self.table.kinds:
            return {}
        groups: dict[tuple[int, str], list[int]] = {}
        for place, store in self.stores.items():
            groups.setdefault((store.number, store.into), []).append(place)
        return {
            TileRewrite(MERGE_STORES, *pair): (3, *pair)
            for group in groups.values()
            for pair in greedy_pairs(group, self._fit)
        }

    def _fit(self, first: int, second: int) -> bool:
        one, other = self.stores[first], self.stores[second]
        touch = _columns_adjacent(one.written, other.written) and _columns_adjacent(
            one.read, other.read
        )
        return touch and (one.written < other.written) == (one.read < other.read)

    def _apply(self, step: TileRewrite) -> tuple[Stores, None]:
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


def _columns_adjacent(one: Box, other: Box) -> bool:
    """Whether two boxes of the same rows are beside each other."""
    return one[0] == other[0] and adjacent(one[1], other[1])


def _united(one: Box, other: Box) -> Box:
    rows, columns = (a if a == b else union(a, b) for a, b in zip(one, other, strict=True))
    return rows, columns
