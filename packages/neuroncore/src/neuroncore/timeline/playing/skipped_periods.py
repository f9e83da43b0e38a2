"""The numbers of bars, those included that were carried forward instead of played."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple


class Skip(NamedTuple):
    """A period of `size` bars that comes `times` more from bar `start` on, `ticks` apart."""

    start: int
    size: int
    times: int
    ticks: int
    skipped: int
    """Bars that were carried forward until behind it."""
    drift: int
    """How many ticks more its transfers end apart than they start."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The bar that was played for another one."""

    place: int
    """Its index among the played bars."""
    number: int
    later: int
    """By how many ticks it is earlier."""
    rounds: tuple[tuple[Skip, int], ...]
    """The periods that the other one is in and the first bar behind the played one of each,
    outermost first."""


class Skips:
    """In order of `start`; a period may have others inside."""

    def __init__(self) -> None:
        self.all: list[Skip] = []
        self.starts: list[int] = []
        self.fresh = 0
        """The place in the list of played bars of the first one behind all of them."""

    def add(self, start: int, size: int, times: int, ticks: int, skipped: int, drift: int) -> None:
        """A period that ends at bar `start` was carried forward."""
        self.starts.append(start)
        self.all.append(Skip(start, size, times, ticks, skipped, drift))
        self.fresh = start + size * times - skipped

    def twin(self, number: int) -> Twin:
        """The bar that was played for this one; itself where it was."""
        later = moved = 0
        rounds: list[tuple[Skip, int]] = []
        while at := bisect_right(self.starts, number):
            skip = self.all[at - 1]
            behind = number - skip.start
            if behind >= skip.size * skip.times:
                return Twin(number - skip.skipped, number, later, tuple(rounds))
            rounds.append((skip, skip.start + moved))
            count = behind // skip.size + 1
            number -= count * skip.size
            moved += count * skip.size
            later += count * skip.ticks
        return Twin(number, number, later, tuple(rounds))

    def place(self, number: int) -> int:
        """The index of the bar, or of its twin, among the played bars."""
        return self.twin(number).place if self.all else number
