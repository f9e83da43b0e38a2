"""Accesses of one buffer that later ones may have to wait for: their bounds side by side."""

from __future__ import annotations

import numpy as np

from tokenplan.model import Mode
from tokenplan.overwritten import Digits

WRITE = list(Mode).index(Mode.write)
"""Modes go by their numbers in `Mode`."""

_NOWHERE = np.iinfo(np.int32).min
_NONE = np.zeros(0, np.int64)


class Nearby:
    """Accesses go by their number; they are added and found in program order."""

    def __init__(self, modes: np.ndarray, digits: Digits) -> None:
        self.modes: list[int] = modes.tolist()
        telling = [(low, high) for low, high in digits if low.max() >= high.min()]
        digits = telling or digits[-1:]  # the others meet, whichever two accesses it is
        self.ends = [(low.tolist(), high.tolist()) for low, high in digits]
        bounds = [_narrow(bound) for both in digits for bound in both]
        self.all = [np.arange(len(modes)), modes, *bounds]
        self.held = [np.empty_like(column) for column in self.all]
        """Number, mode, and of each digit low and high; those dropped end before they begin."""
        self.count = 0
        self.at = np.zeros(len(modes), np.int64)
        """Where each access is held."""
        self.live = [0] * len(Mode)
        """How many are held and not dropped, by mode."""

    @property
    def numbers(self) -> np.ndarray:
        """All that are held, those dropped since the last `compress` among them."""
        return self.held[0][: self.count]

    def add(self, begin: int, end: int) -> None:
        """Holds the accesses from `begin` to before `end`."""
        first, last = self.count, self.count + end - begin
        for held, column in zip(self.held, self.all, strict=True):
            held[first:last] = column[begin:end]
        self.at[begin:end] = range(first, last)
        for mode in self.modes[begin:end]:
            self.live[mode] += 1
        self.count = last

    def drop(self, numbers: np.ndarray) -> None:
        """None of these, all of them held, is found again."""
        self.held[-1][self.at[numbers]] = _NOWHERE
        for mode, count in enumerate(np.bincount(self.all[1][numbers]).tolist()):
            self.live[mode] -= count

    def compress(self) -> None:
        """Makes room where some were dropped."""
        stays = np.flatnonzero(self.held[-1][: self.count] != _NOWHERE)
        self.count = len(stays)
        for held in self.held:
            held[: self.count] = held[stays]
        self.at[self.numbers] = np.arange(self.count)

    def near(self, n: int) -> tuple[np.ndarray, int]:
        """Those that do not commute with n and may overlap it; how many others do not commute."""
        mode, count = self.modes[n], self.count
        others = sum(self.live) - (self.live[mode] if mode != WRITE else 0)
        if not others:
            return _NONE, 0
        numbers, modes, *bounds = [column[:count] for column in self.held]
        meets = modes != mode if mode != WRITE else np.ones(count, bool)
        for (first, end), low, high in zip(self.ends, bounds[::2], bounds[1::2], strict=True):
            meets &= low < end[n]
            meets &= high > first[n]
        found = numbers[meets.nonzero()[0]]
        return found, others - len(found)


def _narrow(bounds: np.ndarray) -> np.ndarray:
    """The same in four bytes each, which are compared in half the time, where they fit."""
    fits = len(bounds) == 0 or (bounds.min() > _NOWHERE and bounds.max() <= np.iinfo(np.int32).max)
    return bounds.astype(np.int32) if fits else bounds
