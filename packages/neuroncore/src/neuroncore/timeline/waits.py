"""What holds an instruction back, and what it holds in turn."""

from __future__ import annotations

from neuroncore.timeline.access import TrackedAccess
from neuroncore.timeline.state import DATA, LANE, SPACE
from neuroncore.timeline.tracks import NOBODY, Region


class Wait:
    """The accesses of an instruction on `lane`, looked at before it starts, touched when it has.

    In-order lanes do not wait for themselves before they write (`lag` None). Instructions that may
    be reordered wait until the other has left the lane, `lag` before it lets go. Those that add to
    the same bytes on one lane never wait for one another.
    """

    __slots__ = ("adds", "bar", "lag", "lane", "reads", "regions", "why", "writes")

    def __init__(
        self,
        lane: int,
        reads: list[TrackedAccess],
        writes: list[TrackedAccess],
        adds: list[TrackedAccess],
        lag: int | None = None,
    ) -> None:
        self.lane, self.reads, self.writes, self.adds = lane, reads, writes, adds
        self.lag = lag
        self.bar, self.why = NOBODY, LANE
        self.regions: list[Region] = []

    def look(self) -> int:
        """When everything is ready; `bar` and `why` say what was last."""
        ready, bar, why, mine = 0, NOBODY, LANE, self.lane
        self.regions = regions = []
        for access in self.reads:
            region = access()
            regions.append(region)
            if region.written > ready:
                ready, bar, why = region.written, region.writer, DATA
            for other in region.others:
                if other.written > ready:
                    ready, bar, why = other.written, other.writer, DATA
        for accesses, lag, kind in ((self.writes, self.lag, SPACE), (self.adds, None, DATA)):
            for access in accesses:
                region = access()
                regions.append(region)
                for one in (region, *region.others) if region.others else (region,):
                    if one.wlane != mine:
                        if one.written > ready:
                            ready, bar, why = one.written, one.writer, kind
                    elif lag is not None and one.written - lag > ready:
                        ready, bar, why = one.written - lag, one.writer, kind
                    if one.rlane != mine:
                        if one.read > ready:
                            ready, bar, why = one.read, one.reader, SPACE
                    else:
                        if lag is not None and one.read - lag > ready:
                            ready, bar, why = one.read - lag, one.reader, SPACE
                        if one.read2 > ready:
                            ready, bar, why = one.read2, one.reader2, SPACE
        self.bar, self.why = bar, why
        return ready

    def done(self, release: int, bar: int) -> None:
        """The instruction lets go of everything at `release`."""
        lane, reads = self.lane, len(self.reads)
        for number, region in enumerate(self.regions):
            region.toucher = bar
            if number < reads:
                region.was_read(lane, release, bar)
            else:
                region.was_written(lane, release, bar)
