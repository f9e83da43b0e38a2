"""Tracks: the history of accesses to bytes, and the accesses that an instruction waits for.

A track is one tensor (or a register, or all tensors of a memory that have a fixed address). It
holds regions, the distinct sets of bytes that instructions name; regions that share bytes know one
another.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Protocol

from neuroncore.effects import Footprint
from neuroncore.timeline.dependences.region_series import Series
from neuroncore.timeline.dependences.regions import (
    IRREGULAR,
    Form,
    Parts,
    Recent,
    Region,
    share_bytes,
)

PRUNED = 256
"""Regions of a track before regions without waiters are dropped."""


class Family:
    """Regions of one outermost stride and about one size, by where in that stride they begin.

    Two of them can only share bytes if these places are near; so a tensor that is taken apart into
    thousands of columns or rows finds the neighbours of a new one by bisection. `period` 0 means
    contiguous bytes, IRREGULAR everything that is not one footprint.
    """

    __slots__ = ("period", "places", "regions", "width")

    def __init__(self, period: int) -> None:
        self.period = period
        self.places: list[int] = []
        self.regions: list[Region] = []
        """By place."""
        self.width = 0
        """The most bytes that a region covers from its place on, outermost dimension aside."""

    def add(self, region: Region) -> None:
        """Take in a region of this family."""
        if self.period == IRREGULAR:
            self.regions.append(region)
            return
        place = self._place(region)
        at = bisect_right(self.places, place)
        self.places.insert(at, place)
        self.regions.insert(at, region)
        self.width = max(self.width, region.form.span)

    def near(self, region: Region) -> list[Region]:
        """Regions that may share bytes with `region`, which has this family's period."""
        place = self._place(region)
        low, high = place - self.width, place + region.form.span
        found = self._between(low, high)
        if self.period:
            if high - low >= self.period:
                return self.regions
            if low < 0:
                found = found + self._between(low + self.period, self.period)
            if high > self.period:
                found = found + self._between(-1, high - self.period)
        return found

    def keep_behind(self, time: int) -> None:
        """Drop the regions that are released by `time`."""
        self.regions = [region for region in self.regions if region.latest > time]
        if self.period != IRREGULAR:
            self.places = [self._place(region) for region in self.regions]

    def _between(self, low: int, high: int) -> list[Region]:
        return self.regions[bisect_right(self.places, low) : bisect_left(self.places, high)]

    def _place(self, region: Region) -> int:
        return region.offset % self.period if self.period else region.offset


class Remembers(Protocol):
    """An access with a cache of the regions of a track."""

    def forget(self) -> None:
        """Look them up again."""
        ...


class Track:
    """The regions of one tensor, which has `copies` where the compiler rotates buffers.

    `is_shared`: it represents all tensors of a memory whose address is fixed. It is added to
    `overfull` when it has so many regions that some should be dropped.
    """

    __slots__ = (
        "accesses",
        "copies",
        "families",
        "forms",
        "full",
        "is_shared",
        "name",
        "overfull",
        "overlaps_known",
        "recent",
        "regions",
        "series",
        "series_until",
        "slot",
        "takes_series",
        "turns",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        copies: int = 1,
        is_shared: bool = False,
        overfull: list[Track] | None = None,
    ) -> None:
        self.name, self.copies, self.is_shared = name, copies, is_shared
        self.overfull, self.full = overfull, PRUNED
        self.accesses: list[Remembers] = []
        """They remember regions."""
        self.turns = self.slot = 0
        self.regions: dict[tuple[int, Form, int], Region] = {}
        """By copy, form and offset."""
        self.recent = Recent()
        self.families: dict[int, dict[tuple[int, int], Family]] = {}
        """Copy → (outermost stride, size) → regions."""
        self.forms: dict[tuple, Form] = {}
        self.overlaps_known: dict[tuple[Form, Form, int], bool] = {}
        """Whether two forms share bytes, the second so many bytes behind the first."""
        self.series: dict[int, list[Series]] = {}
        self.series_until = 0
        """When the last region of all of them is released."""
        self.takes_series = not is_shared

    def rotate(self, by: int) -> None:
        """The tensor is allocated anew: the next copy, `slot`, is that of the moment."""
        self.turns += by
        self.slot = self.turns % self.copies

    def add_series(self, made: Series, before: int) -> None:
        """Regions that periods of a loop left behind; nothing starts before `before` any more."""
        for slot, every in self.series.items():
            for series in every:
                if series.latest <= before:
                    series.drop()
            self.series[slot] = [series for series in every if series.latest > before]
        self.series.setdefault(made.slot, []).append(made)
        self.series_until = max(self.series_until, made.latest)
        for family in self.families.get(made.slot, {}).values():
            for region in family.regions:
                made.link(region)

    def has_series(self, after: int) -> bool:
        """Whether an instruction may still wait, after `after`, for the regions of a series."""
        return self.series_until > after

    def region(self, slot: int, parts: Parts) -> Region:
        """The region of these bytes in copy `slot`."""
        return self.region_of(slot, self.form(parts), parts)

    def region_of(self, slot: int, form: Form, parts: Parts) -> Region:
        """The same, where its form is known."""
        key = (slot, form, parts[0].offset if parts else 0)
        found = self.regions.get(key)
        if found is None:
            if len(self.regions) == self.full and self.overfull is not None:
                self.overfull.append(self)
            found = self.regions[key] = Region(self.recent, form, parts, slot)
            self._link(found)
        return found

    def region_at(self, slot: int, form: Form, at_zero: Footprint | None, offset: int) -> Region:
        """The same, of bytes of that form `offset` behind `at_zero` (None: all of the tensor)."""
        if at_zero is None:
            return self.region_of(slot, form, ())
        found = self.regions.get((slot, form, at_zero.offset + offset))
        return found or self.region_of(slot, form, (at_zero.moved(offset),))

    def form(self, parts: Parts) -> Form:
        """Shape and strides of these bytes, wherever they are."""
        first = parts[0].offset if parts else 0
        key = tuple([(p.offset - first, p.shape, p.strides, p.itemsize) for p in parts])
        found = self.forms.get(key)
        if found is None:
            found = self.forms[key] = Form(parts)
        return found

    def forget(self, before: int) -> None:
        """Drop the regions that were released by this time: nothing starts before it any more.

        Only between instructions: one that has looked at a region must find it again.
        """
        kept = {key: region for key, region in self.regions.items() if region.latest > before}
        self.full = 2 * len(kept) + PRUNED
        self.regions = kept
        self.recent.drop(before)
        self.overlaps_known.clear()
        for access in self.accesses:
            access.forget()
        for every in self.series.values():
            for series in every:
                series.keep_behind(before)
        for families in self.families.values():
            for family in families.values():
                family.keep_behind(before)
        for region in kept.values():
            if region.others:
                region.others = [other for other in region.others if other.latest > before]

    def close(self) -> None:
        """Drop all regions and the links between them."""
        for region in self.regions.values():
            region.others.clear()
        self.regions.clear()
        self.recent.clear()
        self.families.clear()
        self.series.clear()
        for access in self.accesses:
            access.forget()
        self.accesses.clear()

    def _link(self, made: Region) -> None:
        """Link a new region with the regions that share bytes with it."""
        form, slot = made.form, made.slot
        made.others = self._sharing(made)
        for other in made.others:
            other.others.append(made)
        for series in self.series.get(slot, ()):
            series.link(made)
        families, key = self.families.setdefault(slot, {}), (form.period, form.size)
        family = families.get(key)
        if family is None:
            family = families[key] = Family(form.period)
        family.add(made)

    def _sharing(self, made: Region) -> list[Region]:
        """The regions that share bytes with it."""
        form, parts, overlaps_known = made.form, made.parts, self.overlaps_known
        period, offset = form.period, made.offset
        families = self.families.get(made.slot, {})
        first, last = made.first, made.last
        found: list[Region] = []
        for (other_period, _), family in families.items():
            near = family.near(made) if period == other_period >= 0 else family.regions
            for other in near:
                if other.first < last and first < other.last:
                    key = form, other.form, other.offset - offset
                    overlap = overlaps_known.get(key)
                    if overlap is None:
                        overlap = overlaps_known[key] = share_bytes(parts, other.parts)
                    if overlap:
                        found.append(other)
        return found
