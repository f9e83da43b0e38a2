"""From a call without a destination to an instruction of the machine with one.

0.1 functions return their result; the machine's instructions write where they are told. An
instruction is therefore checked when it is called and executed when its destination is known: the
tensor it is assigned to at once (`t[i, j] = nl.exp(x)`, `acc += nisa.nc_matmul(a, b)`), or, as soon
as anything else happens, a fresh tile. At most one instruction waits, and everything that could
tell the difference lets it run first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

import numpy as np

from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.errors import KernelError, Place, find_place
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import Storage, View
from neuroncore.options import Options
from neuroncore.spec import Spec, make_spec, row_major
from nki_beta1._fetched import fetched, put_back
from nki_beta1._mask import Region
from nki_beta1._moved import find_places
from nki_beta1._operands import kinds_of
from nki_beta1._part import plain
from nki_beta1._running import Turn
from nki_beta1._sums import Marks, note_written
from nki_beta1._usage import (
    Prepared,
    Usage,
    detach_outputs,
    execute,
    issue,
    prepared,
    remember,
)
from nki_dtypes import DType

if TYPE_CHECKING:
    from nki_beta1._tile import Tile


_HBM = Space.hbm
_MATMUL = INSTRUCTIONS["nc_matmul"]


class Relying(Protocol):
    """What stands for the content of a storage as it is."""

    def detach(self) -> None:
        """The content is about to change."""


class Core(NeuronCore):
    """A core running a 0.1 kernel: it knows the instruction that still waits for a destination."""

    __slots__ = (
        "_fitting",
        "accumulating",
        "initialised",
        "lent",
        "masked",
        "of_read_only_arrays",
        "placed",
        "reduced",
        "reductions",
        "turns",
        "waiting",
        "writable",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: Tile | None = None
        self.lent: dict[int, list[ref[Relying]]] = {}
        """Per storage (by id): what relies on what it holds now."""
        self.masked: dict[int, list[ref[Tile]]] = {}
        """Per storage (by id): the values of which a mask let only a region be written."""
        self.accumulating: Options = replace(self.options, accumulate_on_unwritten="add")
        """For `+=` into initialised PSUM, which adds to whatever lies there."""
        self.initialised: dict[int, Marks] = {}
        """Per PSUM storage (by id): the elements that something other than TensorE has written."""
        self.placed: dict[Any, tuple[int, int]] = {}
        """The address that a statement gave a block first (direct allocation)."""
        self.reduced: dict[int, np.ndarray] = {}
        """Per storage (by id): the elements that an nl.loop_reduce has written."""
        self.reductions: dict[Any, Any] = {}
        """Per name in a frame (by id): the last nl.loop_reduce into it."""
        self.turns: list[Turn] = []
        """The loops that run and whose body 0.1 ran once, outermost first."""
        self._fitting: set[tuple[Any, ...]] = set()
        self.writable: list[np.ndarray] = []
        """The memory of the parameters that the kernel may write."""
        self.of_read_only_arrays: set[int] = set()
        """The storages (by id) of those that it may write, but for the caller's array."""

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

    def equip(self, tile: Tile, spec: Spec, size: int, place: Place | None) -> None:
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

    def adopt(self, array: np.ndarray, space: Space = _HBM, mutable: bool = True,
              *more: Any, **named: Any) -> View:  # fmt: skip
        """As NeuronCore.adopt; parameters stand in `Space.hbm`."""
        if mutable and space is _HBM:
            self.writable.append(array)
        return plain(NeuronCore.adopt(self, array, space, mutable, *more, **named))

    def constant(self, *args: Any, **kwargs: Any) -> View:
        """As NeuronCore.constant."""
        return plain(NeuronCore.constant(self, *args, **kwargs))

    def flush(self) -> None:
        """Let the waiting instruction run into a tile of its own."""
        if self.waiting is not None:
            self.waiting.realize()

    def lend(self, storage: Storage, relying: Relying) -> None:
        """`relying`, such as a tile, relies on what `storage` holds now: told before it changes."""
        self.lent.setdefault(id(storage), []).append(ref(relying))

    def passed_on(self, storage: Storage, copy: Storage) -> None:
        """What relies on `storage` may rely on a tile that has moved to `copy`."""
        relying = self.lent.get(id(storage))
        if relying:
            self.lent[id(copy)] = list(relying)

    def about_to_write(self, storage: Storage) -> bool:
        """Let what relies on `storage` take copies; whether anything did."""
        relying = self.lent.pop(id(storage), ())
        for borrower in relying:
            tile = borrower()
            if tile is not None:
                tile.detach()
        for masked in self.masked.pop(id(storage), ()) if self.masked else ():
            tile = masked()
            if tile is not None and tile.storage is storage:
                tile.region = None
        return bool(relying)

    def check_fits(self, shape: tuple[int, ...], dtype: DType, space: Space) -> None:
        """Raise what `allocate` would raise for such a tile."""
        if space.on_chip and (shape, dtype, space) not in self._fitting:
            self._fits(shape, dtype, space, None)
            self._fitting.add((shape, dtype, space))


class Waiting:
    """An instruction that has been checked and has no destination yet.

    `operands` stand in the record's order, with a gap for the destination. `region` is the part of
    the destination that its mask lets it write (axes of the result); `covers` says that it writes
    all of that. `ready` is the verdict on these operands and a destination of its own, if there is
    no mask, `over` the shape that one would be about.
    """

    __slots__ = (
        "core",
        "covers",
        "dtype",
        "operands",
        "over",
        "place",
        "ready",
        "region",
        "shape",
        "space",
        "used",
    )

    def __init__(
        self,
        core: Core,
        used: Usage,
        operands: list[Any],
        result: tuple[tuple[int, ...], DType, Space],
        region: Region | None,
        covers: bool = False,
        ready: Prepared | None = None,
        over: tuple[int, ...] | None = None,
    ) -> None:
        self.covers, self.ready, self.over = covers, ready, over
        self.core, self.used, self.operands = core, used, operands
        self.shape, self.dtype, self.space = result
        self.region = region
        self.place: Place | None = find_place() if core.watchers or used.looks_at_values else None

    @property
    def inputs(self) -> list[View]:
        """The tensors among the operands."""
        return [v for v in self.operands if isinstance(v, View)]

    def into(self, dst: View, **changes: Any) -> None:
        """Execute into `dst`, a view of the full result shape; `changes` are attributes."""
        region = self.region
        used = self.used.but(self.core, **changes) if changes else self.used
        if region is None:
            self._issue(dst, used)
            return
        if region.is_empty:
            dst.settle()
            return
        if region.inside is None:
            if dst.spec.fresh and self.covers:
                dst.settle_outside(region.rect)
            self._issue(region.of(dst), used)
            return
        part = region.of(dst)
        whole = self.core.allocate(part.shape, part.spec.dtype, part.spec.space)
        self._issue(whole, used, region.inside)
        merge(part, whole, region.inside)

    def into_new(self, tile: Tile) -> None:
        """Execute into new memory, which becomes that of `tile`: all of it."""
        core, ready, operands = self.core, self.ready, self.operands
        assert ready is not None
        core.equip(tile, ready.result, ready.size, self.place)
        operands[self.used.output] = tile
        try:
            execute(core, self.used, ready, operands, ready.more_written, self.place)
        except KernelError as wrong:
            wrong.place = self.place or wrong.place
            raise

    def into_own(self, dst: View) -> None:
        """Execute into `dst`, a new tensor of the result's shape, dtype and memory."""
        if self.ready is None:
            self.into(dst)
            return
        used, operands = self.used, self.operands
        operands[used.output] = dst
        try:
            execute(self.core, used, self.ready, operands, self.ready.written, self.place)
        except KernelError as wrong:
            wrong.place = self.place or wrong.place
            raise

    def _issue(self, dst: View, used: Usage, mask: np.ndarray | None = None) -> None:
        operands = self.operands.copy()
        operands[used.output] = dst
        try:
            issue(self.core, used, operands, self.place, mask)
        except KernelError as wrong:
            wrong.place = self.place or wrong.place  # the call's, not that of what came after it
            raise


def merge(dst: View, values: View, inside: np.ndarray) -> None:
    """Take the elements of `values` that a mask names; the others of dst stay as they are."""
    core: Any = dst.core
    core.about_to_write(dst.storage)
    whole = fetched(dst)
    whole.settle()
    note_written(core, dst, inside)
    np.copyto(whole.array, fetched(values).array, where=inside)
    core.moved(whole, values, inside, inside)
    put_back(dst, whole)


def emit(
    core: Core,
    used: Usage,
    inputs: Mapping[str, Any],
    *,
    result: tuple[tuple[int, ...], DType, Space],
    region: Region | None = None,
) -> Tile:
    """The tile that an instruction gives; it is checked now, executed when it has a destination.

    `inputs` are already cut to the region's rectangle.
    """
    core.flush()
    shape, dtype, space = result
    core.check_fits(shape, dtype, space)
    operands = used.ordered(inputs)
    covers = False
    if region is None or not region.is_empty:
        part = (shape if region is None else region.shape, dtype, space)
        covers = check(core, used, operands, part).covers
    return wait(Waiting(core, used, operands, result, region, covers))


def wait(waiting: Waiting) -> Tile:
    """The tile that a checked instruction gives."""
    core, operands = waiting.core, waiting.operands
    tile: Any = _new(core.view_class)
    tile.core = core
    tile.wait(waiting)
    core.waiting = tile
    more = waiting.used.more_outputs
    second_output = more and any(operands[i] is not None for i in more)
    is_checked = core.options.activation_range == "refuse" and waiting.used.record is not _MATMUL
    if second_output or is_checked:
        core.flush()
    return tile


_new = View.__new__


def check(
    core: Core, used: Usage, operands: list[Any], result: tuple[tuple[int, ...], DType, Space]
) -> Prepared:
    """Find what is wrong with the call where the kernel makes it."""
    detach_outputs(used, operands)
    kinds = kinds_of(core, operands)
    key = (check, used, result, *kinds)
    found = core.plans.get(key)
    if found is None:
        shape, dtype, space = result
        kinds[used.output] = make_spec(shape, row_major(shape), dtype, space, core.stored_as(dtype))
        found = prepared(core, used, kinds, operands)
        remember(core, key, found)
    if found.moving:
        find_places(used.record.name, operands, found.moving, used.attrs)
    return found
