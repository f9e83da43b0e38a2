"""Loops: played until they repeat themselves, then carried forward.

What an iteration does depends only on the state it finds: how far every lane is ahead of the
others, which bytes are still in use, where the buffers of this iteration are. When a state comes
back, moved in time and by whole steps of the loop's accesses, everything since then will come back
too; the remaining whole periods are added up instead of played. What is carried forward is exact:
playing every iteration gives the same state.

Looking must not cost more than it saves. After one, two, four, … iterations the state is written
down; those behind it are compared with it part by part, up to the first difference. Bytes in use
are compared only where the lanes are as they were before.

Where no state comes back, transfers may need more bandwidth than the DMA engines have, whose
backlog grows. If no instruction of the loop waits for the end of a transfer, the rest of the state
is compared, and those ends are carried forward at a pace of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuroncore.effects import Footprint
from neuroncore.timeline.compilation.compiler import Compiler
from neuroncore.timeline.compilation.loops import Body
from neuroncore.timeline.dependences.regions import Form, Region, share_bytes
from neuroncore.timeline.dependences.tracks import Track
from neuroncore.timeline.model.lanes import FIRST_QUEUE
from neuroncore.timeline.periodicity.extrapolation import Moment, Scope, carry_forward
from neuroncore.timeline.playing.sites import Step
from neuroncore.timeline.playing.state import TooLateError

FEWEST = 6
"""Loops of fewer iterations are simply played."""
WORTH = 400
"""Loops of fewer calls in all iterations too: playing them is faster than comparing states."""
CHECKED = 100
"""Calls that are played before it is looked whether that is of use."""
LOOKED = 160
"""States looked at before an execution of a loop counts as one that never repeats."""
EAGER = 8
"""States looked at of which all is written down, not only how lanes are."""
MOST = 20_000
"""Transfers that are carried forward one by one, each to its queue."""
MANY = 200
"""Iterations of an outer loop that are better extrapolated than the loops inside."""
TRIED = 2
"""Executions of a loop without a repetition before no other is looked for."""


_Place = tuple[Track, int, Form, int]
_Holds = tuple[tuple[int, ...] | None, ...]


def loop_player(compiler: Compiler, body: Body, skip: bool) -> Step:
    """The player of a loop; with `skip`, periods are extrapolated."""
    state, values, overfull = compiler.state, compiler.values, compiler.overfull
    steps = [
        loop_player(compiler, step, skip) if isinstance(step, Body) else step for step in body.steps
    ]
    variable = body.variable
    trips = body.trips

    every = max(1, CHECKED * len(trips) // (body.num_calls or 1))

    def play() -> None:
        for count, values[variable] in enumerate(trips, 1):
            for step in steps:
                step()
            if overfull:
                compiler.forget()
            if not count % every and state.is_too_late:
                raise TooLateError

    is_worth_it = skip and body.num_calls >= WORTH and len(trips) >= FEWEST
    moves = _moves(body) if is_worth_it else None
    if moves is None:
        return play

    failed = 0
    scope = Scope(state, body, moves)

    def play_until_it_repeats() -> None:
        nonlocal failed
        if failed == TRIED:
            play()
            return
        periods = Periods(scope, eager=not failed)
        done, count = 0, len(trips)
        while done < count:
            values[variable] = trips[done]
            for step in steps:
                step()
            if overfull:
                compiler.forget()
            done += 1
            if not done % every and state.is_too_late:
                raise TooLateError
            if periods.looking and done < count - 1:
                done += periods.carry(done, count - done)
        failed += not periods.carried

    return play_until_it_repeats


def _moves(body: Body) -> dict[Track, int] | None:
    """Each track of the loop and the bytes an iteration moves in it; None where sites disagree.

    Also None where there are none, or where an instruction takes no time: it fits into
    a gap of any length.
    """
    if not body.sites:
        return None
    found: dict[Track, int] = {}
    for site in body.sites:
        if site.lane < FIRST_QUEUE and not site.shortest:
            return None
        for access in site.accesses:
            step = access.step(body.variable) * body.trips.step
            if found.setdefault(access.track, step) != step or (step and access.track.is_shared):
                return None
    return found


class Periods:
    """The search for a repetition in one execution of a loop."""

    def __init__(self, scope: Scope, eager: bool) -> None:
        self.scope, self.state = scope, scope.state
        self.eager = eager
        """All of a state is written down at once, not only when lanes are as they were before."""
        self.lanes: list[Any] | None = None
        self.moment: Moment | None = None
        self.held: dict[_Place, _Holds] = {}
        """The state that later ones are compared with: lanes, bytes in use at that moment."""
        self.reached: dict[Track, list[Footprint] | None] = {}
        self.first = scope.state.next_bar
        self.before: dict[Region, bool] = {}
        """Regions last touched before: whether the loop names some of their bytes."""
        self.known: dict[tuple[Form, int], bool] = {}
        """Form and place of a region: whether the loop will name some of its bytes."""
        self.over: set[Region] = set()
        """Regions of which it will not."""
        self.older: list[Region] | None = None
        """Regions last touched before that the loop still waits for."""
        self.looks = 0
        self.drifting = False
        """No state came back; now the DMA engines may be ever further behind the queues."""
        self.started = self.carried = False
        self.looking = True

    def carry(self, done: int, left: int) -> int:
        """After `done` iterations: how many of the `left` ones were carried forward."""
        self.scope.look()
        self.started = self.started or self.scope.has_begun()
        if not self.started or (self.drifting and not self.scope.lags()):
            return 0
        time, floor = self.scope.time(), self.scope.floor()
        if self._waits_for_the_past(floor, left):
            return 0
        if self.lanes is None or not _are_alike(self.lanes, self._lanes(time, floor)):
            self._miss(done, time, floor)
        elif self.moment is None:
            self._write_down(done, time, floor)
        elif not self._holds_alike(done, time, floor):
            self._miss(done, time, floor)
        else:
            return self._extrapolate(self.moment, self.scope.moment(done, time, floor), left)
        return 0

    def _waits_for_the_past(self, floor: int, left: int) -> bool:
        """Whether an instruction may wait for the regions of a series, or for older ones; where
        many iterations are left, the loop makes no more series.
        """
        found = [track for track in self.scope.moves if track.series and track.has_series(floor)]
        for track in found if left > MANY else ():
            track.takes_series = False
        return bool(found) or self._waits_for_older(floor)

    def _waits_for_older(self, floor: int) -> bool:
        """Whether the loop may still wait for what was touched before it: each iteration finds that
        another time ago, so that its state does not come back.
        """
        first, older = self.first, self.older
        regions = self._touched_before(floor) if older is None else older
        self.older = [r for r in regions if r.toucher < first and r.latest > floor]
        return bool(self.older)

    def _touched_before(self, floor: int) -> Iterator[Region]:
        """Regions last touched before the loop that it may wait for."""
        for track in self.scope.moves:
            for region in track.recent.held(floor):
                if region.toucher < self.first and self._matters(track, region, 0):
                    yield region

    def _extrapolate(self, before: Moment, now: Moment, left: int) -> int:
        """Carry forward the period between two moments that are alike; how many iterations."""
        if self.scope.hides_reads(before):
            self._write_down(now.done, now.time, now.floor)
            return 0
        drift = self.scope.drift(before, now) if self.drifting else None
        if self.drifting and drift is None:
            self._miss(now.done, now.time, now.floor)
            return 0
        period = now.done - before.done
        times, transfers = left // period, self._transfers(before, now)
        if transfers is None or len(transfers) * times > MOST:
            self.scope.takes_any_queue = False
            self._restart()
            return 0
        self.looking, self.carried = False, True
        if not times or now.time <= before.time:
            return 0
        carry_forward(self.scope, before, now, times, drift, transfers)
        return times * period

    def _transfers(self, before: Moment, now: Moment) -> list[tuple[int, ...]] | None:
        """The transfers of a period that take any queue; None where they do not."""
        return self.scope.transfers(before, now) if self.scope.takes_any_queue else []

    def _restart(self) -> None:
        self.looks, self.moment, self.lanes = 0, None, None

    def _miss(self, done: int, time: int, floor: int) -> None:
        self.looks += 1
        self.looking = self.looks < LOOKED
        if not self.looking and not self.drifting and self.scope.may_drift:
            self.looking = self.drifting = True
            self._restart()
            return
        if self.looking and not self.looks & (self.looks - 1):
            self.moment, self.lanes = None, list(self._lanes(time, floor))
            if self.eager and self.looks <= EAGER:
                self._write_down(done, time, floor)

    def _write_down(self, done: int, time: int, floor: int) -> None:
        self.moment = self.scope.moment(done, time, floor)
        self.held = dict(self._held(done, time, floor))

    def _lanes(self, time: int, floor: int) -> Iterator[Any]:
        """The state of lanes that the loop's later iterations depend on, relative to time and bar;
        what takes longer to find later.
        """
        scope, state, here = self.scope, self.state, self.state.next_bar
        yield [(time - lane.free, here - lane.last) for lane in scope.engines]
        free = floor if scope.takes_any_queue else -1
        last = [(time - q.free, here - q.last) if q.free > free else () for q in scope.queues]
        yield sorted(last) if state.reorders else last  # reordered queues are all alike
        yield time - floor
        if scope.has_tensor:
            yield state.warmth.state(time)
        if scope.has_tensor and not state.reorders:
            yield time - state.weights_earliest
        if scope.has_scalar:
            there = state.table_there
            yield state.table, *((time - there, here - state.table_bar) if there > floor else ())
        for shared in scope.shared:
            if not self.drifting or shared.gaps is not state.bandwidth:
                yield shared.seen()
        for lane, shortest in zip(scope.engines, scope.shortest, strict=True):
            yield lane.openings(shortest, here)

    def _held(self, done: int, time: int, floor: int) -> Iterator[tuple[_Place, _Holds]]:
        """The regions that an instruction may wait for, relative to time, bar and iteration."""
        here = self.state.next_bar
        for track, step in self.scope.moves.items():
            for region in track.recent.held(floor):
                if self._matters(track, region, step * done):
                    yield _relative(track, region, step * done, time, floor, here)

    def _holds_alike(self, done: int, time: int, floor: int) -> bool:
        """Whether the same is held as was written down; looked at up to the first difference."""
        old, count = self.held, 0
        for place, holds in self._held(done, time, floor):
            if old.get(place) != holds:
                return False
            count += 1
        return count == len(old)

    def _matters(self, track: Track, region: Region, moved: int) -> bool:
        """Whether an iteration to come may name a byte of the region; all before moved so far."""
        if region in self.over:
            return False
        if self.drifting and track in self.scope.quiet and region.toucher >= self.first:
            return False
        if region.toucher < self.first:
            found = self.before.get(region)
            if found is None:
                found = self.before[region] = self._is_in_reach(track, region, 0)
            return found
        if not moved:
            return True
        key = region.form, region.offset - moved
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._is_in_reach(track, region, moved)
        if not found:
            self.over.add(region)
        return found

    def _is_in_reach(self, track: Track, region: Region, moved: int) -> bool:
        if track not in self.reached:
            self.reached[track] = self.scope.reach(track)
        reach = self.reached[track]
        parts = tuple([part.moved(-moved) for part in region.parts]) if moved else region.parts
        return reach is None or any(share_bytes(parts, (part,)) for part in reach)


def _are_alike(old: list[Any], new: Iterator[Any]) -> bool:
    """Looked at up to the first difference."""
    parts = iter(old)
    return all(part == next(parts, None) for part in new) and next(parts, None) is None


def _relative(
    track: Track, region: Region, moved: int, time: int, floor: int, here: int
) -> tuple[_Place, _Holds]:
    """A region that an instruction may wait for, relative to the next iteration."""
    written = read = read2 = None
    if region.written > floor:
        written = time - region.written, region.wlane, here - region.writer
    if region.read > floor:
        read = time - region.read, region.rlane, here - region.reader
    if region.read2 > floor:
        read2 = time - region.read2, here - region.reader2
    slot = (region.slot - track.slot) % track.copies
    return (track, slot, region.form, region.offset - moved), (written, read, read2)
