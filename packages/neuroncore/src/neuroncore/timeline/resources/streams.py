"""Lanes as instruction streams: in program order, and as the compiler has reordered them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from neuroncore.timeline.model.bars import NO_BAR
from neuroncore.timeline.resources.reservations import Gaps, Pieces, common_gap

Reason = Callable[[int, int], tuple[int, int]]
"""From a bar that was waited for, and why, to (cause, lane waited for)."""


class Lane:
    """A stream that takes its instructions in order."""

    __slots__ = ("busy", "end", "free", "last", "number", "stalls")

    def __init__(self, number: int) -> None:
        self.number = number
        self.free = 0
        """Nothing occupies it from here on."""
        self.last = NO_BAR
        """Its latest bar."""
        self.busy = 0
        self.end = 0
        """When its last result is there."""
        self.stalls: dict[tuple[int, int], int] = {}
        """(cause, lane waited for) → ticks."""

    @property
    def earliest(self) -> int:
        """Nothing that comes will start before."""
        return self.free

    def openings(self, least: int, here: int) -> tuple:
        """Its free time before `free` as instructions of `least` ticks and more see it, relative to
        `earliest` and bar `here`: how long it has been idle by then, for all of a gap that is
        filled is put down to others; busy stretches, what ends each, why the lane idles before it.
        """
        return ()

    def mark(self) -> Mark | None:
        """The identity of a period that begins now, where it may leave gaps."""
        return None

    def repeat(self, since: Mark | None, period: Period, times: int) -> None:
        """The steps of the period since that mark are repeated `times` more."""
        self.free += period.ticks * times
        self.end += period.ticks * times
        self.last += period.size * times


class Mark(NamedTuple):
    """A reordered stream at one moment."""

    earliest: int
    taken: Pieces
    reasons: frozenset[int]


class Period(NamedTuple):
    """A stretch of time that comes again: its first bar, its bars and ticks."""

    first: int
    size: int
    ticks: int


class ReorderedLane(Lane):
    """A stream that the compiler has reordered: an instruction goes into the first gap.

    Gaps further back than `horizon` before its latest instruction are lost.
    """

    __slots__ = ("ended", "horizon", "reasons", "taken")

    def __init__(self, number: int, horizon: int) -> None:
        super().__init__(number)
        self.taken, self.horizon = Gaps(), horizon
        self.ended: dict[int, int] = {}
        """When an instruction left the lane → its bar."""
        self.reasons: dict[int, tuple[int, int]] = {}
        """When an instruction started → (cause, lane waited for), if the lane idles before it."""

    @property
    def earliest(self) -> int:
        return max(0, self.free - self.horizon)

    def first_gap(self, ready: int, interval: int, ports: Sequence[Gaps] = ()) -> tuple[int, int]:
        """Where an instruction may start on the lane alone, and where with the ports it takes."""
        if ready >= self.free and not ports:
            return ready, ready
        if ready >= self.free:
            alone = ready
        else:
            alone = self.taken.first_gap(max(ready, self.free - self.horizon), interval)
        for gaps in ports:
            if gaps.ends and alone < gaps.ends[-1]:
                return alone, common_gap((self.taken, *ports), alone, interval)
        return alone, alone

    def occupy(
        self, start: int, interval: int, cause: int, why: int, bar: int, reason: Reason
    ) -> None:
        """Instruction `bar`, which waited for bar `cause`, takes its place.

        The time that the lane idles is attributed to the next instruction, for the reason that
        `reason` finds. One that takes no time, with costs of 0, needs no place.
        """
        if not interval:
            return
        free, ends, ended, end = self.free, self.taken.ends, self.ended, start + interval
        if start >= free:
            self.free = end
            if ends and ends[-1] == start:
                ends[-1] = end
            else:
                self.reasons[start] = mine = reason(cause, why)
                if start > free and ended:
                    self.stalls[mine] = self.stalls.get(mine, 0) + start - free
                self.taken.follow(start, interval)
            ended[end] = bar
            return
        ended[end] = bar
        before, after = self.taken.insert(start, interval)
        stalls, later = self.stalls, self.reasons[after]
        if before is None:
            self.reasons[start] = reason(cause, why)
            if after > end:
                stalls[later] = stalls.get(later, 0) + after - end
            return
        stalls[later] = stalls.get(later, 0) + before - end
        if start > before:
            self.reasons[start] = mine = reason(cause, why)
            stalls[mine] = stalls.get(mine, 0) + start - before

    def before(self, time: int) -> int:
        """The instruction behind which one starts at `time`."""
        return self.ended.get(time, NO_BAR)

    def openings(self, least: int, here: int) -> tuple:
        earliest, ended, reasons = self.earliest, self.ended, self.reasons
        stretches = self.taken.stretches(earliest, least)
        busy = [(s - earliest, e - earliest, here - ended.get(e, here)) for s, e in stretches]
        first = here - ended.get(earliest, here)
        idle = self.taken.idle_before(earliest) if busy and busy[0][0] else 0
        return first, idle, busy, [reasons.get(s) for s, _ in stretches if s > earliest]

    def mark(self) -> Mark:
        earliest = self.earliest
        self._prune(earliest)
        return Mark(earliest, self.taken.pieces(earliest), frozenset(self.reasons))

    def repeat(self, since: Mark | None, period: Period, times: int) -> None:
        assert since is not None
        super().repeat(since, period, times)
        ticks, recent = period.ticks, self.earliest
        self.taken.repeat(since.earliest, since.taken, ticks, times, recent)
        for time, bar in list(self.ended.items()):
            if bar >= period.first:
                for count in range(max(1, -((time - recent) // ticks)), times + 1):
                    self.ended[time + count * ticks] = bar + count * period.size
        for time, reason in list(self.reasons.items()):
            if time not in since.reasons:
                for count in range(max(1, -((time - recent) // ticks)), times + 1):
                    self.reasons[time + count * ticks] = reason
        self._prune(recent)

    def _prune(self, recent: int) -> None:
        """Drop entries before `recent`: nothing starts before it."""
        self.ended = {time: bar for time, bar in self.ended.items() if time >= recent}
        self.reasons = {time: why for time, why in self.reasons.items() if time >= recent}
