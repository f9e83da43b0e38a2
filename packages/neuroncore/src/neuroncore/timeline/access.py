"""An access of a program as the timeline sees it: a track, and which region at which iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from neuroncore.effects import Footprint, footprint
from neuroncore.timeline.regions import Parts, Region
from neuroncore.timeline.tracks import Track


class TrackedAccess:
    """`find` gives the region for the current values of the loop variables.

    `offset` bytes and `terms` (slot of a loop variable, bytes a step) move `at_zero`; `place` says
    where in the track the bytes lie, if it is not the tensor's own. Without `at_zero` it is all of
    the track. `fixed` is the region of an access that never moves, once it is known. Nobody waits
    for what reads through it if `is_last`: the bytes are not written any more.
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
        """When all of such a track is there, once somebody has asked."""
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
        """Nothing is played any more: let go of the regions, and of itself."""
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
