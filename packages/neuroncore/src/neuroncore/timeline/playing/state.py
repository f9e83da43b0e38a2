"""Mutable state of a played program: lanes, shared resources, counts, bars."""

from __future__ import annotations

from heapq import heapify

from neuroncore.timeline.model.bars import NO_BAR, RESOURCE
from neuroncore.timeline.model.clock import Clock
from neuroncore.timeline.model.lanes import FIRST_QUEUE, TENSOR, Warmth
from neuroncore.timeline.playing.skipped_periods import Skips
from neuroncore.timeline.resources.reservations import Gaps
from neuroncore.timeline.resources.streams import Lane, ReorderedLane


class TooLateError(Exception):
    """A candidate takes longer than another one."""


class State:
    """Everything that changes while a program is played; `reorders` as compiled code is.

    With `records` the cause of every wait is recorded too; without, the last completion alone.
    """

    def __init__(self, clock: Clock, num_queues: int, reorders: bool, records: bool = True) -> None:
        self.clock, self.reorders, self.records = clock, reorders, records
        horizon = clock.ticks("REORDER_HORIZON")
        engines = range(FIRST_QUEUE)
        self.lanes: list[Lane] = [
            ReorderedLane(n, horizon) if reorders else Lane(n) for n in engines
        ]
        self.lanes += [Lane(FIRST_QUEUE + n) for n in range(num_queues)]
        self.queues = self.lanes[FIRST_QUEUE:]
        self.next_bar = 0
        """The number of the bar that is played next, skipped bars counted."""
        self.bars: list[tuple[int, ...]] = []
        """Of each played bar: site, lane, kind, start, free, end, cause, why, times in ticks.

        Its engine is occupied from start to free, its result there at end. The cause is the bar
        it waited for (NO_BAR: none), skipped bars counted.
        """
        self.skips = Skips()
        self.skipped = 0
        """How many bars were carried forward so far."""
        self.turns: list[tuple[int, int, int]] = []
        """Heap of the queues: when each is free, its last bar, its number."""
        self.queue_up()
        self.limit: int | None = None
        """When a play is abandoned: another candidate has ended by then."""
        self.used: set[int] = set()
        """The lanes of what is still to be played."""
        self.weights_free = 0
        self.multiply_start = 0
        self.warmth = Warmth(clock.ticks("WARM_UP"))
        self.table: str | None = None
        self.table_there = 0
        """When it was loaded, and by which bar."""
        self.table_bar = NO_BAR
        self.bandwidth = Gaps()
        self.generators = {name: Gaps() for name in ("gpsimd", "sync", "scalar")}
        self.ports: dict[str, Gaps] = {}
        self.work = [0] * FIRST_QUEUE
        """The least ticks that all instructions occupy each engine."""
        self.num_ops = self.hbm_bytes = self.moved_bytes = self.flops = self.transfer_work = 0
        """Of the whole program, but for the loads of tables, which count when they are played."""
        self.repeats: list[tuple[int, int, int, int]] = []
        """(first, behind, times, ticks), in `bars`: periods that were carried forward."""
        self.made: list[tuple[int, str]] = []
        """On-chip buffers that were allocated, each with the place in `bars` of the next bar."""

    @property
    def end(self) -> int:
        """The last completion."""
        return max([lane.end for lane in self.lanes])

    @property
    def is_too_late(self) -> bool:
        """Whether it does not end before another candidate has."""
        return self.limit is not None and self.least_end >= self.limit

    @property
    def least_end(self) -> int:
        """Its end is not before: what is still to be played takes that long on some engine, and
        nothing of it starts before `earliest`. At most all that was played is before that.
        """
        engines = zip(self.lanes, self.work, strict=False)
        ends = [work + max(0, lane.earliest - lane.busy) for lane, work in engines]
        queues = [q.free for n, q in enumerate(self.queues, FIRST_QUEUE) if n in self.used]
        idle = min(queues, default=0) - self.bandwidth.busy
        return max(self.end, self.transfer_work + max(0, idle), *ends)

    @property
    def earliest(self) -> int:
        """Nothing that comes will start before."""
        lanes = self.lanes
        found = min([lanes[number].earliest for number in self.used], default=0)
        if TENSOR in self.used and not self.reorders:
            return min(found, self.weights_earliest)
        return found

    @property
    def weights_earliest(self) -> int:
        """No weights that come are loaded before."""
        return max(self.weights_free, self.multiply_start)

    def queue_up(self) -> None:
        """Put the queues into the order in which reordered transfers take them."""
        self.turns = [(q.free, q.last, n) for n, q in enumerate(self.queues)]
        heapify(self.turns)

    def skip(self, first: int, times: int, ticks: int, drift: int) -> None:
        """The bars from `first` on come `times` more, `ticks` apart; transfers end `drift` more."""
        size = self.next_bar - first
        self.next_bar += size * times
        if not self.records:
            return
        played = self.skips.place(first)
        self.repeats.append((played, len(self.bars), times, ticks))
        self.skipped += size * times
        self.skips.add(first + size, size, times, ticks, self.skipped, drift)

    @property
    def shared(self) -> list[Gaps]:
        """Resources that several lanes take in any order."""
        return [self.bandwidth, *self.generators.values(), *self.ports.values()]

    def counts(self) -> list[int]:
        """Counters that grow while it is played."""
        return [
            self.num_ops, *[lane.busy for lane in self.lanes], *[gaps.busy for gaps in self.shared],
        ]  # fmt: skip

    def add_counts(self, more: list[int]) -> None:
        """Let everything that `counts` lists grow."""
        self.num_ops += more[0]
        owners: list[Lane | Gaps] = [*self.lanes, *self.shared]
        for owner, count in zip(owners, more[1:], strict=True):
            owner.busy += count

    def reason(self, cause: int, why: int) -> tuple[int, int]:
        """(cause, lane waited for) of what waits for bar `cause`."""
        if why == RESOURCE or cause < 0:
            return why, NO_BAR
        place = cause - self.skipped
        if place < self.skips.fresh:
            place = self.skips.place(cause)
        lane = self.bars[place][1]
        return why, lane if lane < FIRST_QUEUE else FIRST_QUEUE

    def stall(self, lane: Lane, free: int, start: int, cause: int, why: int) -> None:
        """The lane idles from `free` to `start`."""
        if lane.last != NO_BAR:
            key, stalls = self.reason(cause, why), lane.stalls
            stalls[key] = stalls.get(key, 0) + start - free
