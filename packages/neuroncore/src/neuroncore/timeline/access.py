"""An access of a program as the timeline sees it: a track, and which region at which iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from neuroncore.effects import Footprint, footprint
from neuroncore.timeline.regions import Parts, Region
from neuroncore.timeline.tracks import Track


class TrackedAccess:
    """Called, it gives the region for the current values of the loop variables.

    `offset` bytes and `terms` (slot of a loop variable, bytes a step) move `at_zero`; `place` says
    where in the track the bytes lie, if it is not the tensor's own. Without `at_zero` it is all of
    the track. `fixed` is the region of an access that never moves, once it is known.
    """

    __slots__ = (
        "at_zero", "copies", "fixed", "form", "moves", "offset", "place", "regions", "terms",
        "track", "values",
    )  # fmt: skip

    def __init__(
        self,
        track: Track,
        values: list[int],
        offset: int = 0,
        terms: tuple[tuple[int, int], ...] = (),
        at_zero: Footprint | None = None,
        place: Callable[[Footprint], Parts] | None = None,
    ) -> None:
        self.track, self.values, self.copies = track, values, track.copies
        self.offset, self.terms = offset, terms
        self.at_zero, self.place = at_zero, place
        self.form = None if place else track.form(() if at_zero is None else (at_zero,))
        self.moves = bool(terms) or track.copies > 1
        self.fixed: Region | None = None
        self.regions: dict[int, Region] = {}
        """By offset times copies and copy."""
        track.accesses.append(self)

    def __call__(self) -> Region:
        offset, terms, copies = self.offset, self.terms, self.copies
        if terms:
            values = self.values
            for variable, step in terms:
                offset += step * values[variable]
        slot = 0
        key = offset
        if copies > 1:
            slot = self.track.slot
            key = offset * copies + slot
        found = self.regions.get(key)
        if found is None:
            found = self.regions[key] = self._region(offset, slot)
            if not self.moves:
                self.fixed = found
        return found

    def _region(self, offset: int, slot: int) -> Region:
        parts = () if self.at_zero is None else (self.at_zero.moved(offset),)
        if self.form is not None:
            return self.track.region_of(slot, self.form, parts)
        return self.track.region(slot, self.place(*parts) if self.place else parts)

    def forget(self) -> None:
        """Remember no region."""
        self.regions.clear()
        self.fixed = None

    def reach(self, ranges: Mapping[int, range]) -> Footprint | None:
        """All bytes that it names while loop variables (by slot) go through these ranges and the
        others stay; None where that is not known.
        """
        if self.at_zero is None or self.place is not None:
            return None
        first, sizes, steps = self.at_zero.offset + self.offset, [], []
        for variable, step in self.terms:
            trips = ranges.get(variable)
            if trips is None:
                first += step * self.values[variable]
                continue
            first += step * trips.start
            sizes.append(len(trips))
            steps.append(step * trips.step)
        shape, strides = (*sizes, *self.at_zero.shape), (*steps, *self.at_zero.strides)
        return footprint(first, shape, strides, self.at_zero.itemsize)

    def step(self, variable: int) -> int:
        """Bytes that one step of a loop variable moves it."""
        return next((step for slot, step in self.terms if slot == variable), 0)
