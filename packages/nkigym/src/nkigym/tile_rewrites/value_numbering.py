"""Value numbers: equal numbers are equal tiles, to the bit, under any names and order.

A number identifies the value of one tile of 128 x 128, the atom. What was loaded is numbered by
where it comes from; what was computed by its operator and the numbers of its operands, the sum so
far among them, so that a chain of additions keeps its order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from nkigym.tiles.program import Interval
from nkigym.tiles.roots import TILE

Numbers = tuple[int, ...]
"""Numbers of the atoms along axis 1, axis 0 being one atom high."""


class CertificateError(AssertionError):
    """A step would change what the program computes. A mistake of ours, never the user's."""


@dataclass(slots=True)
class ValueTable:
    """Gives numbers out; the same description gets the same one."""

    known: dict[Hashable, int] = field(default_factory=dict)

    def number(self, description: Hashable) -> int:
        return self.known.setdefault(description, len(self.known))

    def of_slice(self, source: str, rows: Interval, columns: Interval) -> Numbers:
        """Of part of a parameter."""
        return tuple(self.number((source, rows, start)) for start in range(*columns, TILE))

    def of_call(
        self, operator: Hashable, operands: Sequence[tuple[Numbers, bool]]
    ) -> Numbers:  # fmt: skip
        """Of a result: atom by atom along operands as wide as the result; the others go whole into
        each.
        """
        width = max([len(numbers) for numbers, is_wide in operands if is_wide], default=1)
        return tuple(
            [
                self.number((operator, *[n[atom] if wide else n for n, wide in operands]))
                for atom in range(width)
            ]
        )


def atoms(numbers: Numbers, interval: Interval) -> Numbers:
    """The numbers of part of a variable; a column is an atom of its own."""
    return numbers[interval[0] // TILE : -(-interval[1] // TILE)]
