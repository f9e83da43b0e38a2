"""An access of a program as the timeline sees it: a track, and which region at which iteration."""

from __future__ import annotations

from collections.abc import Callable

from neuroncore.effects import Footprint
from neuroncore.timeline.tracks import Parts, Region, Track


class TrackedAccess:
    """Called, it gives the region for the current values of the loop variables.

    `offset` bytes and `terms` (slot of a loop variable, bytes a step) move `at_zero`; `place` says
    where in the track the bytes lie. Without `at_zero` it is all of the track. `fixed` is the
    region of an access that never moves, once it is known.
    """

    __slots__ = (
        "at_zero", "copies", "fixed", "moves", "offset", "place", "regions", "terms", "track",
        "values",
    )  # fmt: skip

    def __init__(
        self,
        track: Track,
        values: list[int],
        offset: int = 0,
        terms: tuple[tuple[int, int], ...] = (),
        at_zero: Footprint | None = None,
        place: Callable[[Footprint], Parts] = lambda found: (found,),
    ) -> None:
        self.track, self.values, self.copies = track, values, track.copies
        self.offset, self.terms = offset, terms
        self.at_zero, self.place = at_zero, place
        self.moves = bool(terms) or track.copies > 1
        self.fixed: Region | None = None
        self.regions: dict[int, Region] = {}
        """By offset times copies and copy."""
        track.accesses.append(self)

    def __call__(self) -> Region:
        offset, values, slot = self.offset, self.values, self.track.slot
        for variable, step in self.terms:
            offset += step * values[variable]
        key = offset * self.copies + slot
        found = self.regions.get(key)
        if found is None:
            parts = () if self.at_zero is None else self.place(self.at_zero.moved(offset))
            found = self.regions[key] = self.track.region(slot, parts)
            if not self.moves:
                self.fixed = found
        return found

    def forget(self) -> None:
        """Remember no region."""
        self.regions.clear()
        self.fixed = None

    def step(self, variable: int) -> int:
        """Bytes that one step of a loop variable moves it."""
        return next((step for slot, step in self.terms if slot == variable), 0)
