"""An access of a program as the timeline sees it: a track, and which region at which iteration."""

from __future__ import annotations

from collections.abc import Callable

from neuroncore.effects import Footprint
from neuroncore.timeline.tracks import Parts, Region, Track


class TrackedAccess:
    """Called, it gives the region for the current values of the loop variables.

    `offset` bytes and `terms` (slot of a loop variable, bytes a step) move `at_zero`; `place` says
    where in the track the bytes lie. Without `at_zero` it is all of the track.
    """

    __slots__ = ("at_zero", "offset", "place", "regions", "terms", "track", "values")

    def __init__(
        self,
        track: Track,
        values: list[int],
        offset: int = 0,
        terms: tuple[tuple[int, int], ...] = (),
        at_zero: Footprint | None = None,
        place: Callable[[Footprint], Parts] = lambda found: (found,),
    ) -> None:
        self.track, self.values = track, values
        self.offset, self.terms = offset, terms
        self.at_zero, self.place = at_zero, place
        self.regions: dict[tuple[int, int], Region] = {}
        track.caches.append(self.regions)

    def __call__(self) -> Region:
        offset, values, slot = self.offset, self.values, self.track.slot
        for variable, step in self.terms:
            offset += step * values[variable]
        found = self.regions.get((slot, offset))
        if found is None:
            parts = () if self.at_zero is None else self.place(self.at_zero.moved(offset))
            found = self.regions[slot, offset] = self.track.region(slot, parts)
        return found

    def step(self, variable: int) -> int:
        """Bytes that one step of a loop variable moves it."""
        return next((step for slot, step in self.terms if slot == variable), 0)
