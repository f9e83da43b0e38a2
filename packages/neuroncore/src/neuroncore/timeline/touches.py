"""Which regions instructions touched, in program order."""

from __future__ import annotations

from neuroncore.timeline.tracks import Region


class Touches:
    """(when it lets go, its regions) of every instruction."""

    __slots__ = ("all", "peaks")

    def __init__(self) -> None:
        self.all: list[tuple[int, list[Region]]] = []
        self.peaks: list[int] = []
        """The latest time up to each of them, as far as somebody asked."""

    def held(self, floor: int, most: int) -> list[Region] | None:
        """The regions let go behind `floor`; None where more than `most` are to be looked at."""
        every, peaks = self.all, self.peaks
        peak = peaks[-1] if peaks else 0
        for time, _ in every[len(peaks) :]:
            if time > peak:
                peak = time
            peaks.append(peak)
        at = len(every)
        least = max(0, at - most)
        found: dict[Region, None] = {}
        while at and peaks[at - 1] > floor:
            if at == least:
                return None
            at -= 1
            time, regions = every[at]
            if time > floor:
                for region in regions:
                    found[region] = None
        return [r for r in found if r.written > floor or r.read > floor]

    def since(self, mark: int) -> list[Region]:
        """The regions of instruction `mark` and those behind it."""
        found: dict[Region, None] = {}
        for _, regions in self.all[mark:]:
            for region in regions:
                found[region] = None
        return list(found)
