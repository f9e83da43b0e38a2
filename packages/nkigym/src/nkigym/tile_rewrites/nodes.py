"""Calls and stores of a tile program as interned values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nkigym.tile_rewrites.renaming import Renaming, Slice
from nkigym.tile_rewrites.value_numbering import Numbers
from nkigym.tiles.program import Attribute, Interval
from nkigym.tiles.roots import TILE

Attributes = tuple[tuple[str, Attribute], ...]


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
        the variable, else the very part; and how large it is.
        """
        if self.rows[0] == self.columns[0] == 0:
            place = self.number if self.loaded is None else self.loaded
            return place, self.rows[1], self.columns[1]
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
    `grown`, and None where none can; `family` for calls that differ, at most, in the columns of all
    operands that have the widening axis, None where there is none or one.
    """

    operator: str
    operands: tuple[Operand, ...]
    attributes: Attributes
    extents: tuple[int, int]
    values: Numbers
    bucket: object
    grown: Interval
    family: object
    wide: tuple[Interval, ...]
    reads: frozenset[int]


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
