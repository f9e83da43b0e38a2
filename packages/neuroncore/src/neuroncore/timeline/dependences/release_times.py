"""When instructions release what they access, in program order."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate


class Touches:
    """A time for every instruction that touched something."""

    __slots__ = ("all", "peaks")

    def __init__(self) -> None:
        self.all: list[int] = []
        self.peaks: list[int] = []
        """The latest time up to each of them, as far as it was needed."""

    def are_many_behind(self, floor: int, most: int) -> bool:
        """Whether more than `most` instructions, the latest ones, follow the first that releases
        after `floor`, itself counted.
        """
        every, peaks = self.all, self.peaks
        if len(every) <= most:
            return False
        if len(peaks) < len(every):
            times = every[len(peaks) :]
            times[0] = max(times[0], peaks[-1] if peaks else 0)
            peaks += accumulate(times, max)
        return len(every) - bisect_right(peaks, floor) > most
