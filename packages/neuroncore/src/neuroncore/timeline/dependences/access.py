"""An access of a program as the timeline sees it: a track, and which region at which iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from neuroncore.effects import Footprint, footprint
from neuroncore.timeline.dependences.regions import Parts, Region
from neuroncore.timeline.dependences.tracks import Track
from neuroncore.timeline.model.bars import DATA, LANE, NO_BAR, SPACE


class TrackedAccess:
    """`find` gives the region for the current values of the loop variables.

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

    def replace(self, first: Mapping[int, int], variable: int, pace: int) -> None:
        """Variables that were first what `first` says give way to one that counts from 0, each step
        of which moves it `pace` bytes. Only before the first region has been looked up.
        """
        kept = [(slot, step) for slot, step in self.terms if slot not in first]
        self.offset += sum(step * first[slot] for slot, step in self.terms if slot in first)
        self.terms = (*kept, (variable, pace)) if pace else tuple(kept)
        self.moves = bool(self.terms) or self.copies > 1

    def find(self) -> Region:
        """The region for the current values."""
        offset, values, copies = self.offset, self.values, self.copies
        for variable, step in self.terms:
            offset += step * values[variable]
        slot = self.track.slot if copies > 1 else 0
        key = offset * copies + slot
        found = self.regions.get(key)
        if found is None:
            found = self.regions[key] = self._region(offset, slot)
            if not self.moves:
                self.fixed = found
        return found

    def _region(self, offset: int, slot: int) -> Region:
        if self.form is not None:
            return self.track.region_at(slot, self.form, self.at_zero, offset)
        parts = () if self.at_zero is None else (self.at_zero.moved(offset),)
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


class Wait:
    """The accesses of an instruction on `lane`, looked at before it starts, touched when it has.

    In-order lanes do not wait for themselves before they write (`lag` None). Instructions that may
    be reordered wait until the other has left the lane, `lag` before it releases. Instructions that
    add to the same bytes on one lane never wait for one another.
    """

    __slots__ = ("bar", "changes", "lane", "reads", "regions", "why")

    def __init__(
        self,
        lane: int,
        reads: list[TrackedAccess],
        writes: list[TrackedAccess],
        adds: list[TrackedAccess],
        lag: int | None = None,
    ) -> None:
        self.lane, self.reads = lane, reads
        self.changes = [(access, lag, SPACE) for access in writes]
        self.changes += [(access, None, DATA) for access in adds]
        """What is written, how far ahead the lane itself may be, the cause where it waits."""
        self.bar, self.why = NO_BAR, LANE
        self.regions: list[Region] = []

    def look(self) -> int:
        """When everything is ready; `bar` and `why` say what was last, of several the last bar."""
        ready, bar, why, lane = 0, NO_BAR, LANE, self.lane
        self.regions = regions = []
        for access in self.reads:
            region = access.fixed or access.find()
            regions.append(region)
            for one in (region, *region.others):
                time = one.written
                if time >= ready and (time > ready or one.writer > bar):
                    ready, bar, why = time, one.writer, DATA
        for access, lag, cause in self.changes:
            region = access.fixed or access.find()
            regions.append(region)
            for one in (region, *region.others):
                if one.written >= ready or one.read >= ready:
                    time, number, by = one.released(lane, lag, cause)
                    if time >= ready and (time > ready or number > bar):
                        ready, bar, why = time, number, by
        self.bar, self.why = bar, why
        return ready

    def done(self, release: int, bar: int) -> None:
        """The instruction releases everything at `release`."""
        lane, num_reads = self.lane, len(self.reads)
        for number, region in enumerate(self.regions):
            region.toucher = bar
            if not region.is_recent:
                region.recent.add(region)
            if number < num_reads:
                region.was_read(lane, release, bar)
            else:
                region.was_written(lane, release, bar)
