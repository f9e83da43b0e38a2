"""How long a loop takes at least where lanes keep their order: what ends too late is seen early.

In a loop one instruction writes some bytes and another one, on another lane, reads them. When the
next iteration writes the same bytes, both are through: two iterations begin at least that long
apart, on either lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from neuroncore.timeline.access import TrackedAccess
from neuroncore.timeline.bodies import Body
from neuroncore.timeline.clock import Clock
from neuroncore.timeline.lanes import FIRST_QUEUE
from neuroncore.timeline.sites import Site
from neuroncore.work import Transfer


class _Placed(NamedTuple):
    """A site of a loop and the loops inside that one around it, outermost first."""

    site: Site
    inside: tuple[_Loop, ...]


class _Loop:
    """A loop and, per engine, the least ticks from one iteration to the next and of one alone."""

    def __init__(self, clock: Clock, body: Body) -> None:
        self.body, self.trips = body, len(body.trips)
        inner = [_Loop(clock, step) for step in body.steps if isinstance(step, Body)]
        deeper = {id(site) for loop in inner for site in loop.body.sites}
        own = [site for site in body.sites if id(site) not in deeper]
        self.placed = [_Placed(site, ()) for site in own]
        run = [loop for loop in inner if loop.trips]
        self.placed += [_Placed(p.site, (loop, *p.inside)) for loop in run for p in loop.placed]
        self.alone = [
            sum(site.occupies for site in own if site.lane == lane)
            + sum(loop.least(lane) for loop in inner)
            for lane in range(FIRST_QUEUE)
        ]
        self.apart = list(self.alone)
        for writer, reader, ticks in self._rounds(clock):
            for lane in (writer, reader):
                if lane < FIRST_QUEUE:
                    self.apart[lane] = max(self.apart[lane], ticks)

    def least(self, lane: int) -> int:
        """What all iterations take on an engine."""
        return (self.trips - 1) * self.apart[lane] + self.alone[lane] if self.trips else 0

    def _rounds(self, clock: Clock) -> Iterator[tuple[int, int, int]]:
        """(lane that writes, lane that reads, ticks of both) of bytes that iterations share."""
        if self.trips < 2:
            return
        queues = Counter((p.site.lane, id(a.track)) for p in self.placed for a in _tracks(p.site))
        writes = [(p, a) for p in self.placed for a in (*p.site.writes, *p.site.adds)]
        for placed, access in writes:
            for other in self.placed:
                lanes = placed.site.lane, other.site.lane
                if lanes[0] == lanes[1] or set(map(id, placed.inside)) & set(map(id, other.inside)):
                    continue
                for read in other.site.reads:
                    track = id(access.track)
                    if read.track is not access.track or any(
                        lane >= FIRST_QUEUE and queues[lane, track] > 1 for lane in lanes
                    ):
                        continue  # of two transfers of a queue the second may be through first
                    if self._meet(placed, access, other, read):
                        ticks = _lasts(clock, placed, access) + _lasts(clock, other, read)
                        yield *lanes, ticks

    def _meet(self, a: _Placed, one: TrackedAccess, b: _Placed, other: TrackedAccess) -> bool:
        """Whether the first of each in an iteration name a common byte, in all iterations one."""
        if one.step(self.body.variable) or other.step(self.body.variable):
            return False
        mine, theirs = one.reach(_starts(a)), other.reach(_starts(b))
        if mine is None or theirs is None:
            return False
        inside = {loop.body.variable for p in (a, b) for loop in p.inside}
        outer = [{t for t in access.terms if t[0] not in inside} for access in (one, other)]
        return outer[0] == outer[1] and mine.overlaps(theirs)


def _tracks(site: Site) -> list[TrackedAccess]:
    """One access for each track that it touches."""
    return list({id(access.track): access for access in site.accesses}.values())


def _starts(placed: _Placed) -> dict[int, range]:
    return {loop.body.variable: loop.body.trips[:1] for loop in placed.inside}


def _lasts(clock: Clock, placed: _Placed, access: TrackedAccess) -> int:
    """From the start of the first in an iteration until the last of the same bytes lets go."""
    site = placed.site
    if isinstance(site.work[0], Transfer):
        op = site.work[0]
        engines, length = clock.transfer(op)
        stagger = clock.of_ns(clock.values["DMA_STAGGER"] * (engines - 1))
        names = ("DMA_START", "DMA_COMPLETION", "DMA_TO_CONSUMER")
        return length + stagger + sum(clock.ticks(name) for name in names)
    alone = site.occupies + clock.latency(site.lane) + clock.ticks("SEMAPHORE")
    again = (loop for loop in placed.inside if not access.step(loop.body.variable))
    return alone + sum((loop.trips - 1) * loop.alone[site.lane] for loop in again)


def slack(clock: Clock, body: Body) -> list[int]:
    """How much longer than its instructions occupy them a loop takes on each engine at least."""
    loop = _Loop(clock, body)
    return [loop.least(lane) - _busy(body, lane) for lane in range(FIRST_QUEUE)]


def _busy(body: Body, lane: int) -> int:
    inner = [step for step in body.steps if isinstance(step, Body)]
    deeper = {id(site) for child in inner for site in child.sites}
    own = sum(s.occupies for s in body.sites if s.lane == lane and id(s) not in deeper)
    return len(body.trips) * (own + sum(_busy(child, lane) for child in inner))
