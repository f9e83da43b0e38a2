"""One object for each slice, call, store and part: comparing is comparing identities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nkigym.tile_rewrites.kinds import EVERY, WIDEN_CALLS
from nkigym.tile_rewrites.nodes import (
    Attributes,
    Box,
    Call,
    Operand,
    Relocation,
    Renaming,
    Slice,
    Store,
    union,
)
from nkigym.tile_rewrites.value_numbering import Numbers, ValueTable
from nkigym.tiles.operators import ONE, OPERATORS
from nkigym.tiles.program import Interval

P = TypeVar("P")


@dataclass(slots=True)
class InternTable:
    """Everything that a search has met, and the kinds of steps that it takes."""

    kinds: frozenset[str] = EVERY
    repeats: bool = False
    """Whether a load may contain copies of its slice."""
    values: ValueTable = field(default_factory=ValueTable)
    known: dict[Hashable, Any] = field(default_factory=dict)

    def _interned(self, key: Hashable, make: Callable[[], Any]) -> Any:
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = make()
        return found

    def slice(self, source: str, rows: Interval, columns: Interval, copies: int = 1) -> Slice:
        """Part of a parameter, or so many copies of it side by side."""
        values = self.values.of_slice(source, rows, columns) * copies
        return self._interned(
            (Slice, source, rows, columns, copies),
            lambda: Slice(source, rows, columns, values, copies),
        )

    def renaming(self, moved: Mapping[int, Relocation]) -> Renaming:
        """Variables and where they are now."""
        return self._interned((Renaming, *moved.items()), lambda: Renaming(moved))

    def store(self, number: int, read: Box, into: str, written: Box, values: Numbers) -> Store:
        """Part of a variable to part of an output."""
        return self._interned(
            (Store, number, read, into, written, values),
            lambda: Store(number, read, into, written, values),
        )

    def call(
        self, operator: str, operands: tuple[Operand, ...], attributes: Attributes = ()
    ) -> Call:
        """A call and what it computes."""
        return self._interned(
            (operator, operands, attributes), lambda: self._call(operator, operands, attributes)
        )

    def part(
        self, kind: Callable[[InternTable, Mapping[Any, Any]], P], members: Mapping[Any, Any]
    ) -> P:
        """Loads, calls or stores."""
        return self._interned((kind, *members.items()), lambda: kind(self, members))

    def wider(self, first: Call, second: Call) -> Call:
        """One call instead of two that share a bucket or a family and touch."""
        record = OPERATORS[first.operator]
        names = {record.grows[0]} if record.grows else set[str]()
        if first.family is not None:
            names = {n for n, axes in record.operands.items() if axes[1] == record.widens}
        operands = tuple(
            _both(one, other) if one.name in names else one
            for one, other in zip(first.operands, second.operands, strict=True)
        )
        return self.call(first.operator, operands, first.attributes)

    def _call(self, operator: str, operands: tuple[Operand, ...], attributes: Attributes) -> Call:
        record = OPERATORS[operator]
        extents = {ONE: 1}
        given = []
        for operand in operands:
            rows, columns = record.operands[operand.name]
            extents[rows] = operand.rows[1] - operand.rows[0]
            extents[columns] = operand.columns[1] - operand.columns[0]
            given.append((operand.values, record.result[1] == columns))
        shape = (extents[record.result[0]], extents[record.result[1]])
        named = (operator, *attributes) if attributes else operator
        values = self.values.of_call(named, given)
        reads = frozenset(operand.number for operand in operands)
        grows = _growing(operator, operands, attributes)
        widens = None, ()
        if WIDEN_CALLS in self.kinds:
            widens = _widening(operator, operands, attributes)
        return Call(operator, operands, attributes, shape, values, *grows, *widens, reads)


def _both(one: Operand, other: Operand) -> Operand:
    """The access of two adjacent operands as one."""
    left, right = sorted((one, other), key=lambda operand: operand.columns)
    columns = union(left.columns, right.columns)
    return one._replace(columns=columns, values=left.values + right.values)


def _widening(
    operator: str, operands: tuple[Operand, ...], attributes: Attributes
) -> tuple[object, tuple[Interval, ...]]:
    """The common part of calls that could become one along an axis, and the places where they
    differ."""
    record = OPERATORS[operator]
    wide = [o for o in operands if record.operands[o.name][1] == record.widens]
    if len(wide) < 2:
        return None, ()
    others = tuple((o.name, o.number, o.rows) if o in wide else o.signature for o in operands)
    return (operator, attributes, others), tuple(o.columns for o in wide)


def _growing(
    operator: str, operands: tuple[Operand, ...], attributes: Attributes
) -> tuple[object, Interval]:
    """The common part of calls that could become one, and where they differ."""
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
    return (operator, attributes, shared, grown.number, grown.rows), grown.columns
