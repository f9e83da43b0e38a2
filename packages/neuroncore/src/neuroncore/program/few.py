"""Loops among few statements, whose integers are read one by one sooner than arrays are made.

The same answers as `repeats` and `rolling` give, which are for many. A roll for which buffers would
have to become one is theirs too.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from operator import eq

import numpy as np

from neuroncore.program.rolling import Kinds
from neuroncore.program.rows import NONE, Forms, Rolled, Row, Rows

SIGHTS = 3  # how many next occurrences of a statement suggest a period

Numbers = tuple[int, ...]


@dataclass
class Few:
    """The statements of one level (R), as Rows are, in lists."""

    kinds: list[int] = field(default_factory=list)
    forms: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    inside: list[int] = field(default_factory=list)
    buffers: list[Numbers] = field(default_factory=list)
    """Of each row, whose elements its accesses name."""
    offsets: list[Numbers] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.kinds)

    def add(
        self, kind: int, form: int, made: int, inside: int, buffers: Numbers, offsets: Numbers
    ) -> None:
        """One row more."""
        self.kinds.append(kind)
        self.forms.append(form)
        self.made.append(made)
        self.inside.append(inside)
        self.buffers.append(buffers)
        self.offsets.append(offsets)

    def part(self, start: int, stop: int) -> Few:
        """The rows from `start` to before `stop`."""
        at = slice(start, stop)
        return Few(
            self.kinds[at], self.forms[at], self.made[at], self.inside[at],
            self.buffers[at], self.offsets[at],
        )  # fmt: skip

    def extend(self, more: Few) -> None:
        """Other rows behind these."""
        self.kinds += more.kinds
        self.forms += more.forms
        self.made += more.made
        self.inside += more.inside
        self.buffers += more.buffers
        self.offsets += more.offsets

    def depth(self) -> int:
        """How deep loops are nested in one of them."""
        return max(self.inside)

    def each(self) -> Iterator[Row]:
        """Row by row."""
        return zip(self.forms, self.made, self.buffers, self.offsets, strict=True)

    def rows(self) -> Rows:
        """The same in arrays."""
        columns = (
            self.kinds, self.forms, self.made, self.inside,
            [0, *accumulate(map(len, self.buffers))],
            [*chain.from_iterable(self.buffers)], [*chain.from_iterable(self.offsets)],
        )  # fmt: skip
        return Rows(*(np.array(column, np.int64) for column in columns))


def roll_few(rows: Few, forms: Forms, kinds: Kinds, pinned: Set[int]) -> tuple[Few, bool]:
    """The rows with loops for what repeats in them; whether none is left to be found."""
    while True:
        level = _Level(rows, pinned)
        for period in level.periods():
            rolls = level.rolls(period)
            if rolls is None:
                return rows, False
            if rolls:
                rows = level.rolled(period, rolls, forms, kinds)
                break
        else:
            return rows, True


@dataclass
class _Level:
    """Rows, and who touches which buffer."""

    rows: Few
    pinned: Set[int]

    @cached_property
    def made_at(self) -> dict[int, int]:
        """The row that allocates a buffer."""
        return {buffer: row for row, buffer in enumerate(self.rows.made) if buffer != NONE}

    @cached_property
    def last(self) -> dict[int, int]:
        """The last row that needs a buffer."""
        found = {b: row for row, buffers in enumerate(self.rows.buffers) for b in buffers}
        return found | dict.fromkeys(self.pinned, 2 * len(self.rows)) | {NONE: NONE}

    def periods(self) -> list[int]:
        """Distances at which statements recur, shortest first."""
        seen: dict[int, list[int]] = {}
        found: set[int] = set()
        for row, kind in enumerate(self.rows.kinds):
            before = seen.setdefault(kind, [])
            found.update([row - at for at in before[-SIGHTS:]])
            before.append(row)
        return sorted(found)

    def rolls(self, period: int) -> list[tuple[int, int]] | None:
        """Where loops of that period start, and their trips; None where buffers outlive a trip."""
        kinds = self.rows.kinds
        recurs, run = bytes(map(eq, kinds, kinds[period:])), b"\1" * period
        found = list[tuple[int, int]]()
        at = recurs.find(run)
        while at >= 0:
            if not self.begins(at, period):
                at = recurs.find(run, at + 1)
                continue
            trips, behind = 2, at + period
            while (
                recurs.startswith(run, behind)
                and self.is_steady(behind, period)
                and self.begins(behind, period)
            ):
                trips, behind = trips + 1, behind + period
            if not self.is_kept(at, period, trips):
                return None
            found.append((at, trips))
            at = recurs.find(run, at + period * trips)
        return found

    def begins(self, start: int, period: int) -> bool:
        """Whether an iteration may begin here that is followed by another: see `starts`."""
        made_at, buffers = self.made_at, self.rows.buffers
        for row in range(start, start + period):
            for now, then in zip(buffers[row], buffers[row + period], strict=True):
                made = made_at.get(now, NONE)
                if now == then:
                    if made >= start:
                        return False
                elif made < start or made_at.get(then) != made + period:
                    return False
        return True

    def is_steady(self, start: int, period: int) -> bool:
        """Whether accesses move as far from this iteration on as they did to get here."""
        offsets = self.rows.offsets
        return all(
            then - now == now - before
            for row in range(start, start + period)
            for before, now, then in zip(
                offsets[row - period], offsets[row], offsets[row + period], strict=True
            )
        )

    def is_kept(self, start: int, period: int, trips: int) -> bool:
        """Whether nobody behind an iteration needs what it makes."""
        made, last = self.rows.made, self.last
        return all(
            last.get(made[row], NONE) < end
            for end in range(start + period, start + period * trips + 1, period)
            for row in range(end - period, end)
        )

    def rolled(self, period: int, rolls: list[tuple[int, int]], forms: Forms, kinds: Kinds) -> Few:
        """The rows with a loop for each of `rolls`."""
        rows, new, done = self.rows, Few(), 0
        for start, trips in rolls:
            end = start + period
            first, second = rows.part(start, end), rows.offsets[end : end + period]
            buffers = [*chain.from_iterable(first.buffers)]
            offsets = [*chain.from_iterable(first.offsets)]
            steps = [b - a for a, b in zip(offsets, chain.from_iterable(second), strict=True)]
            places = [self.made_at.get(buffer, NONE) - start for buffer in buffers]
            own = [place if 0 <= place < period else NONE for place in places]
            look = np.array([trips, *first.kinds, *steps, *own], np.int64).tobytes()
            new.extend(rows.part(done, start))
            new.add(
                kinds.number((period, look)),
                forms.add(Rolled(rows, start, period, trips, steps)),
                NONE,
                first.depth() + 1,
                tuple([b if at == NONE else NONE for b, at in zip(buffers, own, strict=True)]),
                tuple(offsets),
            )
            done = start + period * trips
        new.extend(rows.part(done, len(rows)))
        return new
