"""Accesses of one buffer that later ones may have to wait for: their bounds side by side."""

from __future__ import annotations

import numpy as np

from tokenplan.kernel.model import Mode

READ, WRITE, ACCUMULATE = (
    list(Mode).index(mode) for mode in (Mode.read, Mode.write, Mode.accumulate)
)
"""Modes go by their numbers in `Mode`."""

Digits = list[tuple[np.ndarray, np.ndarray]]
"""Of each digit: the first value of every access, and one past its last."""

_NONE = np.zeros(0, np.int64)


class Nearby:
    """Accesses go by their number; they are added and found in program order."""

    def __init__(self, modes: np.ndarray, digits: Digits) -> None:
        self.all_modes = modes
        self.modes: list[int] = modes.tolist()
        telling = [(low, high) for low, high in digits if low.max() >= high.min()]
        digits = telling or digits[-1:]  # in the others, any two accesses overlap
        ends = [both for low, high in digits for both in ((low, high), (-high, -low))]
        alike = [modes == mode for mode in (READ, ACCUMULATE) if mode in self.modes]
        ends += [(same, 2 - same) for same in alike]
        self.ends, self.limits = _narrow(np.array(ends, np.int64)).transpose(1, 0, 2)
        """Numbers of each access; two may conflict where the numbers of one are below the other's
        limits.
        """
        self.nowhere = np.iinfo(self.ends.dtype).max
        self.held = np.empty_like(self.ends)
        """Of each access that is held; no limit is above the first number of those dropped."""
        self.number = np.zeros(len(modes), np.int64)
        self.count = 0
        self.at = np.zeros(len(modes), np.int64)
        """Where each access is held."""
        self.live = [0] * len(Mode)
        """How many are held and not dropped, by mode."""

    @property
    def numbers(self) -> np.ndarray:
        """All that are held, those dropped since the last `compress` among them."""
        return self.number[: self.count]

    def add(self, begin: int, end: int) -> None:
        """Holds the accesses from `begin` to before `end`."""
        first, last = self.count, self.count + end - begin
        self.held[:, first:last] = self.ends[:, begin:end]
        self.number[first:last] = range(begin, end)
        self.at[begin:end] = range(first, last)
        for mode in self.modes[begin:end]:
            self.live[mode] += 1
        self.count = last

    def drop(self, numbers: np.ndarray) -> None:
        """None of these, all of them held, is found again."""
        self.held[0, self.at[numbers]] = self.nowhere
        for mode, count in enumerate(np.bincount(self.all_modes[numbers]).tolist()):
            self.live[mode] -= count

    def compress(self) -> None:
        """Makes room where some were dropped."""
        stays = np.flatnonzero(self.held[0, : self.count] != self.nowhere)
        self.count = len(stays)
        self.held[:, : self.count] = self.held[:, stays]
        self.number[: self.count] = self.number[stays]
        self.at[self.numbers] = np.arange(self.count)

    def near(self, begin: int, end: int) -> tuple[np.ndarray, int]:
        """For the accesses from `begin` to before `end`, the accesses that do not commute with one
        of them and may overlap it: as number · (how many they are) + how many of them are behind
        that one, falling; and how many others do not commute.
        """
        live, every = self.live, sum(self.live)
        others = sum([every - (live[m] if m != WRITE else 0) for m in self.modes[begin:end]])
        if not others:
            return _NONE, 0
        held, limits = self.held[:, : self.count], self.limits[:, begin:end]
        if end - begin == 1:
            found = self.number[(held < limits).all(0).nonzero()[0][::-1]]
            return found, others - len(found)
        overlaps = (held[:, None] < limits[:, ::-1, None]).all(0)
        behind, at = np.divmod(overlaps.ravel().nonzero()[0], self.count)
        found = self.number[at] * (end - begin) + behind
        found.sort()
        return found[::-1], others - len(at)


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """The same in four bytes each, which are compared in half the time, where they fit."""
    fits = not numbers.size or np.abs(numbers).max() < np.iinfo(np.int32).max
    return numbers.astype(np.int32) if fits else numbers
