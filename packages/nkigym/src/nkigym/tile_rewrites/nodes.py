"""Calls and stores of a tile program as interned values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nkigym.tile_rewrites.value_numbering import CertificateError, Numbers, atoms
from nkigym.tiles.program import Attribute, Interval
from nkigym.tiles.roots import TILE

Attributes = tuple[tuple[str, Attribute], ...]


class Operand(NamedTuple):
    """An operand of a call: part of a variable, the source of its load, and its value number."""

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


# -- renaming --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Part of a parameter, or so many copies of it side by side. One object for each: the same
    where it is identical.
    """

    source: str
    rows: Interval
    columns: Interval
    values: Numbers
    copies: int = 1


class Relocation(NamedTuple):
    """Where a variable is found now."""

    number: int
    shift: int  # elements along axis 1
    loaded: Slice | None  # where the variable is loaded from, if it is


@dataclass(frozen=True, slots=True, eq=False)
class Renaming:
    """Variables and where they are now. The same where it is identical."""

    moved: Mapping[int, Relocation]


def checked_renaming(renaming: Renaming, old: Mapping[int, Numbers], new: Numbers) -> Renaming:
    """The renaming, where each old variable is, atom by atom, the part of the new one that it
    points to. Raises CertificateError otherwise.
    """
    for number, (_, shift, _) in renaming.moved.items():
        if atoms(new, (shift, shift + TILE * len(old[number]))) != old[number]:
            raise CertificateError(f"t{number} is not what is at {shift} of its new variable")
    return renaming


# -- intervals -------------------------------------------------------------------------------------


Pair = tuple[int, int]


def adjacent(first: Interval, second: Interval) -> bool:
    """Whether one ends where the other starts."""
    return first[1] == second[0] or second[1] == first[0]


def union(first: Interval, second: Interval) -> Interval:
    """Of two that touch."""
    return min(first[0], second[0]), max(first[1], second[1])


def greedy_pairs(members: Sequence[int], fits: Callable[[int, int], bool]) -> tuple[Pair, ...]:
    """Each member with the first one behind it that fits, none in two pairs."""
    used: set[int] = set()
    pairs = []
    for at, first in enumerate(members):
        if first in used:
            continue
        for second in members[at + 1 :]:
            if second not in used and fits(first, second):
                pairs.append((first, second))
                used |= {first, second}
                break
    return tuple(pairs)
