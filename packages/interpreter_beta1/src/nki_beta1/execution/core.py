"""The core of a 0.1 kernel: its pending instruction, and the dependents of its storages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol
from weakref import ref

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import Place
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import RUNNING, running
from neuroncore.memory import Storage, View, WrittenFlags
from neuroncore.options import Options
from neuroncore.spec import Spec
from nki_beta1.index.mask import Region
from nki_beta1.index.views import plain
from nki_beta1.loops.ranges import Iteration
from nki_dtypes import DType

_HBM = MemorySpace.hbm

Marks = WrittenFlags | bool
"""Flags beside the elements of a storage, or one for all."""


class Dependent(Protocol):
    """A value that depends on the present content of a storage."""

    def detach(self) -> None:
        """The content is about to change."""


class Result(Dependent, Protocol):
    """The tensor that an instruction returns."""

    region: Region | None
    storage: Storage

    def realize(self) -> None:
        """Execute the instruction if it is pending."""


class Core(NeuronCore):
    """A core that runs a 0.1 kernel, with the instruction that has no destination yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pending: Result | None = None
        self.dependents: dict[int, list[ref[Dependent]]] = {}
        """Per storage (by id): what relies on what it holds now."""
        self.masked: dict[int, list[ref[Result]]] = {}
        """Per storage (by id): the values of which a mask let only a region be written."""
        self.accumulating: Options = replace(self.options, accumulate_on_unwritten="add")
        """For `+=` into initialised PSUM, which adds to the present content."""
        self.initialised: dict[int, Marks] = {}
        """Per PSUM storage (by id): the elements that something other than TensorE has written."""
        self.placed: dict[Any, tuple[int, int]] = {}
        """The address that a statement gave a block first (direct allocation)."""
        self.reduced: dict[int, np.ndarray] = {}
        """Per storage (by id): the elements that an nl.loop_reduce has written."""
        self.reductions: dict[Any, Any] = {}
        """Per name in a frame (by id): the last nl.loop_reduce into it."""
        self.iterations: list[Iteration] = []
        """The loops that run and whose body 0.1 ran once, outermost first."""
        self._fitting: set[tuple[Any, ...]] = set()
        self.writable: list[np.ndarray] = []
        """The memory of the parameters that the kernel may write."""
        self.of_read_only_arrays: set[int] = set()
        """The storages (by id) of writable parameters whose array is read-only."""

    def allocate(self, *args: Any, **kwargs: Any) -> View:
        """As NeuronCore.allocate; a new storage is not initialised."""
        view: View = plain(NeuronCore.allocate(self, *args, **kwargs))
        if self.initialised or self.reduced or self.masked:
            self._is_new(view.storage)
        return view

    def _is_new(self, storage: Storage) -> None:
        number = id(storage)
        self.initialised.pop(number, None)
        self.reduced.pop(number, None)
        self.masked.pop(number, None)

    def equip(self, tile: View, spec: Spec, size: int, place: Place | None) -> None:
        """Give a tile new memory, all of which the next instruction writes."""
        flat = self.pool.elements(size, spec.storage)
        tile.array, tile.spec, tile.dynamic = flat.reshape(spec.shape), spec, None
        tile.storage = storage = Storage(flat, spec.shape, spec.dtype, spec.space)
        if self.initialised or self.reduced or self.masked:
            self._is_new(storage)
        if self.watchers:
            storage.fresh = True  # as they know it: until the instruction has run
            self.announce(storage, place)
            storage.fresh = False

    def adopt(self, array: np.ndarray, space: MemorySpace = _HBM, mutable: bool = True,
              *more: Any, **named: Any) -> View:  # fmt: skip
        """As NeuronCore.adopt; parameters are in `MemorySpace.hbm`."""
        if mutable and space is _HBM:
            self.writable.append(array)
        return plain(NeuronCore.adopt(self, array, space, mutable, *more, **named))

    def constant(self, *args: Any, **kwargs: Any) -> View:
        """As NeuronCore.constant."""
        return plain(NeuronCore.constant(self, *args, **kwargs))

    def flush(self) -> None:
        """Execute the pending instruction into a tile of its own."""
        if self.pending is not None:
            self.pending.realize()

    def add_dependent(self, storage: Storage, dependents: Dependent) -> None:
        """Detach `dependents`, such as a tile, before the content of `storage` changes."""
        self.dependents.setdefault(id(storage), []).append(ref(dependents))

    def copy_dependents(self, storage: Storage, copy: Storage) -> None:
        """Dependents of `storage` may depend on a tile that now has the storage `copy`."""
        dependents = self.dependents.get(id(storage))
        if dependents:
            self.dependents[id(copy)] = list(dependents)

    def about_to_write(self, storage: Storage) -> bool:
        """Detach the dependents of `storage`; whether it had any."""
        dependents = self.dependents.pop(id(storage), ())
        for dependent in dependents:
            tile = dependent()
            if tile is not None:
                tile.detach()
        for masked in self.masked.pop(id(storage), ()) if self.masked else ():
            tile = masked()
            if tile is not None and tile.storage is storage:
                tile.region = None
        return bool(dependents)

    def check_fits(self, shape: tuple[int, ...], dtype: DType, space: MemorySpace) -> None:
        """Raise the errors of `allocate` for such a tile."""
        if space.on_chip and (shape, dtype, space) not in self._fitting:
            self._fits(shape, dtype, space, None)
            self._fitting.add((shape, dtype, space))


def core_of(function: str) -> Core:
    """The core of the running kernel; raises LaunchError outside one."""
    launch = RUNNING.get()
    return (launch or running(f"nl.{function}")).core  # type: ignore[return-value]
