"""An access of a program as the timeline sees it: a track, and which region at which iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from neuroncore.effects import Footprint, footprint
from neuroncore.timeline.dependences.regions import Parts, Region
from neuroncore.timeline.dependences.release_times import Touches
from neuroncore.timeline.dependences.tracks import Track
from neuroncore.timeline.model.bars import DATA, LANE, NO_BAR, SPACE


class TrackedAccess:
    """`find` gives the region for the current values of the loop variables.

    `offset` bytes and `terms` (slot of a loop variable, bytes a step) move `at_zero`; `place` says
    where in the track the bytes lie, if it is not the tensor's own. Without `at_zero` it is all of
    the track. `fixed` is the region of an access that never moves, once it is known. Reads
    through it hold back nothing if `is_last`: the bytes are not written any more.
    """

    __slots__ = (
        "at_zero", "copies", "find", "fixed", "form", "is_last", "moves", "offset", "place",
        "ready", "regions", "terms", "track", "until", "values",
    )  # fmt: skip

    def __init__(
        self,
        track: Track,
        values: list[int],
        offset: int = 0,
        terms: tuple[tuple[int, int], ...] = (),
        at_zero: Footprint | None = None,
        place: Callable[[Footprint], Parts] | None = None,
        is_last: bool = False,
    ) -> None:
        self.track, self.values, self.copies = track, values, track.copies
        self.offset, self.terms = offset, terms
        self.at_zero, self.place, self.is_last = at_zero, place, is_last
        self.form = None if place else track.form(() if at_zero is None else (at_zero,))
        self.moves = bool(terms) or track.copies > 1
        self.fixed: Region | None = None
        self.regions: dict[int, Region] = {}
        """By offset times copies and copy."""
        self.ready: dict[int, tuple[int, int]] = {}
        """Of what is not written any more, by offset: when it is there, and its writer."""
        self.until: int | None = None
        """When all of such a track is there, once it is known."""
        self.find = self._finder()
        track.accesses.append(self)

    def replace(self, first: Mapping[int, int], variable: int, pace: int) -> None:
        """Variables that were first what `first` says give way to one that counts from 0, each step
        of which moves it `pace` bytes. Only before anybody has asked for a region.
        """
        kept = [(slot, step) for slot, step in self.terms if slot not in first]
        self.offset += sum(step * first[slot] for slot, step in self.terms if slot in first)
        self.terms = (*kept, (variable, pace)) if pace else tuple(kept)
        self.moves = bool(self.terms) or self.copies > 1
        self.find = self._finder()

    def _finder(self) -> Callable[[], Region]:
        """The region for the current values, by the shortest way to it."""
        get, make, track, values = self.regions.get, self._make, self.track, self.values
        offset, terms, copies = self.offset, self.terms, self.copies
        if copies == 1 and len(terms) == 1:
            ((variable, step),) = terms

            def find() -> Region:
                key = offset + step * values[variable]
                return get(key) or make(key, 0, key)

        elif not terms:
            first = offset * copies

            def find() -> Region:
                slot = track.slot
                return get(first + slot) or make(first + slot, slot, offset)

        elif len(terms) == 1:
            ((variable, step),) = terms

            def find() -> Region:
                moved = offset + step * values[variable]
                slot = track.slot
                key = moved * copies + slot
                return get(key) or make(key, slot, moved)

        else:

            def find() -> Region:
                moved = offset
                for variable, step in terms:
                    moved += step * values[variable]
                slot = track.slot if copies > 1 else 0
                key = moved * copies + slot
                return get(key) or make(key, slot, moved)

        return find

    def _make(self, key: int, slot: int, offset: int) -> Region:
        found = self.regions[key] = self._region(offset, slot)
        if not self.moves:
            self.fixed = found
        return found

    def there_by(self) -> int:
        """When all of its track, which is not written any more, is there."""
        if self.until is None:
            self.until = self.track.last_write()
        return self.until

    def written(self) -> tuple[int, int]:
        """When the bytes, which are not written any more, are there, and who wrote them last."""
        offset, values = self.offset, self.values
        for variable, step in self.terms:
            offset += step * values[variable]
        found = self.ready.get(offset)
        if found is None:
            assert self.form is not None and self.at_zero is not None
            found = self.ready[offset] = self.track.written(self.form, self.at_zero, offset)
        return found

    def _region(self, offset: int, slot: int) -> Region:
        if self.form is not None:
            return self.track.region_at(slot, self.form, self.at_zero, offset)
        parts = () if self.at_zero is None else (self.at_zero.moved(offset),)
        return self.track.region(slot, self.place(*parts) if self.place else parts)

    def forget(self) -> None:
        """Remember no region."""
        self.regions.clear()
        self.ready.clear()
        self.fixed = None

    def close(self) -> None:
        """Nothing is played any more: drop the regions, and the reference to itself."""
        self.forget()
        self.find = _closed

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


def _closed() -> Region:
    raise AssertionError("its program has been played")


class Wait:
    """The accesses of an instruction on `lane`, looked at before it starts, touched when it has.

    In-order lanes do not wait for themselves before they write (`lag` None). Instructions that may
    be reordered wait until the other has left the lane, `lag` before it releases. Instructions that
    add to the same bytes on one lane never wait for one another.
    """

    __slots__ = (
        "bar", "changes", "lane", "last_reads", "note", "num_reads", "reads", "regions", "why",
    )  # fmt: skip

    def __init__(
        self,
        lane: int,
        reads: list[TrackedAccess],
        writes: list[TrackedAccess],
        adds: list[TrackedAccess],
        lag: int | None = None,
        *,
        touches: Touches,
    ) -> None:
        self.note = touches.all.append
        self.lane = lane
        self.reads = [access for access in reads if not access.is_last]
        self.last_reads = [access for access in reads if access.is_last]
        """These hold back no other."""
        self.num_reads = len(self.reads)
        self.changes = [(access, lag, SPACE) for access in writes]
        self.changes += [(access, None, DATA) for access in adds]
        """What is written, how far ahead the lane itself may be, the cause where it waits."""
        self.bar, self.why = NO_BAR, LANE
        self.regions: list[Region] = []

    def look(self, floor: int) -> int:
        """When everything is ready; `bar` and `why` say what was last, of several the last bar.

        What is ready by `floor` need not be found, if finding it takes long.
        """
        ready, bar, why = 0, NO_BAR, LANE
        self.regions = regions = []
        for access in self.reads:
            region = access.fixed or access.find()
            regions.append(region)
            time = region.written
            if time >= ready and (time > ready or region.writer > bar):
                ready, bar, why = time, region.writer, DATA
            for one in region.others:
                time = one.written
                if time >= ready and (time > ready or one.writer > bar):
                    ready, bar, why = time, one.writer, DATA
        for access in self.last_reads:
            if access.there_by() <= floor:
                continue
            time, writer = access.written()
            if time >= ready and (time > ready or writer > bar):
                ready, bar, why = time, writer, DATA
        mine = self.lane
        for access, lag, kind in self.changes:
            region = access.fixed or access.find()
            regions.append(region)
            others = region.others
            for one in (region, *others) if others else (region,):
                time = one.written
                if one.wlane == mine:
                    time = time - lag if lag is not None else -1
                if time >= ready and (time > ready or one.writer > bar):
                    ready, bar, why = time, one.writer, kind
                time = one.read
                if time <= 0:
                    continue
                if one.rlane == mine:
                    time = time - lag if lag is not None else -1
                    if one.read2 >= ready and (one.read2 > ready or one.reader2 > bar):
                        ready, bar, why = one.read2, one.reader2, SPACE
                if time >= ready and (time > ready or one.reader > bar):
                    ready, bar, why = time, one.reader, SPACE
        self.bar, self.why = bar, why
        return ready

    def done(self, release: int, bar: int) -> None:
        """The instruction releases everything at `release`."""
        lane, regions, reads = self.lane, self.regions, self.num_reads
        if not regions:
            return
        self.note(release)
        for region in regions:
            region.toucher = bar
            if not region.is_recent:
                region.recent.add(region)
            if reads:
                reads -= 1
                if lane == region.rlane:
                    if release > region.read:
                        region.read, region.reader = release, bar
                elif release >= region.read:
                    region.read2, region.reader2 = region.read, region.reader
                    region.read, region.reader, region.rlane = release, bar, lane
                elif release > region.read2:
                    region.read2, region.reader2 = release, bar
                continue
            region.writer, region.written, region.wlane = bar, release, lane
            if region.read:
                region.read = region.read2 = 0
                region.reader = region.reader2 = region.rlane = NO_BAR


class SilentWait(Wait):
    """The same on an in-order lane, where the cause is not recorded."""

    __slots__ = ()

    def look(self, floor: int) -> int:
        """When everything is ready, or `floor`."""
        ready, mine = floor, self.lane
        self.regions = regions = []
        for access in self.reads:
            region = access.fixed or access.find()
            regions.append(region)
            if region.written > ready:
                ready = region.written
            for one in region.others:
                if one.written > ready:
                    ready = one.written
        for access in self.last_reads:
            if access.there_by() > ready:
                ready = max(ready, access.written()[0])
        for access, _, _ in self.changes:
            region = access.fixed or access.find()
            regions.append(region)
            if region.written > ready and region.wlane != mine:
                ready = region.written
            if region.read > ready:
                ready = max(ready, region.read2 if region.rlane == mine else region.read)
            for one in region.others:
                if one.written > ready and one.wlane != mine:
                    ready = one.written
                if one.read > ready:
                    ready = max(ready, one.read2 if one.rlane == mine else one.read)
        return ready
