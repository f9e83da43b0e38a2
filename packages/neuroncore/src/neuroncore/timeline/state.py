"""What changes while a program is played: lanes, shared resources, counts, bars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from neuroncore.timeline.clock import Clock
from neuroncore.timeline.gaps import Gaps, common_room
from neuroncore.timeline.lanes import FIRST_QUEUE, Warmth
from neuroncore.timeline.tracks import NOBODY

WEIGHTS, MULTIPLY, PASS, TABLE, TRANSFER = range(5)
KINDS = ("load_stationary", "multiply_moving", "pass", "table_load", "transfer")

DATA, SPACE, LANE, RESOURCE = range(4)
CAUSES = ("data", "buffer", "engine", "resource")
"""Why an instruction did not start earlier: its operands are being made, its destination is still
in use, its engine is busy, a port or descriptor generator or queue is."""


class Played(NamedTuple):
    """One micro-op in ticks: its engine is occupied from start to free, its result there at end."""

    site: int
    lane: int
    kind: int
    start: int
    free: int
    end: int
    cause: int
    """The bar it waited for (NOBODY: none)."""
    why: int


played = partial(tuple.__new__, Played)
"""A Played from its fields as a tuple; half the time of calling the class."""


class Lane:
    """A stream that takes its instructions in order."""

    __slots__ = ("busy", "end", "free", "last", "number", "stalls")

    def __init__(self, number: int) -> None:
        self.number = number
        self.free = 0
        """Nothing occupies it from here on."""
        self.last = NOBODY
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

    @property
    def gaps(self) -> list[Gaps]:
        """Its free time before `free`, where that can still be used."""
        return []

    def reasons_after(self, time: int) -> tuple:
        """Why it idles between what it has taken behind `time`, where that can still change."""
        return ()

    def later(self, by: int) -> None:
        """Everything that matters from now on happens `by` later."""
        self.free += by
        self.end += by


class LooseLane(Lane):
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

    @property
    def gaps(self) -> list[Gaps]:
        return [self.taken]

    def room(self, ready: int, interval: int, ports: Sequence[Gaps] = ()) -> tuple[int, int]:
        """Where an instruction may start on the lane alone, and where with the ports it takes."""
        alone = self.taken.room(max(ready, self.free - self.horizon), interval)
        return alone, common_room((self.taken, *ports), alone, interval) if ports else alone

    def occupy(self, start: int, interval: int, reason: tuple[int, int], bar: int) -> None:
        """Instruction `bar` takes its place; what the lane idles is put down to who comes after."""
        before, after = self.taken.around(start)
        self.reasons[start] = reason
        if before is not None and after is not None:
            self._idles(self.reasons[after], before - after)
        if before is not None:
            self._idles(reason, start - before)
        if after is not None:
            self._idles(self.reasons[after], after - start - interval)
        self.taken.reserve(start, interval)
        self.left(start + interval, bar)

    def _idles(self, reason: tuple[int, int], ticks: int) -> None:
        if ticks:
            self.stalls[reason] = self.stalls.get(reason, 0) + ticks

    def left(self, time: int, bar: int) -> None:
        """Instruction `bar` leaves the lane."""
        self.ended[time] = bar
        self.free = max(self.free, time)

    def before(self, time: int) -> int:
        """The instruction behind which one starts at `time`."""
        return self.ended.get(time, NOBODY)

    def reasons_after(self, time: int) -> tuple:
        starts = [time + start for start, _ in self.taken.after(time)]
        return tuple([self.reasons.get(start) for start in starts if start > time])

    def later(self, by: int) -> None:
        recent = self.earliest
        super().later(by)
        self.ended |= {time + by: bar for time, bar in self.ended.items() if time > recent}
        self.reasons |= {time + by: why for time, why in self.reasons.items() if time > recent}


class State:
    """Everything that changes while a program is played; `reorders` as compiled code is."""

    def __init__(self, clock: Clock, num_queues: int, reorders: bool) -> None:
        self.clock, self.reorders = clock, reorders
        horizon = clock.ticks("REORDER_HORIZON")
        engines = range(FIRST_QUEUE)
        self.lanes: list[Lane] = [LooseLane(n, horizon) if reorders else Lane(n) for n in engines]
        self.lanes += [Lane(FIRST_QUEUE + n) for n in range(num_queues)]
        self.queues = self.lanes[FIRST_QUEUE:]
        self.bars: list[Played] = []
        self.weights_free = 0
        self.multiply_start = 0
        self.warmth = Warmth(clock.ticks("WARM_UP"))
        self.table: str | None = None
        self.table_there = 0
        """When it was loaded, and by which bar."""
        self.table_bar = NOBODY
        self.bandwidth = Gaps()
        self.generators = {name: Gaps() for name in ("gpsimd", "sync", "scalar")}
        self.ports: dict[str, Gaps] = {}
        self.num_ops = 0
        self.hbm_bytes = self.moved_bytes = self.flops = 0
        self.transfer_work = 0
        self.repeats: list[tuple[int, int, int, int]] = []
        """(first bar, last bar, times, ticks): periods that were carried forward, not played."""
        self.made: list[tuple[int, str]] = []
        """On-chip buffers that came to life, each with the number of the bar that followed."""

    @property
    def shared(self) -> list[Gaps]:
        """Resources that several lanes take in any order."""
        return [self.bandwidth, *self.generators.values(), *self.ports.values()]

    def counts(self) -> list[int]:
        """What only ever grows."""
        return [
            self.num_ops, self.hbm_bytes, self.moved_bytes, self.flops, self.transfer_work,
            *[lane.busy for lane in self.lanes], *[gaps.busy for gaps in self.shared],
        ]  # fmt: skip

    def add_counts(self, more: list[int]) -> None:
        """Let everything that `counts` lists grow."""
        (ops, hbm, moved, flops, work), rest = more[:5], more[5:]
        self.num_ops += ops
        self.hbm_bytes += hbm
        self.moved_bytes += moved
        self.flops += flops
        self.transfer_work += work
        for owner, count in zip((*self.lanes, *self.shared), rest, strict=True):
            owner.busy += count

    def note_made(self, buffer: str) -> None:
        """An on-chip buffer comes to life."""
        self.made.append((len(self.bars), buffer))

    def reason(self, cause: int, why: int) -> tuple[int, int]:
        """(cause, lane waited for) of who waits for bar `cause`."""
        known = why != RESOURCE and cause >= 0
        return why, min(self.bars[cause].lane, FIRST_QUEUE) if known else NOBODY

    def stall(self, lane: Lane, free: int, start: int, cause: int, why: int) -> None:
        """The lane idles from `free` to `start`."""
        if lane.last == NOBODY:
            return
        key = self.reason(cause, why)
        lane.stalls[key] = lane.stalls.get(key, 0) + start - free
