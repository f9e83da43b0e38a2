"""What a loop that was carried forward leaves behind: regions that follow one another at one pace.

Only the lanes that lag behind the loop may still wait for them. Of those that share bytes with what
such a lane touches the last one is let go last, so that one is made for it, and no other.
"""

from __future__ import annotations

from neuroncore.effects import Footprint, footprint
from neuroncore.timeline.regions import Events, Parts, Region, span
from neuroncore.timeline.tracks import Track


class Series:
    """`count` regions, `moved` bytes, `ticks` and `bars` apart, from that of `parts` on."""

    def __init__(
        self, track: Track, parts: Parts, slot: int, events: Events, moved: int, ticks: int,
        bars: int, count: int,
    ) -> None:  # fmt: skip
        (self.part,), self.slot, self.events = parts, slot, events
        self.form = track.form(parts)
        self.track, self.moved, self.ticks, self.bars = track, moved, ticks, bars
        self.count = count
        self.latest = events.latest + ticks * (count - 1)
        self.every = self._union(0, count)
        self.links: list[tuple[Region, Region]] = []
        """A region that shares bytes with some, and the last of these."""
        self.made: dict[int, Region] = {}

    def link(self, region: Region) -> None:
        """Make the last of those that share bytes with `region` known to it."""
        number = self._last(region.parts)
        if number is None:
            return
        if number not in self.made:
            parts = (self.part.moved(self.moved * number),)
            self.made[number] = made = Region(self.track, self.form, parts, self.slot)
            made.take(self.events.moved(self.ticks * number, self.bars * number))
        region.others.append(self.made[number])
        self.links.append((region, self.made[number]))

    def keep_behind(self, time: int) -> None:
        """Only the links between regions that are let go behind `time`."""
        self.links = [pair for pair in self.links if min(r.latest for r in pair) > time]

    def drop(self) -> None:
        """Nobody waits for them any more."""
        for region, made in self.links:
            region.others.remove(made)

    def _last(self, parts: Parts) -> int | None:
        if not parts:
            return self.count - 1
        (part,) = parts
        if _are_apart(part, self.every) or not part.overlaps(self.every):
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


def _are_apart(a: Footprint, b: Footprint) -> bool:
    """Whether the two, columns of rows of one length, are seen at once to share no byte."""
    if not a.strides or not b.strides or a.strides[0] != b.strides[0]:
        return False
    row = a.strides[0]
    at, behind = a.offset % row, b.offset % row
    if at + span(a) > row or behind + span(b) > row:
        return False
    return at + span(a) <= behind or behind + span(b) <= at
