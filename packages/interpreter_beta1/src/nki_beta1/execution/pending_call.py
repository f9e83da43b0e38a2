"""An instruction that has been checked and has no destination yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import KernelError, Place, find_place
from neuroncore.memory import View
from nki_beta1.execution.accumulation import note_written
from nki_beta1.execution.core import Core
from nki_beta1.execution.gathering import gathered, write_back
from nki_beta1.execution.plans import Prepared, Usage, execute, issue
from nki_beta1.index.mask import Region
from nki_dtypes import DType


class PendingCall:
    """An instruction that has been checked and has no destination yet.

    `operands` are in the record's order, with a gap for the destination. `region` is the part of
    the destination that its mask selects (axes of the result); `covers`: it writes all of that.
    Without a mask, `ready` is the plan for these operands and a new destination, and
    `over` the shape that a mask would refer to.
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
        result: tuple[tuple[int, ...], DType, MemorySpace],
        region: Region | None,
        covers: bool = False,
        ready: Prepared | None = None,
        over: tuple[int, ...] | None = None,
    ) -> None:
        self.covers, self.ready, self.over = covers, ready, over
        self.core, self.used, self.operands = core, used, operands
        self.shape, self.dtype, self.space = result
        self.region = region
        self.place: Place | None = find_place() if core.watchers or used.depends_on_values else None

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
            dst.initialize()
            return
        if region.inside is None:
            if dst.spec.fresh and self.covers:
                dst.initialize_outside(region.rect)
            self._issue(region.of(dst), used)
            return
        part = region.of(dst)
        whole = self.core.allocate(part.shape, part.spec.dtype, part.spec.space)
        self._issue(whole, used, region.inside)
        merge(part, whole, region.inside)

    def into_new(self, tile: View) -> None:
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
    whole = gathered(dst)
    whole.initialize()
    note_written(core, dst, inside)
    np.copyto(whole.array, gathered(values).array, where=inside)
    core.moved(whole, values, inside, inside)
    write_back(dst, whole)
