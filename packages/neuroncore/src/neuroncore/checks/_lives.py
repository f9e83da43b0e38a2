"""When the on-chip tensors of a run are alive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore._caret import Place
from neuroncore.checks._tensors import label
from neuroncore.checks.findings import Report
from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.launch import RUNNING
from neuroncore.memory import Storage, View
from neuroncore.observe import Event, Watcher
from nki_dtypes import DType


@dataclass(slots=True, eq=False)
class Life:
    """An on-chip tensor between instructions, by number.

    It was made after instruction `made`, used by `first` first and by `last` last. What Python
    still holds afterwards is dead: nothing looks at it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    space: Space
    free_bytes: int
    address: tuple[int, int] | None
    place: Place | None
    made: int
    first: int | None = None
    last: int = -1

    def __str__(self) -> str:
        return f"{self.name} {self.shape} {self.dtype}"


class LivesWatcher(Watcher):
    """Collects the lives of one program after the other and has each program judged."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._lives: dict[int, list[Life]] = {}
        """Of the running program of each launch, by its number."""
        self._now = 0

    def judge(self, lives: list[Life], core: NeuronCore) -> None:
        """Report what is wrong with these lives: all that one program used, as they were made."""
        raise NotImplementedError

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

    def _used(self, view: View) -> None:
        notes = view.storage.notes
        life = notes.get(self) if notes else None
        if life is not None:
            life.first = self._now if life.first is None else life.first
            life.last = self._now

    def returned(self, value: Any) -> None:
        launch = RUNNING.get()
        made = [] if launch is None else self._lives.pop(launch.number, [])
        used = [life for life in made if life.first is not None]
        if launch is not None and used:
            self.judge(used, launch.core)
