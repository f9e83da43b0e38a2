"""Who touched which bytes when: what an instruction has to wait for.

A track is one tensor (or a register, or all tensors of a memory that have a fixed address). It
holds regions, the distinct sets of bytes that instructions name; regions that share bytes know one
another. Times are ticks at which whoever waits may start.
"""

from __future__ import annotations

from neuroncore.effects import Footprint

NOBODY = -1
Parts = tuple[Footprint, ...]
"""The bytes of a region; none stand for all of its tensor."""


class Region:
    """Bytes that some access names, with their last write and the reads since.

    `read` is the latest release among readers, `read2` the latest among those on other lanes than
    that one's: an in-order lane does not wait for itself. `writer`, `reader`, `reader2` are bars.
    """

    __slots__ = (
        "age", "others", "parts", "read", "read2", "reader", "reader2", "rlane", "slot",
        "wlane", "writer", "written",
    )  # fmt: skip

    def __init__(self, parts: Parts, slot: int) -> None:
        self.parts = parts
        self.slot = slot
        self.others: list[Region] = []
        self.age = 0
        self.written = self.read = self.read2 = 0
        self.wlane = self.rlane = NOBODY
        self.writer = self.reader = self.reader2 = NOBODY

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

    def times(self) -> tuple[int, ...]:
        """When and by whom it was touched."""
        return (
            self.written, self.read, self.read2, self.wlane, self.rlane,
            self.writer, self.reader, self.reader2, self.age,
        )  # fmt: skip

    def set_times(self, times: tuple[int, ...], later: int) -> None:
        """Touched as another region was, `later` ticks after it."""
        (written, read, read2, self.wlane, self.rlane,
         self.writer, self.reader, self.reader2, self.age) = times  # fmt: skip
        self.written, self.read, self.read2 = [
            t + later if t else 0 for t in (written, read, read2)
        ]

    @property
    def latest(self) -> int:
        """When the last that touched it lets go."""
        return max(self.written, self.read)


class Track:
    """The regions of one tensor; `copies` of it take turns where the compiler rotates buffers.

    `is_shared`: it stands for all tensors of a memory whose address is fixed.
    """

    __slots__ = ("copies", "is_shared", "name", "regions", "slot", "turns")

    def __init__(self, name: str, copies: int = 1, is_shared: bool = False) -> None:
        self.name, self.copies, self.is_shared = name, copies, is_shared
        self.turns = self.slot = 0
        self.regions: dict[tuple[int, Parts], Region] = {}

    def rotate(self, by: int = 1) -> None:
        """The tensor is allocated anew: the next copy, `slot`, is that of the moment."""
        self.turns += by
        self.slot = self.turns % self.copies

    def region(self, slot: int, parts: Parts) -> Region:
        """The region of these bytes in copy `slot`."""
        key = (slot, parts)
        found = self.regions.get(key)
        if found is None:
            found = self.regions[key] = self._made(parts, slot)
        return found

    def _made(self, parts: Parts, slot: int) -> Region:
        made = Region(parts, slot)
        for other in self.regions.values():
            if other.slot == slot and share_bytes(parts, other.parts):
                made.others.append(other)
                other.others.append(made)
        return made


def share_bytes(a: Parts, b: Parts) -> bool:
    """Whether two regions of one tensor have a byte in common."""
    if len(a) == 1 == len(b):
        return a[0].overlaps(b[0])
    return not a or not b or any(one.overlaps(other) for one in a for other in b)
