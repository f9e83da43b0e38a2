"""Busy time of something that instructions may take in any order, each in the first gap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

Pieces = list[tuple[int, int]]
"""Sorted, disjoint stretches of time: start and end."""


class Gaps:
    """Sorted, disjoint busy intervals in ticks."""

    __slots__ = ("busy", "ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.busy = 0
        """All the time that was ever taken."""

    def reserve(self, ready: int, length: int) -> int:
        """Take `length` ticks in one piece, as early as possible from `ready` on; its start."""
        starts, ends = self.starts, self.ends
        self.busy += length
        if not ends or ready >= ends[-1]:
            self._append(ready, ready + length)
            return ready
        if not length:
            return ready
        at = bisect_right(ends, ready)
        begin = ready
        while at < len(starts):
            if starts[at] - begin >= length:
                break
            begin = max(begin, ends[at])
            at += 1
        else:
            self._append(begin, begin + length)
            return begin
        self._insert(at, begin, begin + length)
        return begin

    def follow(self, start: int, length: int) -> None:
        """Take `length` ticks from `start` on, behind everything that is taken."""
        if not length:
            return
        self.busy += length
        ends = self.ends
        if ends and ends[-1] == start:
            ends[-1] = start + length
        else:
            self.starts.append(start)
            ends.append(start + length)

    def first_gap(self, ready: int, length: int) -> int:
        """Where `reserve` would begin; nothing is taken."""
        starts, ends = self.starts, self.ends
        if not ends or ready >= ends[-1]:
            return ready
        for at in range(bisect_right(ends, ready), len(starts)):
            if starts[at] - ready >= length:
                break
            ready = max(ready, ends[at])
        return ready

    def insert(self, start: int, length: int) -> tuple[int | None, int]:
        """Take `length` free ticks between what is taken: where that ended before, began behind."""
        at = bisect_right(self.ends, start)
        before, after = self.ends[at - 1] if at else None, self.starts[at]
        self.busy += length
        self._insert(at, start, start + length)
        return before, after

    def fill(self, ready: int, length: int) -> int:
        """Take `length` ticks of idle time from `ready` on, in pieces; the end of the last."""
        starts, ends = self.starts, self.ends
        self.busy += length
        if not ends or ready >= ends[-1]:
            self._append(ready, ready + length)
            return ready + length
        if not length:
            return ready
        first = at = bisect_right(ends, ready)
        begin = ready
        while at < len(starts):
            free = starts[at] - begin
            if free >= length:
                break
            if free > 0:
                length -= free
            begin = ends[at]
            at += 1
        end = begin + length
        low = ready if at == first else min(starts[first], ready)
        starts[first:at], ends[first:at] = [low], [end]  # busy from there to the end now
        if first + 1 < len(starts) and starts[first + 1] <= end:
            ends[first] = max(end, ends[first + 1])
            del starts[first + 1], ends[first + 1]
        if first and ends[first - 1] == starts[first]:
            starts[first] = starts[first - 1]
            del starts[first - 1], ends[first - 1]
        return end

    def pieces(self, first: int) -> Pieces:
        """The reservations from `first` on."""
        at = bisect_right(self.ends, first)
        pairs = zip(self.starts[at:], self.ends[at:], strict=True)
        return [(start if start > first else first, end) for start, end in pairs]

    def stretches(self, first: int, least: int) -> Pieces:
        """The same, and what is free for less than `least` ticks is as good as taken."""
        found: Pieces = []
        begin = until = first
        for start, end in self.pieces(first):
            if start - until >= least:
                if until > first:
                    found.append((begin, until))
                begin = start
            until = end
        if until > first:
            found.append((begin, until))
        return found

    def idle_before(self, time: int) -> int:
        """For how long it has been free by then."""
        at = bisect_right(self.ends, time)
        return time - self.ends[at - 1] if at else time

    def repeat(self, first: int, before: Pieces, ticks: int, times: int, earliest: int) -> None:
        """The reservations behind `first` beside `before` are repeated `times` more, `ticks` apart.

        Nothing will be taken before `earliest` any more: periods that end there are left out, but
        for the last of them.
        """
        period = _without(self.pieces(first), before)
        if not period:
            return
        least = min(times, max(1, (earliest - period[-1][1]) // ticks))
        at = bisect_right(self.ends, period[0][0] + ticks * least)
        later = list(zip(self.starts[at:], self.ends[at:], strict=True))
        del self.starts[at:], self.ends[at:]
        for by in range(ticks * least, ticks * times + 1, ticks):
            later += [(start + by, end + by) for start, end in period]
        for start, end in sorted(later):
            self._append(start, end)

    def _append(self, start: int, end: int) -> None:
        if end == start:
            return
        if self.ends and self.ends[-1] == start:
            self.ends[-1] = end
        else:
            self.starts.append(start)
            self.ends.append(end)

    def _insert(self, at: int, start: int, end: int) -> None:
        """Put [start, end) before interval `at`; neighbours that touch it grow."""
        starts, ends = self.starts, self.ends
        joins_left = at > 0 and ends[at - 1] == start
        joins_right = starts[at] == end
        if joins_left and joins_right:
            ends[at - 1] = ends[at]
            del starts[at], ends[at]
        elif joins_left:
            ends[at - 1] = end
        elif joins_right:
            starts[at] = start
        else:
            starts.insert(at, start)
            ends.insert(at, end)


def common_gap(shared: Sequence[Gaps], ready: int, length: int) -> int:
    """From when on, `ready` at the earliest, all of them are free for `length` ticks."""
    while True:
        start = ready
        for gaps in shared:
            start = gaps.first_gap(start, length)
        if start == ready:
            return start
        ready = start


def _without(pieces: Pieces, others: Pieces) -> Pieces:
    """The part of `pieces` outside `others`; each of the latter is in one of the former."""
    found: Pieces = []
    at = 0
    for start, end in pieces:
        while at < len(others) and others[at][0] < end:
            if others[at][0] > start:
                found.append((start, others[at][0]))
            start = others[at][1]
            at += 1
        if end > start:
            found.append((start, end))
    return found
