"""What holds an instruction back, and what it holds in turn."""

from __future__ import annotations

from neuroncore.timeline.access import TrackedAccess
from neuroncore.timeline.state import DATA, LANE, SPACE
from neuroncore.timeline.tracks import NOBODY, Region

NOT_IN_ORDER = -2
"""A lane that is no one's: an instruction that asks for it waits for everybody."""


class Wait:
    """The accesses of an instruction on `lane`, looked at before it starts, touched when it has.

    In-order lanes do not wait for themselves before they write; instructions that may be reordered
    do (`in_order` False). Those that add to the same bytes on one lane never wait for one another.
    """

    __slots__ = ("adds", "asks", "bar", "lane", "reads", "regions", "why", "writes")

    def __init__(
        self,
        lane: int,
        reads: list[TrackedAccess],
        writes: list[TrackedAccess],
        adds: list[TrackedAccess],
        in_order: bool = True,
    ) -> None:
        self.lane, self.reads, self.writes, self.adds = lane, reads, writes, adds
        self.asks = lane if in_order else NOT_IN_ORDER
        self.bar, self.why = NOBODY, LANE
        self.regions: list[Region] = []

    def look(self) -> int:
        """When everything is ready; `bar` and `why` say what was last."""
        ready, bar, why = 0, NOBODY, LANE
        self.regions = regions = []
        for access in self.reads:
            region = access()
            regions.append(region)
            if region.written > ready:
                ready, bar, why = region.written, region.writer, DATA
            for other in region.others:
                if other.written > ready:
                    ready, bar, why = other.written, other.writer, DATA
        for accesses, lane, kind in ((self.writes, self.asks, SPACE), (self.adds, self.lane, DATA)):
            for access in accesses:
                region = access()
                regions.append(region)
                for one in (region, *region.others) if region.others else (region,):
                    if one.written > ready and one.wlane != lane:
                        ready, bar, why = one.written, one.writer, kind
                    if one.rlane != lane:
                        if one.read > ready:
                            ready, bar, why = one.read, one.reader, SPACE
                    elif one.read2 > ready:
                        ready, bar, why = one.read2, one.reader2, SPACE
        self.bar, self.why = bar, why
        return ready

    def done(self, release: int, bar: int, age: int) -> None:
        """The instruction lets go of everything at `release`."""
        lane, reads = self.lane, len(self.reads)
        for number, region in enumerate(self.regions):
            region.age = age
            if number < reads:
                region.was_read(lane, release, bar)
            else:
                region.was_written(lane, release, bar)
