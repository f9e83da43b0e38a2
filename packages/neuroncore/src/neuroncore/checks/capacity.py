"""`capacity`: peak occupancy of SBUF and PSUM.

A tensor is held from where it is allocated to its last use. SBUF counts bytes per partition against
what the generation leaves to kernels, PSUM whole banks. Tensors with an explicit address count
where they lie, once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from neuroncore.checks._check import Check
from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import label
from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event, Watcher
from neuroncore.memory import Storage, StridedView, View
from neuroncore.memory.occupancy import covered, over_capacity, units_between, units_held
from neuroncore.source_location import Place
from neuroncore.targets import Target
from nki_dtypes import DType


@dataclass(slots=True, eq=False)
class Life:
    """An on-chip tensor between instructions, by number.

    It was made after instruction `made`, used by `first` first and by `last` last. What Python
    still holds afterwards is dead: nothing reads it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    space: MemorySpace
    free_bytes: int
    address: tuple[int, int] | None
    place: Place | None
    made: int
    first: int | None = None
    last: int = -1

    def __str__(self) -> str:
        return f"{self.name} {self.shape} {self.dtype}"


class Capacity(Watcher):
    """Adds up what is alive in each program and reports a memory that is too small."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._lives: dict[int, list[Life]] = {}
        """Of the running program of each launch, by its number."""
        self._now = 0

    def allocated(self, storage: Storage) -> None:
        launch = RUNNING.get()
        if launch is None or not storage.space.on_chip:
            return
        free_bytes = storage.free_elems * storage.dtype.itemsize
        life = Life(
            label(storage), storage.shape, storage.dtype, storage.space, free_bytes,
            storage.address, storage.place, self._now,
        )  # fmt: skip
        assert storage.notes is not None
        storage.notes[self] = life
        self._lives.setdefault(launch.number, []).append(life)

    def will(self, event: Event) -> None:
        self._now += 1
        for view in event.views.values():
            if isinstance(view, View):
                self._used(view)
                if view.dynamic is not None:
                    self._used(view.dynamic.index)

    def moved(
        self,
        dst: View,
        src: View | None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        self._now += 1
        for view in (dst, src):
            if view is not None:
                self._used(view)

    def _used(self, view: StridedView) -> None:
        notes = view.storage.notes
        life = notes.get(self) if notes else None
        if life is not None:
            life.first = self._now if life.first is None else life.first
            life.last = self._now

    def returned(self, value: Any) -> None:
        launch = RUNNING.get()
        made = [] if launch is None else self._lives.pop(launch.number, [])
        used = [life for life in made if life.first is not None]
        for space in (MemorySpace.sbuf, MemorySpace.psum):
            mine = [life for life in used if life.space is space]
            if launch is not None and mine:
                self._judge(space, mine, launch.core)

    def _judge(self, space: MemorySpace, lives: list[Life], core: NeuronCore) -> None:
        held, at, alive = _peak(space, lives, core.target)
        holders = _holders(space, alive, core.target)
        usable = core.free_bytes_of(MemorySpace.sbuf)
        violation = over_capacity(space, core.target, held, usable, holders)
        if violation is not None:
            self.report.add(violation.finding("capacity", at.place))


def _peak(space: MemorySpace, lives: list[Life], target: Target) -> tuple[int, Life, list[Life]]:
    """The most that is held at once, the allocation that reaches it, and who is alive then.

    `lives` are in the order in which they were made.
    """
    account = _Account(space, target)
    ends: list[tuple[int, int]] = []
    most, fullest = -1, 0
    for number, life in enumerate(lives):
        while ends and ends[0][0] <= life.made:
            account.add(lives[heappop(ends)[1]], -1)
        account.add(life, 1)
        heappush(ends, (life.last, number))
        if account.held > most:
            most, fullest = account.held, number
    at = lives[fullest]
    return most, at, [life for life in lives[: fullest + 1] if life.last > at.made]


class _Account:
    """The present occupancy."""

    def __init__(self, space: MemorySpace, target: Target) -> None:
        self.space, self.target = space, target
        self._floating = 0
        self._spans: Counter[tuple[int, int]] = Counter()
        self._placed = 0

    @property
    def held(self) -> int:
        return self._floating + self._placed

    def add(self, life: Life, sign: int) -> None:
        """A tensor comes (1) or goes (-1)."""
        if life.address is None:
            self._floating += sign * units_held(self.space, self.target, life.free_bytes)
            return
        span = units_between(self.space, self.target, life.address[1], life.free_bytes)
        self._spans[span] += sign
        self._placed = covered(span for span, count in self._spans.items() if count)


def _holders(space: MemorySpace, alive: list[Life], target: Target) -> list[str]:
    """Tensors by occupancy, the largest first; tensors of one line together."""
    found: dict[tuple[str, Place | None], list[int]] = {}
    for life in alive:
        size = units_held(space, target, life.free_bytes)
        found.setdefault((str(life), life.place), []).append(size)
    ordered = sorted(found.items(), key=lambda item: -sum(item[1]))
    return [
        f"{name}: {sizes[0]}"
        + (f" x {len(sizes)}" if len(sizes) > 1 else "")
        + (f" ({place})" if place else "")
        for (name, place), sizes in ordered
    ]


CHECK = Check("capacity", "what is alive at any moment fits SBUF and the banks of PSUM", Capacity)
