"""Bytes that instructions name: where they are, their last write, the reads since.

Times are ticks from which waiting instructions may start.
"""

from __future__ import annotations

from typing import NamedTuple

from neuroncore.effects import Footprint
from neuroncore.timeline.model.bars import NO_BAR, SPACE

IRREGULAR = -1
FAR = 1 << 62
"""Beyond every byte of a tensor."""
Parts = tuple[Footprint, ...]
"""The bytes of a region; an empty tuple is all of its tensor."""


class Form:
    """The common parts of a track's regions that differ only in their offset."""

    __slots__ = ("period", "reach", "size", "span")

    def __init__(self, parts: Parts) -> None:
        self.period, self.span, self.reach, self.size = IRREGULAR, 0, 0, 0
        if len(parts) == 1:
            (part,) = parts
            self.span, self.reach = span(part), reach(part)
            """Bytes from the first to behind the last: without the outermost dimension, with it."""
            self.period, self.size = part.strides[0] if part.strides else 0, self.span.bit_length()
            """The outermost stride (0: contiguous, IRREGULAR: not one footprint), span by size."""


class Region:
    """Bytes that some access names, with their last write and the reads since.

    `read` is the latest release among readers, `read2` the latest among those on other lanes than
    that one's: an in-order lane does not wait for itself. `writer`, `reader`, `reader2` are bars,
    `toucher` is the latest.
    """

    __slots__ = (
        "first", "form", "is_recent", "last", "offset", "others", "parts", "read", "read2",
        "reader", "reader2", "recent", "rlane", "slot", "toucher", "wlane", "writer", "written",
    )  # fmt: skip

    def __init__(self, recent: Recent, form: Form, parts: Parts, slot: int) -> None:
        self.recent, self.form, self.parts = recent, form, parts
        if len(parts) == 1:
            self.first = self.offset = parts[0].offset
            self.last = self.offset + form.reach
        else:
            self.offset = parts[0].offset if parts else 0
            self.first, self.last = -FAR, FAR
        self.slot = slot
        self.others: list[Region] = []
        self.is_recent = False
        """Whether it is among the regions of `recent` that may be waited for."""
        self.written = self.read = self.read2 = 0
        self.wlane = self.rlane = NO_BAR
        self.writer = self.reader = self.reader2 = self.toucher = NO_BAR

    def was_written(self, lane: int, release: int, bar: int) -> None:
        """An instruction on `lane` writes it; the content is there at `release`."""
        self.written, self.writer, self.wlane = release, bar, lane
        if self.read:
            self.read = self.read2 = 0
            self.reader = self.reader2 = self.rlane = NO_BAR

    def was_read(self, lane: int, release: int, bar: int) -> None:
        """An instruction on `lane` reads it until `release`."""
        if lane == self.rlane:
            if release > self.read:
                self.read, self.reader = release, bar
        elif release >= self.read:
            self.read2, self.reader2 = self.read, self.reader
            self.read, self.reader, self.rlane = release, bar, lane
        elif release > self.read2:
            self.read2, self.reader2 = release, bar

    def released(self, lane: int, lag: int | None, cause: int) -> tuple[int, int, int]:
        """When an instruction on `lane` may write it, the bar it waits for, and why: for a write
        because of `cause`, for a read because its space is in use.

        The lane itself is waited for until `lag` before it releases, or not at all.
        """
        ready, bar = self.written, self.writer
        if self.wlane == lane:
            ready = ready - lag if lag is not None else -1
        if self.read <= 0:
            return ready, bar, cause
        read = self.read
        if self.rlane == lane:
            read = read - lag if lag is not None else -1
            if (self.read2, self.reader2) > (ready, bar):
                ready, bar, cause = self.read2, self.reader2, SPACE
        if (read, self.reader) > (ready, bar):
            return read, self.reader, SPACE
        return ready, bar, cause

    def take(self, events: Events) -> None:
        """This was done to it."""
        written, wlane, writer, read, rlane, reader, read2, reader2 = events
        self.toucher = max(self.toucher, writer, reader)
        if not self.is_recent:
            self.recent.add(self)
        if written:
            self.was_written(wlane, written, writer)
        if not read:
            return
        if rlane == self.rlane:
            self._second(read2, reader2)
            if read > self.read:
                self.read, self.reader = read, reader
        elif read >= self.read:
            first = self.read, self.reader
            self.read, self.reader, self.rlane = read, reader, rlane
            self.read2, self.reader2 = read2, reader2
            self._second(*first)
        else:
            self._second(read, reader)

    def _second(self, read: int, reader: int) -> None:
        if read > self.read2:
            self.read2, self.reader2 = read, reader

    @property
    def latest(self) -> int:
        """When the last access releases it."""
        return max(self.written, self.read)


class Recent:
    """The regions of a track that were accessed and may still be waited for."""

    __slots__ = ("after", "held_regions", "regions")

    def __init__(self) -> None:
        self.regions: dict[Region, None] = {}
        self.held_regions: list[Region] = []
        """Regions that an instruction may wait for after `after`, and regions accessed since."""
        self.after = 0

    def add(self, region: Region) -> None:
        """The region is accessed, and was not among the held ones."""
        region.is_recent = True
        self.regions[region] = None
        self.held_regions.append(region)

    def held(self, after: int) -> list[Region]:
        """Regions that an instruction may wait for after this time."""
        if after < self.after:
            self.held_regions = [*self.regions]
        self.after, kept = after, []
        for region in self.held_regions:
            region.is_recent = region.written > after or region.read > after
            if region.is_recent:
                kept.append(region)
        self.held_regions = kept
        return kept

    def touched_since(self, bar: int) -> list[Region]:
        """Regions that bar `bar` or a later one touched."""
        return [region for region in self.regions if region.toucher >= bar]

    def drop(self, before: int) -> None:
        """Drop the regions that were released by this time."""
        self.regions = {region: None for region in self.regions if region.latest > before}
        self.held_regions = [region for region in self.held_regions if region.latest > before]

    def clear(self) -> None:
        """Drop all regions."""
        self.regions.clear()
        self.held_regions.clear()


class Events(NamedTuple):
    """Effects of a stretch of time on a region: its last write, if any, and the reads since.

    Times of 0 say that there was none. As in a region, `read2` is the latest on another lane.
    """

    written: int
    wlane: int
    writer: int
    read: int
    rlane: int
    reader: int
    read2: int
    reader2: int

    @classmethod
    def since(cls, region: Region, bar: int) -> Events | None:
        """Effects of the bars from `bar` on; None without any."""
        if region.toucher < bar:
            return None
        written, wlane, writer = region.written, region.wlane, region.writer
        if writer < bar:
            written, wlane, writer = 0, NO_BAR, NO_BAR
        read, rlane, reader = region.read, region.rlane, region.reader
        if reader < bar:
            read, rlane, reader = 0, NO_BAR, NO_BAR
        read2, reader2 = region.read2, region.reader2
        if reader2 < bar:
            read2, reader2 = 0, NO_BAR
        return cls(written, wlane, writer, read, rlane, reader, read2, reader2)

    def moved(self, by: int, bars: int) -> Events:
        """The same `by` ticks and `bars` bars later."""
        written, wlane, writer, read, rlane, reader, read2, reader2 = self
        if written:
            written, writer = written + by, writer + bars
        if read:
            read, reader = read + by, reader + bars
        if read2:
            read2, reader2 = read2 + by, reader2 + bars
        return Events(written, wlane, writer, read, rlane, reader, read2, reader2)

    @property
    def latest(self) -> int:
        """When the last access releases it."""
        return max(self.written, self.read)


def span(part: Footprint) -> int:
    """Bytes from the first to behind the last, without the outermost dimension."""
    if len(part.shape) < 2:
        return part.itemsize
    inner = zip(part.shape[1:], part.strides[1:], strict=True)
    return part.itemsize + sum((n - 1) * s for n, s in inner)


def reach(part: Footprint) -> int:
    """Bytes from the first to behind the last."""
    strides = part.strides
    return span(part) + (part.shape[0] - 1) * strides[0] if strides else part.itemsize


def share_bytes(a: Parts, b: Parts) -> bool:
    """Whether two regions of one tensor have a byte in common."""
    if len(a) == 1 == len(b):
        return a[0].overlaps(b[0])
    return not a or not b or any(one.overlaps(other) for one in a for other in b)
