"""The regions of a track that were touched lately, so that one need not look at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroncore.timeline.regions import NOBODY, Region

if TYPE_CHECKING:
    from collections.abc import Callable


class Recent:
    """Regions that were touched; those that are long let go are put aside until asked for."""

    __slots__ = ("aside", "aside_toucher", "aside_until", "regions")

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.aside: dict[Region, None] = {}
        """Some of them may have been touched again, and are among `regions` too."""
        self.aside_until, self.aside_toucher = 0, NOBODY
        """The latest that one of these let go when it was put aside, and its toucher then."""

    def add(self, region: Region) -> None:
        """It is touched, and was not among them."""
        region.is_recent = True
        self.regions.append(region)

    def held(self, after: int, bar: int) -> list[Region]:
        """Those that somebody may wait for behind this time; of the others those are put aside
        that no bar from `bar` on touched.
        """
        if after < self.aside_until:
            self._take_back()
        found, kept = [], []
        for region in self.regions:
            if region.written > after or region.read > after:
                found.append(region)
                kept.append(region)
            elif region.toucher >= bar:
                kept.append(region)
            else:
                region.is_recent = False
                self.aside[region] = None
                self.aside_until = max(self.aside_until, region.latest)
                self.aside_toucher = max(self.aside_toucher, region.toucher)
        self.regions = kept
        return found

    def touched_since(self, bar: int) -> list[Region]:
        """Those that bar `bar` or one behind it touched."""
        if self.aside_toucher >= bar:
            self._take_back()
        return [region for region in self.regions if region.toucher >= bar]

    def keep(self, is_kept: Callable[[Region], bool]) -> None:
        """Only these."""
        self.regions = [region for region in self.regions if is_kept(region)]
        self.aside = {region: None for region in self.aside if is_kept(region)}

    def _take_back(self) -> None:
        for region in self.aside:
            if not region.is_recent:
                self.add(region)
        self.aside.clear()
        self.aside_until, self.aside_toucher = 0, NOBODY
