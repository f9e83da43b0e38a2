"""Calls that could become one: of one operator, equal in all operands but the one that grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from nkigym.space.kinds import MERGE_CALLS
from nkigym.space.pairs import Pair, greedy_pairs, touching, union
from nkigym.space.part import Part, Rank, Step
from nkigym.space.renaming import Moved, Renaming, Slice, proved
from nkigym.space.values import Numbers
from nkigym.tiles.operators import OPERATORS
from nkigym.tiles.program import Interval

if TYPE_CHECKING:
    from nkigym.space.table import Table


class Operand(NamedTuple):
    """What a call reads: part of a variable, where that was loaded from, and what it is."""

    name: str
    number: int
    rows: Interval
    columns: Interval
    loaded: Slice | None
    values: Numbers

    @property
    def signature(self) -> object:
        """Equal for equal data that a wider call could share.

        Of the start of a loaded variable where that was loaded from, of the start of another one
        the variable, else the very part.
        """
        if self.rows[0] == self.columns[0] == 0:
            return self.number if self.loaded is None else self.loaded
        return self.number, self.rows, self.columns

    def moved(self, renaming: Renaming) -> Operand:
        """The same data where it is now."""
        at = renaming.moved.get(self.number)
        if at is None:
            return self
        columns = self.columns
        if at.shift:
            columns = (columns[0] + at.shift, columns[1] + at.shift)
        return Operand(self.name, at.number, self.rows, columns, at.loaded, self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call; its result is a variable of its own. The same where it is identical.

    `bucket` is equal for calls that differ, at most, in the columns of the operand that can grow,
    `grown`, and None where none can.
    """

    operator: str
    operands: tuple[Operand, ...]
    extents: tuple[int, int]
    values: Numbers
    bucket: object
    grown: Interval
    reads: frozenset[int]


class Calls(Part):
    """Calls by the number of their result, in statement order."""

    def __init__(self, table: Table, calls: Mapping[int, Call]) -> None:
        first, *others = [call.reads for call in calls.values()]
        super().__init__(first.union(*others) if others else first)
        self.table = table
        self.calls = calls

    @cached_property
    def steps(self) -> Mapping[Step, Rank]:
        """Every two calls that touch where they differ and fit into one, in order of the first."""
        if len(self.calls) == 1 or MERGE_CALLS not in self.table.kinds:
            return {}
        buckets: dict[object, list[int]] = {}
        for number, call in self.calls.items():
            if call.bucket is not None:
                buckets.setdefault(call.bucket, []).append(number)
        return {
            Step(MERGE_CALLS, *pair): (2, *pair)
            for bucket in buckets.values()
            for pair in self._pairs(bucket)
        }

    @property
    def count(self) -> int:
        return len(self.steps) if len(self.calls) > 1 else 0

    def _pairs(self, bucket: list[int]) -> tuple[Pair, ...]:
        record = OPERATORS[self.calls[bucket[0]].operator]
        most = record.limits[record.grows[1]] if record.grows else 0

        def fit(first: int, second: int) -> bool:
            one, other = self.calls[first].grown, self.calls[second].grown
            return touching(one, other) and max(*one, *other) - min(*one, *other) <= most

        return greedy_pairs(bucket, fit)

    def _apply(self, step: Step) -> tuple[Calls, Renaming]:
        kept, gone = step[1:]
        pair = {number: self.calls[number] for number in (kept, gone)}
        start, _ = union(pair[kept].grown, pair[gone].grown)
        wide = self.table.wider(pair[kept], pair[gone])
        calls = {n: c for n, c in ({**self.calls, kept: wide}).items() if n != gone}
        renaming = self.table.renaming(
            {n: Moved(kept, call.grown[0] - start, None) for n, call in pair.items()}
        )
        old = {number: call.values for number, call in pair.items()}
        return self.table.part(Calls, calls), proved(renaming, old, wide.values)

    def _move(self, renaming: Renaming) -> Calls:
        calls = dict(self.calls)
        for number, call in self.calls.items():
            if not call.reads.isdisjoint(renaming.moved):
                operands = tuple(operand.moved(renaming) for operand in call.operands)
                calls[number] = self.table.call(call.operator, operands)
        return self.table.part(Calls, calls)
