"""What changes while a program is played: lanes, shared resources, counts, bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from heapq import heapify
from typing import NamedTuple

from neuroncore.timeline.clock import Clock
from neuroncore.timeline.gaps import Gaps, common_room
from neuroncore.timeline.lanes import FIRST_QUEUE, Warmth
from neuroncore.timeline.skips import Skips
from neuroncore.timeline.touches import Touches
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
    """The bar it waited for (NOBODY: none), counted with those that were carried forward."""
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

    @property
    def behind(self) -> Iterable[tuple[int, int]]:
        """(end, bar) of the instructions behind which another may still go, `last` aside."""
        return ()

    def later(self, by: int, bars: int) -> None:
        """Everything that matters from now on happens `by` later, `bars` bars on."""
        self.free += by
        self.end += by
        self.last += bars


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
        if ready >= self.free and not ports:
            return ready, ready
        alone = self.taken.room(max(ready, self.free - self.horizon), interval)
        return alone, common_room((self.taken, *ports), alone, interval) if ports else alone

    def occupy(self, start: int, interval: int, reason: tuple[int, int], bar: int) -> None:
        """Instruction `bar` takes its place; what the lane idles is put down to who comes after."""
        if start >= self.free:
            if start > self.free and self.ended:
                self._idles(reason, start - self.free)
            self.reasons[start] = reason
            self.taken.follow(start, interval)
            self.free = start + interval
            self.ended[self.free] = bar
            return
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

    @property
    def behind(self) -> Iterable[tuple[int, int]]:
        self._prune()
        return self.ended.items()

    def later(self, by: int, bars: int) -> None:
        self._prune()
        super().later(by, bars)
        self.ended = {time + by: bar + bars for time, bar in self.ended.items()}
        self.reasons = {time + by: why for time, why in self.reasons.items()}

    def _prune(self) -> None:
        """Leave out what nobody asks for: nothing starts before `earliest`."""
        recent = self.earliest
        self.ended = {time: bar for time, bar in self.ended.items() if time >= recent}
        self.reasons = {time: why for time, why in self.reasons.items() if time >= recent}


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
        """Those that were played; they are counted together with those that were not."""
        self.skips = Skips()
        self.skipped = 0
        """How many bars were carried forward so far."""
        self.touches = Touches()
        self.turns: list[tuple[int, int, int]] = []
        """Heap of the queues: when each is free, its last bar, its number."""
        self.queue_up()
        self.used: set[int] = set()
        """The lanes of the program."""
        self.least = [0] * FIRST_QUEUE
        """How long its instructions occupy each engine at least."""
        self.limit: int | None = None
        """What ends later is of no interest."""
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
        """(first, behind, times, ticks), in `bars`: periods that were carried forward."""
        self.made: list[tuple[int, str]] = []
        """On-chip buffers that came to life, each with the place in `bars` of who followed."""

    @property
    def end(self) -> int:
        """The last completion."""
        return max([lane.end for lane in self.lanes])

    @property
    def next_bar(self) -> int:
        """The number of the bar that is played next."""
        return len(self.bars) + self.skipped

    @property
    def earliest(self) -> int:
        """Nothing that comes will start before."""
        lanes = self.lanes
        return min([lanes[number].earliest for number in self.used], default=0)

    def is_late(self) -> bool:
        """Whether what is still to be played ends behind the limit, however it goes on."""
        ends = [
            lane.earliest + least - lane.busy
            for lane, least in zip(self.lanes, self.least, strict=False)
            if least
        ]
        return bool(ends) and max(ends) > (self.limit or 0)

    def queue_up(self) -> None:
        """Put the queues into the order in which reordered transfers take them."""
        self.turns = [(q.free, q.last, n) for n, q in enumerate(self.queues)]
        heapify(self.turns)

    def skip(self, first: int, times: int, ticks: int) -> None:
        """The bars from `first` on come `times` more, `ticks` apart."""
        size = self.next_bar - first
        played = self.skips.place(first)
        self.repeats.append((played, len(self.bars), times, ticks))
        self.skipped += size * times
        self.skips.add(first + size, size, times, ticks, self.skipped)

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
        if why == RESOURCE or cause < 0:
            return why, NOBODY
        place = cause - self.skipped
        if place < self.skips.fresh:
            place = self.skips.place(cause)
        return why, min(self.bars[place].lane, FIRST_QUEUE)

    def stall(self, lane: Lane, free: int, start: int, cause: int, why: int) -> None:
        """The lane idles from `free` to `start`."""
        if lane.last == NOBODY:
            return
        key = self.reason(cause, why)
        lane.stalls[key] = lane.stalls.get(key, 0) + start - free
