"""The renaming of variables in the readers of a rewritten component."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nkigym.tile_rewrites.value_numbering import CertificateError, Numbers, atoms
from nkigym.tiles.program import Interval
from nkigym.tiles.roots import TILE


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
