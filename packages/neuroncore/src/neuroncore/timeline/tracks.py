"""Who touched which bytes when: what an instruction has to wait for.

A track is one tensor (or a register, or all tensors of a memory that have a fixed address). It
holds regions, the distinct sets of bytes that instructions name; regions that share bytes know one
another. Times are ticks at which whoever waits may start.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol

from neuroncore.effects import Footprint

if TYPE_CHECKING:
    from neuroncore.timeline.series import Series

NOBODY = -1
IRREGULAR = -1
PRUNED = 256
"""Regions of a track before it is looked which of them nobody needs."""
Parts = tuple[Footprint, ...]
"""The bytes of a region; none stand for all of its tensor."""


class Region:
    """Bytes that some access names, with their last write and the reads since.

    `read` is the latest release among readers, `read2` the latest among those on other lanes than
    that one's: an in-order lane does not wait for itself. `writer`, `reader`, `reader2` are bars,
    `toucher` is the latest.
    """

    __slots__ = (
        "first", "last", "offset", "others", "parts", "read", "read2", "reader", "reader2",
        "rlane", "slot", "toucher", "track", "wlane", "writer", "written",
    )  # fmt: skip

    def __init__(self, track: Track, parts: Parts, slot: int) -> None:
        self.track, self.parts = track, parts
        self.offset = parts[0].offset if parts else 0
        self.first, self.last = -inf, inf
        if len(parts) == 1:
            self.first, self.last = self.offset, self.offset + reach(parts[0])
        self.slot = slot
        self.others: list[Region] = []
        self.written = self.read = self.read2 = 0
        self.wlane = self.rlane = NOBODY
        self.writer = self.reader = self.reader2 = self.toucher = NOBODY

    def was_read(self, lane: int, release: int, bar: int) -> None:
        """An instruction on `lane` reads it and lets go at `release`."""
        if lane == self.rlane:
            if release > self.read:
                self.read, self.reader = release, bar
        elif release >= self.read:
            self.read2, self.reader2 = self.read, self.reader
            self.read, self.reader, self.rlane = release, bar, lane
        elif release > self.read2:
            self.read2, self.reader2 = release, bar

    def was_written(self, lane: int, release: int, bar: int) -> None:
        """An instruction on `lane` writes it; the content is there at `release`."""
        self.written, self.writer, self.wlane = release, bar, lane
        self.read = self.read2 = 0
        self.reader = self.reader2 = self.rlane = NOBODY

    def was_read_as(self, other: Events) -> None:
        """The reads of `other`."""
        if other.rlane == self.rlane:
            self._second(other.read2, other.reader2)
            if other.read > self.read:
                self.read, self.reader = other.read, other.reader
        elif other.read >= self.read:
            first = self.read, self.reader
            self.read, self.reader, self.rlane = other.read, other.reader, other.rlane
            self.read2, self.reader2 = other.read2, other.reader2
            self._second(*first)
        else:
            self._second(other.read, other.reader)

    def _second(self, read: int, reader: int) -> None:
        if read > self.read2:
            self.read2, self.reader2 = read, reader

    def take(self, events: Events) -> None:
        """This was done to it."""
        self.toucher = max(self.toucher, events.writer, events.reader)
        if events.written:
            self.was_written(events.wlane, events.written, events.writer)
        if events.read:
            self.was_read_as(events)

    @property
    def latest(self) -> int:
        """When the last that touched it lets go."""
        return max(self.written, self.read)


class Events(NamedTuple):
    """What a stretch of time did to a region: its last write, if any, and the reads since.

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
        """What the bars from `bar` on did to it; None where they did nothing."""
        wrote = region.writer >= bar
        if region.toucher < bar:
            return None
        write = (region.written, region.wlane, region.writer) if wrote else (0, NOBODY, NOBODY)
        read = read2 = (0, NOBODY)
        rlane = NOBODY
        if region.reader >= bar:
            read, rlane = (region.read, region.reader), region.rlane
        if region.reader2 >= bar:
            read2 = region.read2, region.reader2
        return cls(*write, read[0], rlane, read[1], *read2)

    def moved(self, by: int, bars: int) -> Events:
        """The same `by` ticks and `bars` bars later."""
        written, wlane, writer, read, rlane, reader, read2, reader2 = self
        return Events(
            *((written + by, wlane, writer + bars) if written else (0, NOBODY, NOBODY)),
            *((read + by, rlane, reader + bars) if read else (0, NOBODY, NOBODY)),
            *((read2 + by, reader2 + bars) if read2 else (0, NOBODY)),
        )

    @property
    def latest(self) -> int:
        """When the last that touched it lets go."""
        return max(self.written, self.read)


class Family:
    """Regions of one outermost stride and about one size, by where in that stride they begin.

    Two of them can only share bytes if these places are near; so a tensor that is taken apart into
    thousands of columns or rows finds the neighbours of a new one by bisection. `period` 0 stands
    for contiguous bytes, IRREGULAR for everything that is not one footprint.
    """

    __slots__ = ("period", "places", "regions", "width")

    def __init__(self, period: int) -> None:
        self.period = period
        self.places: list[int] = []
        self.regions: list[Region] = []
        """By place."""
        self.width = 0
        """The most bytes that a region covers from its place on, outermost dimension aside."""

    def add(self, region: Region) -> None:
        """Take in a region of this family."""
        if self.period < 0:
            self.regions.append(region)
            return
        (part,) = region.parts
        place = self._place(part)
        at = bisect_right(self.places, place)
        self.places.insert(at, place)
        self.regions.insert(at, region)
        self.width = max(self.width, span(part))

    def near(self, part: Footprint) -> list[Region]:
        """Those that `part`, of this family's period, may share bytes with."""
        low, high = self._place(part) - self.width, self._place(part) + span(part)
        found = self._between(low, high)
        if self.period:
            if high - low >= self.period:
                return self.regions
            if low < 0:
                found = found + self._between(low + self.period, self.period)
            if high > self.period:
                found = found + self._between(-1, high - self.period)
        return found

    def _between(self, low: int, high: int) -> list[Region]:
        return self.regions[bisect_right(self.places, low) : bisect_left(self.places, high)]

    def _place(self, part: Footprint) -> int:
        return part.offset % self.period if self.period else part.offset


def span(part: Footprint) -> int:
    """Bytes from the first to behind the last, without the outermost dimension."""
    if len(part.shape) < 2:
        return part.itemsize
    inner = zip(part.shape[1:], part.strides[1:], strict=True)
    return part.itemsize + sum((n - 1) * s for n, s in inner)


class Remembers(Protocol):
    """Somebody who remembers regions of a track."""

    def forget(self) -> None:
        """Look them up again."""


class Track:
    """The regions of one tensor; `copies` of it take turns where the compiler rotates buffers.

    `is_shared`: it stands for all tensors of a memory whose address is fixed. It puts itself on
    `overfull` when it holds so many regions that it is worth forgetting some.
    """

    __slots__ = (
        "accesses", "copies", "families", "forms", "full", "is_shared", "name", "overfull",
        "regions", "series", "slot", "takes_series", "turns",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        copies: int = 1,
        is_shared: bool = False,
        overfull: list[Track] | None = None,
    ) -> None:
        self.name, self.copies, self.is_shared = name, copies, is_shared
        self.overfull, self.full = overfull, PRUNED
        self.accesses: list[Remembers] = []
        """They remember regions."""
        self.turns = self.slot = 0
        self.regions: dict[tuple[int, Parts], Region] = {}
        self.families: dict[int, dict[tuple[int, int], Family]] = {}
        """Copy → (outermost stride, size) → regions."""
        self.forms: dict[tuple, int] = {}
        self.series: dict[int, list[Series]] = {}
        self.takes_series = not is_shared

    def rotate(self, by: int = 1) -> None:
        """The tensor is allocated anew: the next copy, `slot`, is that of the moment."""
        self.turns += by
        self.slot = self.turns % self.copies

    def add_series(self, made: Series, before: int) -> None:
        """Regions that periods of a loop left behind; nothing starts before `before` any more."""
        for slot, every in self.series.items():
            for series in every:
                if series.latest <= before:
                    series.drop()
            self.series[slot] = [series for series in every if series.latest > before]
        self.series.setdefault(made.slot, []).append(made)
        for family in self.families.get(made.slot, {}).values():
            for region in family.regions:
                made.link(region)

    def has_series(self, after: int) -> bool:
        """Whether somebody may still wait, behind `after`, for regions that a loop left behind."""
        return any(series.latest > after for every in self.series.values() for series in every)

    def region(self, slot: int, parts: Parts) -> Region:
        """The region of these bytes in copy `slot`."""
        key = (slot, parts)
        found = self.regions.get(key)
        if found is None:
            if len(self.regions) == self.full and self.overfull is not None:
                self.overfull.append(self)
            found = self.regions[key] = Region(self, parts, slot)
            self._link(found)
        return found

    def form(self, parts: Parts) -> int:
        """A number for shape and strides of these bytes, wherever they are."""
        first = parts[0].offset if parts else 0
        form = tuple([(p.offset - first, p.shape, p.strides, p.itemsize) for p in parts])
        return self.forms.setdefault(form, len(self.forms))

    def forget(self, before: int) -> None:
        """Drop the regions that were let go by this time: nothing starts before it any more.

        Only between instructions: one that has looked at a region must find it again.
        """
        kept = {key: region for key, region in self.regions.items() if region.latest > before}
        self.full = 2 * len(kept) + PRUNED
        self.regions.clear()
        self.families.clear()
        for access in self.accesses:
            access.forget()
        for every in self.series.values():
            for series in every:
                series.links.clear()
        for (slot, parts), region in kept.items():
            self.regions[slot, parts] = region
            region.others = []
            self._link(region)

    def _link(self, made: Region) -> None:
        """Make a new region known to those that share bytes with it."""
        parts, slot = made.parts, made.slot
        period = parts[0].strides[0] if len(parts) == 1 and parts[0].strides else 0
        if len(parts) != 1:
            period = IRREGULAR
        families = self.families.setdefault(slot, {})
        first, last = made.first, made.last
        for (other_period, _), family in families.items():
            near = family.near(parts[0]) if period == other_period >= 0 else family.regions
            for other in near:
                if other.first < last and first < other.last and share_bytes(parts, other.parts):
                    made.others.append(other)
                    other.others.append(made)
        size = 0 if period < 0 else span(parts[0]).bit_length()
        for series in self.series.get(slot, ()):
            series.link(made)
        family = families.get((period, size))
        if family is None:
            family = families[period, size] = Family(period)
        family.add(made)


def reach(part: Footprint) -> int:
    """Bytes from the first to behind the last."""
    strides = part.strides
    return span(part) + (part.shape[0] - 1) * strides[0] if strides else part.itemsize


def share_bytes(a: Parts, b: Parts) -> bool:
    """Whether two regions of one tensor have a byte in common."""
    if len(a) == 1 == len(b):
        return a[0].overlaps(b[0])
    return not a or not b or any(one.overlaps(other) for one in a for other in b)
