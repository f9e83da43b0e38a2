"""Calls that could become one: of one operator, equal in all operands but the one that grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import combinations

from nkigym.tile_rewrites.component import Component, Rank, TileRewrite
from nkigym.tile_rewrites.interning import InternTable
from nkigym.tile_rewrites.kinds import MERGE_CALLS, REUSE_CALLS, WIDEN_CALLS
from nkigym.tile_rewrites.nodes import (
    Call,
    Pair,
    Relocation,
    Renaming,
    adjacent,
    checked_renaming,
    greedy_pairs,
    union,
)
from nkigym.tiles.operators import OPERATORS


class Calls(Component):
    """Calls by the number of their result, in statement order."""

    def __init__(self, table: InternTable, calls: Mapping[int, Call]) -> None:
        first, *others = [call.reads for call in calls.values()]
        super().__init__(first.union(*others) if others else first)
        self.table = table
        self.calls = calls

    @cached_property
    def steps(self) -> Mapping[TileRewrite, Rank]:
        """Every two calls that touch where they differ and fit into one, in order of the first;
        after them, if requested, equal calls, and calls that are adjacent in several operands.
        """
        if len(self.calls) == 1:
            return {}
        found: dict[TileRewrite, Rank] = {}
        for rank, (kind, key, pairs) in enumerate(_KINDS, 2):
            if kind in self.table.kinds:
                groups: dict[object, list[int]] = {}
                for number, call in self.calls.items():
                    shared = key(call)
                    if shared is not None:
                        groups.setdefault(shared, []).append(number)
                place = rank if rank == 2 else rank + 1  # stores stand between
                found |= {
                    TileRewrite(kind, *pair): (place, *pair)
                    for group in groups.values()
                    for pair in pairs(self, group)
                }
        return found

    @property
    def count(self) -> int:
        return len(self.steps) if len(self.calls) > 1 else 0

    def _pairs(self, bucket: list[int]) -> tuple[Pair, ...]:
        record = OPERATORS[self.calls[bucket[0]].operator]
        most = record.most(record.grows[1]) if record.grows else 0

        def fit(first: int, second: int) -> bool:
            one, other = self.calls[first].grown, self.calls[second].grown
            return adjacent(one, other) and max(*one, *other) - min(*one, *other) <= most

        return greedy_pairs(bucket, fit)

    def _alike(self, group: list[int]) -> tuple[Pair, ...]:
        return tuple(combinations(group, 2))

    def _wide_pairs(self, group: list[int]) -> tuple[Pair, ...]:
        record = OPERATORS[self.calls[group[0]].operator]
        most = record.most(record.widens or "")

        def fit(first: int, second: int) -> bool:
            one, other = self.calls[first].wide, self.calls[second].wide
            pairs = list(zip(one, other, strict=True))
            turns = {adjacent(a, b) and a < b for a, b in pairs}
            if len(turns) > 1 or not all(adjacent(a, b) for a, b in pairs):
                return False
            start, stop = union(*pairs[0])
            return stop - start <= most

        return greedy_pairs(group, fit)

    def _apply(self, step: TileRewrite) -> tuple[Calls, Renaming]:
        return self._reuse(step) if step.kind == REUSE_CALLS else self._merge(step)

    def _reuse(self, step: TileRewrite) -> tuple[Calls, Renaming]:
        kept, gone = step[1:]
        calls = {n: c for n, c in self.calls.items() if n != gone}
        renaming = self.table.renaming({gone: Relocation(kept, 0, None)})
        old = {gone: self.calls[gone].values}
        return self.table.part(Calls, calls), checked_renaming(
            renaming, old, self.calls[kept].values
        )

    def _merge(self, step: TileRewrite) -> tuple[Calls, Renaming]:
        kept, gone = step[1:]
        pair = {number: self.calls[number] for number in (kept, gone)}
        if step.kind == WIDEN_CALLS:
            starts = {number: call.wide[0][0] for number, call in pair.items()}
        else:
            starts = {number: call.grown[0] for number, call in pair.items()}
        start = min(starts.values())
        wide = self.table.wider(pair[kept], pair[gone])
        calls = {n: c for n, c in ({**self.calls, kept: wide}).items() if n != gone}
        renaming = self.table.renaming({n: Relocation(kept, starts[n] - start, None) for n in pair})
        old = {number: call.values for number, call in pair.items()}
        return self.table.part(Calls, calls), checked_renaming(renaming, old, wide.values)

    def _move(self, renaming: Renaming) -> Calls:
        calls = dict(self.calls)
        for number, call in self.calls.items():
            if not call.reads.isdisjoint(renaming.moved):
                operands = tuple(operand.moved(renaming) for operand in call.operands)
                calls[number] = self.table.call(call.operator, operands, call.attributes)
        return self.table.part(Calls, calls)


def _equal(call: Call) -> object:
    """The same for calls on the very same tiles; None for sums, which have one place."""
    if OPERATORS[call.operator].accumulates is not None:
        return None
    operands = tuple((o.name, o.number, o.rows, o.columns) for o in call.operands)
    return call.operator, call.attributes, operands


_KINDS: tuple[
    tuple[str, Callable[[Call], object], Callable[[Calls, list[int]], tuple[Pair, ...]]], ...
] = (
    (MERGE_CALLS, lambda call: call.bucket, Calls._pairs),
    (REUSE_CALLS, _equal, Calls._alike),
    (WIDEN_CALLS, lambda call: call.family, Calls._wide_pairs),
)
"""What can be done to two calls: the kind, what they have in common, which of these fit."""
