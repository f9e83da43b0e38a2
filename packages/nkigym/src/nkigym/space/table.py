"""One object for each slice, call, store and part: comparing is comparing identities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nkigym.space.calls import Call, Operand
from nkigym.space.kinds import EVERY
from nkigym.space.pairs import union
from nkigym.space.part import Part
from nkigym.space.renaming import Moved, Renaming, Slice
from nkigym.space.stores import Box, Store
from nkigym.space.values import Numbers, ValueTable
from nkigym.tiles.operators import OPERATORS
from nkigym.tiles.program import Interval

P = TypeVar("P", bound=Part)


@dataclass(slots=True)
class Table:
    """Everything that a search has met, and the kinds of steps that it takes."""

    kinds: frozenset[str] = EVERY
    values: ValueTable = field(default_factory=ValueTable)
    known: dict[Hashable, Any] = field(default_factory=dict)

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = make()
        return found

    def slice(self, source: str, rows: Interval, columns: Interval) -> Slice:
        """Part of a parameter."""
        values = self.values.of_slice(source, rows, columns)
        return self._once(
            (Slice, source, rows, columns), lambda: Slice(source, rows, columns, values)
        )

    def renaming(self, moved: Mapping[int, Moved]) -> Renaming:
        """Variables and where they are now."""
        return self._once((Renaming, *moved.items()), lambda: Renaming(moved))

    def store(self, number: int, read: Box, written: Box, values: Numbers) -> Store:
        """Part of a variable to part of the output."""
        return self._once(
            (Store, number, read, written, values), lambda: Store(number, read, written, values)
        )

    def call(self, operator: str, operands: tuple[Operand, ...]) -> Call:
        """A call and what it computes."""
        return self._once((operator, operands), lambda: self._call(operator, operands))

    def part(self, kind: Callable[[Table, Mapping[Any, Any]], P], members: Mapping[Any, Any]) -> P:
        """Loads, calls or stores."""
        return self._once((kind, *members.items()), lambda: kind(self, members))

    def wider(self, first: Call, second: Call) -> Call:
        """One call instead of two that share a bucket and touch."""
        name = (OPERATORS[first.operator].grows or ("",))[0]
        pair = sorted((first, second), key=lambda call: call.grown)
        left, right = (next(o for o in call.operands if o.name == name) for call in pair)
        columns = union(left.columns, right.columns)
        both = left._replace(columns=columns, values=left.values + right.values)
        return self.call(
            first.operator, tuple(both if o.name == name else o for o in first.operands)
        )

    def _call(self, operator: str, operands: tuple[Operand, ...]) -> Call:
        record = OPERATORS[operator]
        extents: dict[str, int] = {}
        given = []
        for operand in operands:
            rows, columns = axes = record.operands[operand.name]
            extents[rows] = operand.rows[1] - operand.rows[0]
            extents[columns] = operand.columns[1] - operand.columns[0]
            given.append((operand.values, record.result[1] in axes))
        shape = (extents[record.result[0]], extents[record.result[1]])
        values = self.values.of_call(operator, given)
        reads = frozenset(operand.number for operand in operands)
        return Call(operator, operands, shape, values, *_growing(operator, operands), reads)


def _growing(operator: str, operands: tuple[Operand, ...]) -> tuple[object, Interval]:
    """What calls share that could become one, and where they differ."""
    record = OPERATORS[operator]
    if record.grows is None:
        return None, (0, 0)
    name, axis = record.grows
    others = []
    grown, alone = operands[0], True
    for operand in operands:
        if operand.name == name:
            grown = operand
        else:
            others.append(operand)
            alone = alone and axis not in record.operands[operand.name]
    if not alone:
        return None, grown.columns
    shared = tuple(operand.signature for operand in others)
    return (operator, shared, grown.number, grown.rows), grown.columns
