"""Candidates for loops: the first statement and the number of iterations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from neuroncore.program.loop_rerolling.statement_table import NONE, Rows


class Users:
    """Statements that access each buffer. `pinned`: buffers that belong to no iteration."""

    def __init__(self, rows: Rows, pinned: np.ndarray) -> None:
        self.rows = rows
        self.row_of_use = rows.row_of_use()
        most = max(rows.buffers.max(initial=0), rows.made.max(initial=0), pinned.max(initial=0))
        self.made_at = np.full(most + 2, NONE)
        """(B + 1,) the row that allocates a buffer; the last is of NONE."""
        made = (rows.made != NONE).nonzero()[0]
        self.made_at[rows.made[made]] = made
        self.first = np.full(most + 2, len(rows))
        self.first[rows.buffers[::-1]] = self.row_of_use[::-1]
        self.last = np.full(most + 2, NONE)
        self.last[rows.buffers] = self.row_of_use
        self.last[NONE] = NONE
        until = self.last.copy()
        until[pinned] = 2 * len(rows)
        self.until = until[rows.made]
        """(R,) the last row that needs what a row allocates; NONE without one."""

    def places(self, buffers: np.ndarray, starts: np.ndarray, period: int) -> np.ndarray:
        """Where in the iteration that begins at a row of `starts` they are made, NONE."""
        at = self.made_at[buffers] - starts
        return np.where((at >= 0) & (at < period), at, NONE)

    def uses(self, buffers: np.ndarray) -> np.ndarray:
        """Where the accesses to the buffers stand, buffer by buffer."""
        begin, end = self._begin[buffers], self._begin[buffers + 1]
        counts = end - begin
        behind = np.cumsum(counts)
        return self._order[np.arange(behind[-1]) + np.repeat(end - behind, counts)]

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.rows.buffers, kind="stable")

    @cached_property
    def _begin(self) -> np.ndarray:
        """(B + 1,) where the accesses to a buffer begin in that order."""
        return np.searchsorted(self.rows.buffers[self._order], np.arange(len(self.last)))


def starts(rows: Rows, users: Users, period: int) -> Iterator[tuple[int, int, int]]:
    """The rows at which an iteration may begin that is followed by another; how many then follow
    one another, with equal steps; of how many, from the first, nothing is needed behind them.

    An access to the same buffer requires that the buffer was made before the iteration; one to a
    buffer that was made a period later, that it was made inside; any other excludes a loop.
    """
    recurs = _recurring(rows.kinds, period)
    if not len(recurs):
        return iter(())
    uses = recurs[users.row_of_use].nonzero()[0]
    row = users.row_of_use[uses]
    later = uses + (rows.first[row + period] - rows.first[row])
    now, then = rows.buffers[uses], rows.buffers[later]
    made = users.made_at[now]
    same = now == then
    moves = (made != NONE) & (users.made_at[then] == made + period)
    steps = np.zeros_like(rows.offsets)
    step = steps[uses] = rows.offsets[later] - rows.offsets[uses]

    # of each use, then of each row: what it begins behind, minus until when, whether steps differ
    of_use = np.empty((3, len(row)), np.int64)
    of_use[0] = np.where(same, made, np.where(moves, NONE, row))
    of_use[1] = np.where(moves, -made, -len(rows))
    of_use[2] = steps[later] != step
    of_row = np.zeros((4, len(rows)), np.int64)
    of_row[0, ~recurs] = len(rows)
    of_row[0, recurs] = NONE
    of_row[1] = -len(rows)
    of_row[3] = users.until
    if len(row):
        changes = np.ones(len(row), np.bool_)
        np.not_equal(row[1:], row[:-1], out=changes[1:])
        begin = changes.nonzero()[0]
        of_row[:3, row[begin]] = np.maximum.reduceat(of_use, begin, axis=1)

    latest, soonest, differs, until = _most_of_windows(of_row, period)
    at = np.arange(len(latest))
    begins = (latest < at) & (soonest <= -at)
    found = begins.nonzero()[0]
    if not len(found):
        return iter(())
    flags = np.zeros((2, len(at)), np.bool_)
    flags[0, :-period] = (differs[:-period] == 0) & begins[period:]
    flags[1] = until < at + period
    goes_on, kept = _in_a_row(flags, period)[:, found].tolist()
    return zip(found.tolist(), [2 + times for times in goes_on], kept, strict=True)


def _recurring(kinds: np.ndarray, period: int) -> np.ndarray:
    """(R,) whether a row is one of at least `period` in a row that recur; empty if none is."""
    same = (kinds[period:] == kinds[:-period]).nonzero()[0]
    if len(same) < period:
        return same[:0]
    breaks = (same[1:] - same[:-1] > 1).nonzero()[0] + 1
    if len(breaks):
        bounds = np.zeros(len(breaks) + 2, np.int64)
        bounds[1:-1], bounds[-1] = breaks, len(same)
        lengths = bounds[1:] - bounds[:-1]
        same = same[(lengths >= period).repeat(lengths)]
    recurs = np.zeros(len(kinds) if len(same) else 0, np.bool_)
    recurs[same] = True
    return recurs


def _most_of_windows(values: np.ndarray, width: int) -> np.ndarray:
    """The greatest of every `width` values that follow one another in a line of the table."""
    reached = 1
    while reached < width:
        step = min(reached, width - reached)
        values = np.maximum(values[:, :-step], values[:, step:])
        reached += step
    return values


def _in_a_row(flags: np.ndarray, period: int) -> np.ndarray:
    """(L, N) of each place in a line of flags, how many in a row of those at distance 0, `period`,
    2·`period`… are set.
    """
    lines, length = flags.shape
    height = length // period + 2
    table = np.zeros((lines, height * period), np.bool_)
    table[:, :length] = flags
    at = np.arange(height)[:, None]
    stops = np.where(table.reshape(lines, height, period), height, at)[:, ::-1]
    behind = np.minimum.accumulate(stops, axis=1)[:, ::-1] - at
    return behind.reshape(lines, -1)[:, :length]
