"""Loops: played until they repeat themselves, then carried forward.

What an iteration does depends only on the state it finds: how far every lane is ahead of the
others, who still holds which bytes, where the buffers of this iteration lie. When a state comes
back, moved in time and by whole steps of the loop's accesses, everything since then will come back
too; the remaining whole periods are added up instead of played. What is carried forward is exact:
playing every iteration gives the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any, NamedTuple

from neuroncore.timeline.compile import Body, Compiler
from neuroncore.timeline.gaps import Gaps
from neuroncore.timeline.lanes import FIRST_QUEUE, SCALAR, TENSOR
from neuroncore.timeline.series import Series
from neuroncore.timeline.sites import Step
from neuroncore.timeline.state import State
from neuroncore.timeline.tracks import NOBODY, Events, Region, Track

FEWEST = 6
"""Loops of fewer iterations are simply played."""
LOOKED = 80
"""States looked at before an execution of a loop counts as one that never repeats."""
LARGE = 4096
"""Instructions still waited for, beyond which comparing states costs more than it saves."""
FEW = 100
"""Periods whose regions are simply made one by one."""
MANY = 200
"""Iterations of an outer loop that are better carried forward than those of the loops inside."""
REMEMBERED = 256
"""Regions that an access remembers beyond a period that was carried forward."""
TRIED = 3
"""Executions of a loop without a repetition before no other is looked for."""


class TooSlowError(Exception):
    """The program ends behind the limit of its state."""


def loop_player(compiler: Compiler, body: Body, skip: bool) -> Step:
    """What plays a loop; with `skip`, periods are carried forward."""
    state, values, overfull = compiler.state, compiler.values, compiler.overfull
    steps = [
        loop_player(compiler, step, skip) if isinstance(step, Body) else step for step in body.steps
    ]
    loop, variable = body.loop, body.variable
    is_late = None if state.limit is None else state.is_late
    trips = range(loop.start, loop.stop, loop.step)

    def play() -> None:
        for values[variable] in trips:
            for step in steps:
                step()
            if overfull:
                compiler.forget()
            if is_late is not None and is_late():
                raise TooSlowError

    moves = _moves(body) if skip and len(trips) >= FEWEST else None
    if moves is None:
        return play

    failed = 0

    def play_until_it_repeats() -> None:
        nonlocal failed
        if failed == TRIED:
            play()
            return
        periods = Periods(state, body, moves)
        done, count = 0, len(trips)
        while done < count:
            values[variable] = trips[done]
            for step in steps:
                step()
            if overfull:
                compiler.forget()
            done += 1
            if is_late is not None and is_late():
                raise TooSlowError
            if periods.looking and done < count - 1:
                done += periods.carry(done, count - done)
        failed += not periods.carried

    return play_until_it_repeats


def _moves(body: Body) -> dict[int, tuple[Track, int]] | None:
    """Each track of the loop and the bytes an iteration moves in it; None where sites disagree."""
    found: dict[int, tuple[Track, int]] = {}
    for site in body.sites:
        for access in site.accesses:
            step = access.step(body.variable) * body.loop.step
            track, other = found.setdefault(id(access.track), (access.track, step))
            if other != step or (step and track.is_shared):
                return None
    return found


@dataclass(slots=True)
class _Seen:
    """A state that was met: when, and what had been counted by then."""

    done: int
    time: int
    floor: int
    num_bars: int
    counts: list[int]
    stalls: list[dict[tuple[int, int], int]]
    slots: dict[int, int]
    mark: int
    """Instructions before."""


class Periods:
    """Looks for a repetition in one execution of a loop."""

    def __init__(self, state: State, body: Body, moves: dict[int, tuple[Track, int]]) -> None:
        self.state, self.moves = state, moves
        self.lanes = sorted(_lanes(state, body))
        self.accesses = [access for site in body.sites for access in site.accesses]
        self.seen: dict[Any, _Seen] = {}
        self.sketches: set[Any] = set()
        self.looking = bool(body.sites)
        self.carried = False

    def carry(self, done: int, left: int) -> int:
        """After `done` iterations: how many of the `left` ones were carried forward."""
        state, lanes = self.state, self.state.lanes
        if any(lanes[n].last == NOBODY for n in self.lanes):
            return 0
        time = max(lanes[n].free for n in self.lanes)
        floor = min(lanes[n].earliest for n in self.lanes)
        if TENSOR in self.lanes and not state.reorders:
            floor = min(floor, max(state.weights_free, state.multiply_start))
        sketch = self._sketch(time)
        if sketch not in self.sketches:  # all of the state is only looked at where this repeats
            self.sketches.add(sketch)
            self._count_look()
            return 0
        if in_the_way := [t for t, _ in self.moves.values() if t.has_series(floor)]:
            for track in in_the_way if left > MANY else ():
                track.takes_series = False
            return 0
        held = state.touches.held(floor, LARGE)
        if held is None:
            self.looking = False
            return 0
        key = self._key(held, done, time, floor)
        before = self.seen.get(key)
        now = self._now(done, time, floor)
        if before is None:
            self.seen[key] = now
            self._count_look()
            return 0
        if self._hides_reads(before):
            self.seen[key] = now
            return 0
        self.looking, self.carried = False, True
        period = done - before.done
        times = left // period
        if times and now.time > before.time:
            self._forward(before, now, times)
            return times * period
        return 0

    def _hides_reads(self, before: _Seen) -> bool:
        """Whether an old read of a region that moves may hide what the period read of it.

        A region keeps the two latest reads. Those of a period are known where none from before it
        is later than its beginning.
        """
        first, floor = before.num_bars, before.floor
        return any(
            first > region.writer
            and (region.reader < first or (region.reader2 < first and region.read2 > floor))
            and (self.moves[id(region.track)][1] or region.track.copies > 1)
            for region in self.state.touches.since(before.mark)
        )

    def _count_look(self) -> None:
        self.looking = len(self.seen) + len(self.sketches) < LOOKED

    def _sketch(self, time: int) -> Any:
        """A cheap part of the state: how far the lanes are apart."""
        state = self.state
        ahead = [time - state.lanes[n].free for n in self.lanes if n < FIRST_QUEUE]
        queues = [time - state.lanes[n].free for n in self.lanes if n >= FIRST_QUEUE]
        if state.reorders:
            queues.sort()  # they are all alike
        warmth = state.warmth.state(time) if TENSOR in self.lanes else None
        return (*ahead, *queues), warmth

    def _key(self, regions: list[Region], done: int, time: int, floor: int) -> Any:
        """Everything the future of the loop depends on, relative to time, iteration and bar."""
        state, here = self.state, self.state.next_bar
        busy = tuple([gaps.after(floor) for gaps in self._gaps()])
        reasons = tuple([state.lanes[n].reasons_after(floor) for n in self.lanes])
        issue = None
        if TENSOR in self.lanes and not state.reorders:
            issue = time - max(state.weights_free, state.multiply_start)
        table: Any = None
        if SCALAR in self.lanes:
            there = state.table_there
            table = state.table, *((time - there, here - state.table_bar) if there > floor else ())
        held = [
            _relative(region, self.moves[id(region.track)][1] * done, time, floor, here)
            for region in regions
            if id(region.track) in self.moves
        ]
        lanes = self._lanes(time, here)
        return lanes, time - floor, busy, reasons, issue, table, frozenset(held)

    def _lanes(self, time: int, here: int) -> Any:
        """How far the lanes are apart, and who was last on each."""
        state = self.state
        lanes = [state.lanes[n] for n in self.lanes]
        last = [(time - lane.free, here - lane.last) for lane in lanes]
        if state.reorders:
            engines = sum(n < FIRST_QUEUE for n in self.lanes)
            last = [*last[:engines], *sorted(last[engines:])]  # queues are all alike
        behind = [[(time - end, here - bar) for end, bar in lane.behind] for lane in lanes]
        warmth = state.warmth.state(time) if TENSOR in self.lanes else None
        return tuple(last), tuple([frozenset(ends) for ends in behind]), warmth

    def _gaps(self) -> list[Gaps]:
        """What is taken in any order: shared resources, and engines whose order is open."""
        lanes = self.state.lanes
        return [*self.state.shared, *[g for n in self.lanes for g in lanes[n].gaps]]

    def _now(self, done: int, time: int, floor: int) -> _Seen:
        state = self.state
        slots = {id(track): track.turns for track, _ in self.moves.values()}
        stalls = [dict(lane.stalls) for lane in state.lanes]
        counts = state.counts()
        mark = len(state.touches.all)
        return _Seen(done, time, floor, state.next_bar, counts, stalls, slots, mark)

    def _forward(self, before: _Seen, now: _Seen, times: int) -> None:
        """Let `times` periods pass."""
        state, length = self.state, now.time - before.time
        period, by = now.done - before.done, length * times
        size = now.num_bars - before.num_bars
        state.add_counts([times * (b - a) for a, b in zip(before.counts, now.counts, strict=True)])
        for lane, old in zip(state.lanes, before.stalls, strict=True):
            for key, total in lane.stalls.items():
                lane.stalls[key] = total + times * (total - old.get(key, 0))
        for n in self.lanes:
            state.lanes[n].later(by, size * times)
        state.queue_up()
        if SCALAR in self.lanes and state.table_there > now.floor:
            state.table_there += by
            state.table_bar += size * times
        if TENSOR in self.lanes:
            state.weights_free += by
            state.multiply_start += by
            state.warmth.since += by
        earliest = state.earliest
        for gaps in self._gaps():
            gaps.repeat(before.floor, now.floor, times, earliest)
        state.skip(before.num_bars, times, length)
        every = _Every(before.num_bars, size, length, times, now.floor + by, earliest)
        touched: dict[int, list[Region]] = {key: [] for key in self.moves}
        for region in state.touches.since(before.mark):
            touched[id(region.track)].append(region)
        for key, (track, step) in self.moves.items():
            turns = track.turns - before.slots[key]
            for carried in _carry_regions(track, touched[key], step * period, turns, every):
                state.touches.all.append((carried.latest, [carried]))
        for access in self.accesses:
            if len(access.regions) > REMEMBERED:
                access.forget()


def _lanes(state: State, body: Body) -> set[int]:
    """The lanes that the loop may use."""
    found = {site.lane for site in body.sites}
    if state.reorders and any(lane >= FIRST_QUEUE for lane in found):
        found |= {queue.number for queue in state.queues}
    return found


def _relative(region: Region, moved: int, time: int, floor: int, here: int) -> tuple:
    """A region that somebody may wait for, as the next iteration will see it."""
    track = region.track
    slot = (region.slot - track.slot) % track.copies
    written = read = read2 = None
    if region.written > floor:
        written = time - region.written, region.wlane, here - region.writer
    if region.read > floor:
        read = time - region.read, region.rlane, here - region.reader
    if region.read2 > floor:
        read2 = time - region.read2, here - region.reader2
    form = track.form(region.parts)
    return id(track), slot, form, region.offset - moved, written, read, read2


class _Every(NamedTuple):
    """Periods that are carried forward: their first bar, bars, ticks, how many."""

    first: int
    size: int
    ticks: int
    times: int
    floor: int
    """What is let go before is nothing to the loop any more."""
    earliest: int
    """Nothing starts before."""


def _carry_regions(
    track: Track, touched: Iterable[Region], moved: int, turns: int, every: _Every
) -> Iterator[Region]:
    """Do to the regions what the skipped periods would have done, as the period did; those regions.

    What a period does not touch keeps its times; what is let go before anything starts does not
    matter any more.
    """
    period = [(r, events) for r in touched if (events := Events.since(r, every.first))]
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
                series = Series(track, parts, region.slot, first, moved, length, every.size, alike)
                track.add_series(series, every.earliest)
            least += alike
    for count in range(least, times + 1):
        for region, events in period:
            parts = tuple([p.moved(moved * count) for p in region.parts])
            slot = (region.slot + turns * count) % track.copies
            carried = track.region(slot, parts)
            carried.take(events.moved(length * count, every.size * count))
            yield carried
    track.rotate(turns * times)
