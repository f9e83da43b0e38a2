"""Which regions instructions touched, in program order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from neuroncore.timeline.regions import Region


class Touches:
    """(when it lets go, its regions) of every instruction."""

    __slots__ = ("all", "peaks")

    def __init__(self) -> None:
        self.all: list[tuple[int, list[Region]]] = []
        self.peaks: list[int] = []
        """The latest time up to each of them, as far as somebody asked."""

    def num_behind(self, floor: int) -> int:
        """How many instructions, the latest ones, there are among which some let go behind it."""
        every, peaks = self.all, self.peaks
        if len(peaks) < len(every):
            times = [time for time, _ in every[len(peaks) :]]
            times[0] = max(times[0], peaks[-1] if peaks else 0)
            peaks += accumulate(times, max)
        return len(every) - bisect_right(peaks, floor)

    def held(self, most: int, floor: int) -> Iterator[Region]:
        """The regions that the `most` latest instructions let go behind `floor`, latest first."""
        found: set[Region] = set()
        for time, regions in reversed(self.all[len(self.all) - most :]):
            if time > floor:
                for region in regions:
                    if (region.written > floor or region.read > floor) and region not in found:
                        found.add(region)
                        yield region

    def since(self, mark: int) -> list[Region]:
        """The regions of instruction `mark` and those behind it."""
        found: dict[Region, None] = {}
        for _, regions in self.all[mark:]:
            for region in regions:
                found[region] = None
        return list(found)
