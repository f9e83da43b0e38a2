"""Where iterations of a loop may begin: who touches which buffer, and who made it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from neuroncore.program.rows import NONE, Rows


class Users:
    """Who touches which buffer."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.row_of_use = rows.row_of_use()
        most = max(rows.buffers.max(initial=0), rows.made.max(initial=0))
        self.made_at = np.full(most + 2, NONE)
        """(B + 1,) the row that allocates a buffer; the last is of NONE."""
        made = np.flatnonzero(rows.made != NONE)
        self.made_at[rows.made[made]] = made
        self.first = np.full(most + 2, len(rows))
        self.first[rows.buffers[::-1]] = self.row_of_use[::-1]
        self.last = np.full(most + 2, NONE)
        self.last[rows.buffers] = self.row_of_use

    def places(self, buffers: np.ndarray, start: int | np.ndarray, period: int) -> np.ndarray:
        """Where in the iteration that begins at row `start` they are made, NONE."""
        at = self.made_at[buffers] - start
        return np.where((at >= 0) & (at < period), at, NONE)

    def uses(self, buffer: int) -> np.ndarray:
        """Where the accesses to the buffer stand."""
        low, high = np.searchsorted(self._sorted, (buffer, buffer + 1))
        return self._order[low:high]

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.rows.buffers, kind="stable")

    @cached_property
    def _sorted(self) -> np.ndarray:
        return self.rows.buffers[self._order]


class Repeats:
    """Where in a run of statements that recur with a period an iteration may be followed by one.

    Each access tells: one to the same buffer, that the buffer was made before the iteration; one to
    a buffer that was made a period later, that it was made inside; any other, that there is none.
    """

    def __init__(self, rows: Rows, users: Users, period: int, first: int, last: int) -> None:
        now = slice(int(rows.first[first]), int(rows.first[last + 1]))
        later = slice(int(rows.first[first + period]), int(rows.first[last + 1 + period]))
        made = users.made_at[rows.buffers[now]]
        same = rows.buffers[now] == rows.buffers[later]
        moves = (made != NONE) & (users.made_at[rows.buffers[later]] == made + period)
        after = np.where(same, made, np.where(moves, NONE, users.row_of_use[now]))
        until = np.where(moves & ~same, made, len(rows))
        begin = rows.first[first : last + 2] - now.start
        latest = _over_windows(np.maximum, _by_row(np.maximum, after, begin, NONE), period)
        soonest = _over_windows(np.minimum, _by_row(np.minimum, until, begin, len(rows)), period)
        at = np.arange(first, first + len(latest))
        self.starts: list[int] = (np.flatnonzero((latest < at) & (at <= soonest)) + first).tolist()
        """The rows at which an iteration may begin: behind the latest row that its accesses say,
        and not behind the soonest."""


def _by_row(extreme: np.ufunc, values: np.ndarray, begin: np.ndarray, of_none: int) -> np.ndarray:
    """The extreme of each row's accesses; those of row r stand from begin[r] to begin[r + 1]."""
    found = np.full(len(begin) - 1, of_none)
    with_some = begin[:-1] < begin[1:]
    if with_some.any():
        found[with_some] = extreme.reduceat(values, begin[:-1][with_some])
    return found


def _over_windows(extreme: np.ufunc, values: np.ndarray, width: int) -> np.ndarray:
    """The extreme of every `width` values in a row."""
    reached = 1
    while reached < width:
        step = min(reached, width - reached)
        values = extreme(values[:-step], values[step:])
        reached += step
    return values
