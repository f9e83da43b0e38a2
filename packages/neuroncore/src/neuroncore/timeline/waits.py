"""What holds an instruction back, and what it holds in turn."""

from __future__ import annotations

from neuroncore.timeline.access import TrackedAccess
from neuroncore.timeline.regions import NOBODY, Region
from neuroncore.timeline.state import DATA, LANE, SPACE
from neuroncore.timeline.touches import Touches


class Wait:
    """The accesses of an instruction on `lane`, looked at before it starts, touched when it has.

    In-order lanes do not wait for themselves before they write (`lag` None). Instructions that may
    be reordered wait until the other has left the lane, `lag` before it lets go. Those that add to
    the same bytes on one lane never wait for one another.
    """

    __slots__ = (
        "bar", "changes", "lane", "last_reads", "note", "num_reads", "reads", "regions", "why",
    )  # fmt: skip

    def __init__(
        self,
        lane: int,
        reads: list[TrackedAccess],
        writes: list[TrackedAccess],
        adds: list[TrackedAccess],
        lag: int | None = None,
        *,
        touches: Touches,
    ) -> None:
        self.note = touches.all.append
        self.lane = lane
        self.reads = [access for access in reads if not access.is_last]
        self.last_reads = [access for access in reads if access.is_last]
        """Nobody waits for these."""
        self.num_reads = len(self.reads)
        self.changes = [(access, lag, SPACE) for access in writes]
        self.changes += [(access, None, DATA) for access in adds]
        """What is written, how far ahead the lane itself may be, the cause where it waits."""
        self.bar, self.why = NOBODY, LANE
        self.regions: list[Region] = []

    def look(self, floor: int) -> int:
        """When everything is ready; `bar` and `why` say what was last, of several the last bar.

        What is ready by `floor` need not be found, if finding it takes long.
        """
        ready, bar, why = 0, NOBODY, LANE
        self.regions = regions = []
        for access in self.reads:
            region = access.fixed or access.find()
            regions.append(region)
            time = region.written
            if time >= ready and (time > ready or region.writer > bar):
                ready, bar, why = time, region.writer, DATA
            for one in region.others:
                time = one.written
                if time >= ready and (time > ready or one.writer > bar):
                    ready, bar, why = time, one.writer, DATA
        for access in self.last_reads:
            if access.there_by() <= floor:
                continue
            time, writer = access.written()
            if time >= ready and (time > ready or writer > bar):
                ready, bar, why = time, writer, DATA
        mine = self.lane
        for access, lag, kind in self.changes:
            region = access.fixed or access.find()
            regions.append(region)
            others = region.others
            for one in (region, *others) if others else (region,):
                time = one.written
                if one.wlane == mine:
                    time = time - lag if lag is not None else -1
                if time >= ready and (time > ready or one.writer > bar):
                    ready, bar, why = time, one.writer, kind
                time = one.read
                if time <= 0:
                    continue
                if one.rlane == mine:
                    time = time - lag if lag is not None else -1
                    if one.read2 >= ready and (one.read2 > ready or one.reader2 > bar):
                        ready, bar, why = one.read2, one.reader2, SPACE
                if time >= ready and (time > ready or one.reader > bar):
                    ready, bar, why = time, one.reader, SPACE
        self.bar, self.why = bar, why
        return ready

    def done(self, release: int, bar: int) -> None:
        """The instruction lets go of everything at `release`."""
        lane, regions, reads = self.lane, self.regions, self.num_reads
        if not regions:
            return
        self.note(release)
        for region in regions:
            region.toucher = bar
            if not region.is_recent:
                region.track.recent.add(region)
            if reads:
                reads -= 1
                if lane == region.rlane:
                    if release > region.read:
                        region.read, region.reader = release, bar
                elif release >= region.read:
                    region.read2, region.reader2 = region.read, region.reader
                    region.read, region.reader, region.rlane = release, bar, lane
                elif release > region.read2:
                    region.read2, region.reader2 = release, bar
                continue
            region.writer, region.written, region.wlane = bar, release, lane
            if region.read:
                region.read = region.read2 = 0
                region.reader = region.reader2 = region.rlane = NOBODY


class SilentWait(Wait):
    """The same on an in-order lane, where nobody asks for the cause."""

    __slots__ = ()

    def look(self, floor: int) -> int:
        """When everything is ready, or `floor`."""
        ready, mine = floor, self.lane
        self.regions = regions = []
        for access in self.reads:
            region = access.fixed or access.find()
            regions.append(region)
            if region.written > ready:
                ready = region.written
            for one in region.others:
                if one.written > ready:
                    ready = one.written
        for access in self.last_reads:
            if access.there_by() > ready:
                ready = max(ready, access.written()[0])
        for access, _, _ in self.changes:
            region = access.fixed or access.find()
            regions.append(region)
            if region.written > ready and region.wlane != mine:
                ready = region.written
            if region.read > ready:
                ready = max(ready, region.read2 if region.rlane == mine else region.read)
            for one in region.others:
                if one.written > ready and one.wlane != mine:
                    ready = one.written
                if one.read > ready:
                    ready = max(ready, one.read2 if one.rlane == mine else one.read)
        return ready
