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
        self.rows, self.period = rows, period
        self.base = int(rows.first[first])
        now = slice(self.base, int(rows.first[last + 1]))
        later = slice(int(rows.first[first + period]), int(rows.first[last + 1 + period]))
        self.row = users.row_of_use[now]
        made = users.made_at[rows.buffers[now]]
        same = rows.buffers[now] == rows.buffers[later]
        moves = (made != NONE) & (users.made_at[rows.buffers[later]] == made + period)
        self.after = np.where(same, made, np.where(moves, NONE, self.row))
        """(uses,) an iteration with this access begins behind that row …"""
        self.until = np.where(moves & ~same, made, len(rows))
        """… and not behind this one."""

    def not_before(self, at: int) -> int:
        """`at` if an iteration may begin there, or else a later row before which none does."""
        first, behind = self.rows.first[[at, at + self.period]] - self.base
        if first == behind:
            return at
        uses = slice(int(first), int(behind))
        late = np.flatnonzero(self.until[uses] < at)
        after = int(self.row[uses][late[-1]]) if len(late) else NONE
        return max(at, after + 1, int(self.after[uses].max()) + 1)
