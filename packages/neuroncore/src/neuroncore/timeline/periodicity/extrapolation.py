"""Accesses of a loop, and their state after periods that are extrapolated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from heapq import heapreplace
from math import gcd
from typing import NamedTuple

from neuroncore.effects import Footprint
from neuroncore.timeline.compilation.loops import Body
from neuroncore.timeline.dependences.region_series import Series
from neuroncore.timeline.dependences.regions import FAR, Events, Region
from neuroncore.timeline.dependences.tracks import Track
from neuroncore.timeline.model.bars import NO_BAR, TRANSFER
from neuroncore.timeline.model.lanes import FIRST_QUEUE, SCALAR, TENSOR
from neuroncore.timeline.playing.sites import Site
from neuroncore.timeline.playing.state import State
from neuroncore.timeline.resources.reservations import Gaps, Pieces
from neuroncore.timeline.resources.streams import Lane, Mark, Period

FEW = 100
"""Periods whose regions are simply made one by one."""
REMEMBERED = 256
"""Regions that an access remembers beyond a period that was carried forward."""


@dataclass(slots=True)
class Moment:
    """Between two iterations: when, and what had been counted by then."""

    done: int
    time: int
    floor: int
    shared: list[tuple[int, Pieces]]
    marks: list[Mark | None]
    num_bars: int
    played: int
    """The bars that were played, and not carried forward."""
    counts: list[int]
    stalls: list[dict[tuple[int, int], int]]
    turns: list[int]
    full: int
    """When the DMA engines have moved the data of all transfers until then,"""
    filled: int
    """and how long it takes."""
    ends: list[int]
    """When the last transfer of each queue ends."""


class Shared(NamedTuple):
    """A resource that several lanes take in any order, for `shortest` ticks at least, and no sooner
    than `by` ticks after they are free.
    """

    gaps: Gaps
    lanes: Sequence[Lane | Scope]
    by: int
    shortest: int

    @property
    def floor(self) -> int:
        """Nothing of it is taken before."""
        return min([lane.earliest for lane in self.lanes]) + self.by

    def mark(self) -> tuple[int, Pieces]:
        """The reservations up to now."""
        floor = self.floor
        return floor, self.gaps.pieces(floor)

    def seen(self) -> Pieces:
        """The same as later instructions see it, relative."""
        floor = self.floor
        stretches = self.gaps.stretches(floor, self.shortest)
        return [(start - floor, end - floor) for start, end in stretches]


class Scope:
    """Resources of a loop: lanes, shared resources, tracks and the bytes an iteration moves."""

    def __init__(self, state: State, body: Body, moves: dict[Track, int]) -> None:
        self.state, self.moves, sites = state, moves, body.sites
        self.ranges = body.ranges()
        numbers = {site.lane for site in sites}
        if state.reorders and any(number >= FIRST_QUEUE for number in numbers):
            numbers |= {queue.number for queue in state.queues}
        self.lanes = [state.lanes[n] for n in sorted(numbers)]
        self.engines = [lane for lane in self.lanes if lane.number < FIRST_QUEUE]
        self.queues = self.lanes[len(self.engines) :]
        self.has_tensor, self.has_scalar = TENSOR in numbers, SCALAR in numbers
        self.shared = list(self._shared(sites))
        self.shortest = [
            min([site.shortest for site in sites if site.lane == lane.number], default=0)
            for lane in self.engines
        ]
        """The least ticks that something occupies each engine."""
        self.accesses = [access for site in sites for access in site.accesses]
        transfers = [site for site in sites if site.lane >= FIRST_QUEUE]
        moved = {access.track for site in transfers for access in site.accesses}
        self.may_drift = bool(transfers) and self._is_quiet(sites, moved)
        """Whether no instruction of the loop waits for the end of a transfer."""
        self.quiet = moved if self.may_drift else set[Track]()
        """Tracks that only transfers touch and no instruction of the loop waits for."""
        self.ahead = ticks_ahead(state, transfers)
        self.takes_any_queue = (
            state.reorders
            and bool(transfers and self.engines)
            and not any(site.generator for site in transfers)
        )
        """Whether queues that were free before all of the loop's transfers count as one."""
        self.looked = len(state.bars)
        """The bars that were played when the loop was looked at last,"""
        self.trigger = 0
        """and when the first transfer was triggered that was new then."""

    def _shared(self, sites: list[Site]) -> Iterator[Shared]:
        ticks = self.state.clock.ticks
        if self.queues:
            begins = {ticks(site.begins) for site in sites if site.lane >= FIRST_QUEUE}
            lanes = [self] if self.state.reorders and self.engines else self.queues
            yield Shared(self.state.bandwidth, lanes, min(begins), 1)
        generators = [site.generator for site in sites if site.generator is not None]
        for gaps in dict.fromkeys(generators):
            yield Shared(gaps, self.queues, 0, ticks("DMA_ISSUE"))
        for gaps in dict.fromkeys([port for site in sites for port in site.ports]):
            users = [site for site in sites if gaps in site.ports]
            lanes = {site.lane for site in users}
            shortest = min([site.shortest for site in users])
            yield Shared(gaps, [n for n in self.engines if n.number in lanes], 0, shortest)

    def _is_quiet(self, sites: list[Site], moved: Set[Track]) -> bool:
        """Whether no instruction of the loop waits for the end of a transfer."""
        if self.state.reorders or any(track.copies > 1 or track.is_shared for track in moved):
            return False
        lanes: dict[Track, set[int]] = {}
        for site in sites:
            for access in site.accesses:
                lanes.setdefault(access.track, set()).add(site.lane)
        read = {access.track for site in sites for access in site.reads}
        written = {access.track for site in sites for access in (*site.writes, *site.adds)}
        shared = {track for track in written if len(lanes[track]) > 1}
        return not moved & ((read & written) | shared) and all(
            min(lanes[track]) >= FIRST_QUEUE for track in moved
        )

    def reach(self, track: Track) -> list[Footprint] | None:
        """The parts of a track that the loop accesses in all iterations; None where unknown."""
        found = [a.reach(self.ranges) for a in self.accesses if a.track is track]
        known = [footprint for footprint in found if footprint is not None]
        return known if len(known) == len(found) else None

    def has_begun(self) -> bool:
        """Whether every lane of the loop has executed something."""
        lanes = self.engines if self.takes_any_queue else self.lanes
        return all(lane.last != NO_BAR for lane in lanes)

    def time(self) -> int:
        """When all lanes of the loop are free."""
        return max([lane.free for lane in self.lanes])

    def look(self) -> None:
        """An iteration is through: when the first of its transfers was triggered."""
        bars = self.state.bars
        if self.takes_any_queue:
            self.trigger = min(_triggers(bars[self.looked :]), default=0)
        self.looked = len(bars)

    @property
    def earliest(self) -> int:
        """No transfer of the loop starts before; with `takes_any_queue` that is seen afterwards."""
        if self.takes_any_queue:
            return min(self.trigger, *[lane.earliest for lane in self.engines])
        return min([queue.earliest for queue in self.queues])

    def floor(self) -> int:
        """Nothing of the loop starts before."""
        state, floor = self.state, min([lane.earliest for lane in self.engines], default=FAR)
        if self.queues:
            floor = min(floor, self.earliest)
        if self.has_tensor and not state.reorders:
            floor = min(floor, state.weights_earliest)
        return floor

    def moment(self, done: int, time: int, floor: int) -> Moment:
        """This moment, after `done` iterations."""
        state = self.state
        return Moment(
            done, time, floor, [one.mark() for one in self.shared],
            [lane.mark() for lane in self.lanes], state.next_bar, len(state.bars), state.counts(),
            [dict(lane.stalls) for lane in self.lanes], [track.turns for track in self.moves],
            self.full,
            state.bandwidth.busy, [queue.end for queue in self.queues],
        )  # fmt: skip

    @property
    def full(self) -> int:
        """When the DMA engines have moved the data of all transfers."""
        return self.state.bandwidth.ends[-1] if self.state.bandwidth.ends else 0

    def lags(self) -> bool:
        """Whether the DMA engines lag so far behind the queues that every transfer of the loop
        until now waits for them, and ends when they have moved its data.
        """
        return self.full >= max([queue.free for queue in self.queues]) + self.ahead

    def drift(self, before: Moment, now: Moment) -> int | None:
        """By how much more the DMA engines lag behind the queues, a period later; None where it is
        not sure that they lag more and more, everything in its order.
        """
        length = now.full - before.full
        steady = all(b - a == length for a, b in zip(before.ends, now.ends, strict=True))
        began = max([queue.free for queue in self.queues]) + self.ahead <= before.full
        if not steady or not began or now.filled - before.filled != length:
            return None
        drift = length - (now.time - before.time)
        return drift if drift >= 0 else None

    def transfers(self, before: Moment, now: Moment) -> list[tuple[int, ...]] | None:
        """The transfers between two moments, each triggered behind what was the floor then, so that
        queues that were free by then are alike; None where that is not so.
        """
        bars = self.state.bars[before.played :]
        if len(bars) < now.num_bars - before.num_bars:
            return None  # a loop inside was carried forward
        if min(_triggers(bars), default=FAR) <= before.floor:
            return None
        return [
            (bar[3], bar[5], number, *self.state.reason(bar[6], bar[7]))
            for number, bar in enumerate(bars, before.num_bars)
            if bar[2] == TRANSFER
        ]

    def hides_reads(self, before: Moment) -> bool:
        """Whether an old read of a region that moves may hide what the period read of it.

        A region keeps the two latest reads. The reads of a period are known where no read from
        before it is later than its beginning.
        """
        first, floor = before.num_bars, before.floor
        return any(
            first > region.writer
            and (region.reader < first or (region.reader2 < first and region.read2 > floor))
            for track, step in self.moves.items()
            if step or track.copies > 1
            for region in track.recent.touched_since(first)
        )


def _triggers(bars: Sequence[tuple[int, ...]]) -> list[int]:
    """When the transfers among these bars were triggered."""
    return [bar[3] for bar in bars if bar[2] == TRANSFER]


def ticks_ahead(state: State, transfers: list[Site]) -> int:
    """How long after its queue is free a transfer would at most be through, were it alone."""
    ticks = state.clock.ticks
    return max([ticks(site.begins) + site.alone for site in transfers], default=0)


def carry_forward(
    scope: Scope, before: Moment, now: Moment, times: int, drift: int | None = None,
    transfers: Sequence[tuple[int, ...]] = (),
) -> None:  # fmt: skip
    """Let the period from `before` to `now` pass `times` more; `transfers` take any queue.

    With a `drift` the DMA engines are behind by so many ticks more each time.
    """
    state, length = scope.state, now.time - before.time
    size = now.num_bars - before.num_bars
    state.add_counts([times * (b - a) for a, b in zip(before.counts, now.counts, strict=True)])
    _carry_lanes(scope, before, Period(before.num_bars, size, length), times, drift)
    _carry_queues(state, transfers, size, length, times)
    if scope.has_scalar and state.table_there > now.floor:
        state.table_there += length * times
        state.table_bar += size * times
    if scope.has_tensor:
        state.weights_free += length * times
        state.multiply_start += length * times
        state.warmth.since += length * times
    _carry_shared(scope, before, length, times, drift)
    state.skip(before.num_bars, times, length, drift or 0)
    _carry_tracks(scope, before, now, times, drift)


def _carry_tracks(scope: Scope, before: Moment, now: Moment, times: int, drift: int | None) -> None:
    """Do to the tracks `times` more what was done between the two moments."""
    state, length, size = scope.state, now.time - before.time, now.num_bars - before.num_bars
    floor = now.floor + length * times
    every = _Every(before.num_bars, size, length, times, floor, state.earliest)
    slower = every._replace(ticks=length + (drift or 0))
    for (track, step), turns in zip(scope.moves.items(), before.turns, strict=True):
        moved, turns = step * (now.done - before.done), track.turns - turns
        pace = slower if drift is not None and track in scope.quiet else every
        _carry_regions(track, moved, turns, pace)
    for access in scope.accesses:
        if len(access.regions) > REMEMBERED:
            access.forget()


def _carry_lanes(
    scope: Scope, before: Moment, period: Period, times: int, drift: int | None
) -> None:
    """Let the lanes pass the period `times` more, with stalls like those since `before`."""
    for lane, old, mark in zip(scope.lanes, before.stalls, before.marks, strict=True):
        if scope.takes_any_queue and lane.number >= FIRST_QUEUE:
            break
        for key, total in lane.stalls.items():
            lane.stalls[key] = total + times * (total - old.get(key, 0))
        lane.repeat(mark, period, times)
    for queue in scope.queues if drift else ():
        queue.end += (drift or 0) * times
    scope.state.queue_up()


def _carry_queues(
    state: State, transfers: Sequence[tuple[int, ...]], size: int, length: int, times: int
) -> None:
    """Let these transfers take the queues `times` more, `length` ticks and `size` bars apart."""
    turns, busy = state.turns, state.clock.ticks("DMA_QUEUE_FLOOR")
    for count in range(1, times + 1 if transfers else 1):
        by, bars = length * count, size * count
        for start, end, number, *key in transfers:
            free, last, at = turns[0]
            lane, trigger = state.queues[at], start + by
            if trigger > free and last != NO_BAR:
                lane.stalls[key[0], key[1]] = lane.stalls.get((key[0], key[1]), 0) + trigger - free
            lane.free, lane.last = trigger + busy, number + bars
            lane.end = max(lane.end, end + by)
            heapreplace(turns, (lane.free, lane.last, at))


def _carry_shared(scope: Scope, before: Moment, length: int, times: int, drift: int | None) -> None:
    """Take of shared resources `times` more what was taken since `before`."""
    bandwidth, earliest = scope.state.bandwidth, scope.state.earliest
    for one, (floor, taken) in zip(scope.shared, before.shared, strict=True):
        if drift is None or one.gaps is not bandwidth:
            one.gaps.repeat(floor, taken, length, times, earliest)
    if drift is not None:
        bandwidth.ends[-1] += times * (length + drift)


class _Every(NamedTuple):
    """Periods that are carried forward: their first bar, bars, ticks, how many."""

    first: int
    size: int
    ticks: int
    times: int
    floor: int
    """Earlier releases do not affect the loop any more."""
    earliest: int
    """Nothing starts before."""


def _carry_regions(track: Track, moved: int, turns: int, every: _Every) -> None:
    """Do to the regions what the skipped periods would have done, as the period did.

    What a period does not touch keeps its times; what is released before anything starts does not
    matter any more.
    """
    touched = [(r, Events.since(r, every.first)) for r in track.recent.touched_since(every.first)]
    period = [(region, events) for region, events in touched if events is not None]
    length, times = every.ticks, every.times
    least = 1
    if not moved:
        # Without movement periods touch the same regions again: of each only the last one is seen.
        least = max(1, times - track.copies // gcd(track.copies, turns) + 1)
    elif period:
        latest = max(events.latest for _, events in period)
        least = max(1, (every.earliest - latest) // length + 1)
        alike = min(times, (every.floor - latest) // length) - least + 1
        if alike > FEW and track.takes_series and turns % track.copies == 0:
            for region, events in period:
                first = events.moved(length * least, every.size * least)
                parts = (region.parts[0].moved(moved * least),)
                begin = Region(track.recent, region.form, parts, region.slot)
                series = Series(begin, first, moved, length, every.size, alike)
                track.add_series(series, every.earliest)
            least += alike
    for count in range(least, times + 1):
        by, bars, further = length * count, every.size * count, moved * count
        for region, events in period:
            slot = (region.slot + turns * count) % track.copies
            parts = tuple([p.moved(further) for p in region.parts]) if further else region.parts
            track.region_of(slot, region.form, parts).take(events.moved(by, bars))
    track.rotate(turns * times)
