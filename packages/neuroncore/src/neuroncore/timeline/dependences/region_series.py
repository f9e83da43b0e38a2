"""Regions that an extrapolated loop has accessed, at a constant pace.

Only the lanes that lag behind the loop may still wait for them. Of the regions that share bytes
with an access of such a lane the last one is released last, so that one is made, and no other.
"""

from __future__ import annotations

from neuroncore.effects import Footprint, footprint
from neuroncore.timeline.dependences.regions import Events, Parts, Region, span


class Series:
    """`count` regions, `moved` bytes, `ticks` and `bars` apart, the first like `first`."""

    def __init__(
        self, first: Region, events: Events, moved: int, ticks: int, bars: int, count: int
    ) -> None:
        (self.part,) = first.parts
        self.first, self.slot, self.events = first, first.slot, events
        self.moved, self.ticks, self.bars, self.count = moved, ticks, bars, count
        self.latest = events.latest + ticks * (count - 1)
        self.every = self._union(0, count)
        self.span = span(self.every)
        self.links: list[tuple[Region, Region]] = []
        """A region that shares bytes with some, and the last of these."""
        self.made: dict[int, Region] = {}

    def link(self, region: Region) -> None:
        """Link `region` to the last region of the series that shares bytes with it."""
        number = self._last(region.parts, region.form.span)
        if number is None:
            return
        if number not in self.made:
            parts = (self.part.moved(self.moved * number),)
            made = Region(self.first.recent, self.first.form, parts, self.slot)
            self.made[number] = made
            made.take(self.events.moved(self.ticks * number, self.bars * number))
        region.others.append(self.made[number])
        self.links.append((region, self.made[number]))

    def keep_behind(self, time: int) -> None:
        """Only the links between regions that are released after `time`."""
        self.links = [pair for pair in self.links if min(r.latest for r in pair) > time]

    def drop(self) -> None:
        """Remove all links: nothing waits for the series any more."""
        for region, made in self.links:
            region.others.remove(made)

    def _last(self, parts: Parts, span: int) -> int | None:
        if not parts:
            return self.count - 1
        (part,) = parts
        if self._is_beside(part, span) or not part.overlaps(self.every):
            return None
        low, high = 0, self.count - 1
        probe = high
        while low < high:
            if part.overlaps(self._union(probe, high + 1)):
                low = probe
            else:
                high = probe - 1
            probe = (low + high + 1) // 2
        return low

    def _is_beside(self, part: Footprint, span: int) -> bool:
        """Whether the two, columns of rows of one length, are seen at once to share no byte."""
        every = self.every
        if not part.strides or not every.strides or part.strides[0] != every.strides[0]:
            return False
        row = part.strides[0]
        at, behind = part.offset % row, every.offset % row
        if at + span > row or behind + self.span > row:
            return False
        return at + span <= behind or behind + self.span <= at

    def _union(self, first: int, behind: int) -> Footprint:
        """The bytes of these together."""
        part, moved = self.part, self.moved
        if moved < 0:
            first, behind, moved = behind - 1, first - 1, -moved
        size = abs(behind - first)
        return footprint(
            part.offset + self.moved * first, (size, *part.shape), (moved, *part.strides),
            part.itemsize,
        )  # fmt: skip
