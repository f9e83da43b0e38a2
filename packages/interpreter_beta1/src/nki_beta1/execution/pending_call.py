"""An instruction that has been checked and has no destination yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.errors import KernelError, Place, find_place
from neuroncore.memory import View
from nki_beta1.execution.accumulation import note_written
from nki_beta1.execution.core import Core
from nki_beta1.execution.plans import Outcome, Usage, execute, gathered, issue, write_back
from nki_beta1.index.mask import Region


class PendingCall:
    """An instruction that has been checked and has no destination yet.

    `operands` are in the record's order, with a gap for the destination. `region` is the part of
    the destination that its mask selects (axes of the result); `covers`: it writes all of that.
    Without a mask, `ready` is the plan for these operands and a new destination.
    """

    def __init__(
        self, core: Core, found: Outcome, operands: list[Any], region: Region | None = None,
        covers: bool = False,
    ) -> None:  # fmt: skip
        self.core, self.found, self.operands, self.region = core, found, operands, region
        self.used, self.ready = used, ready = found.used, found.ready
        self.shape, self.dtype, self.space = found.result
        self.covers = covers if ready is None else ready.covers
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
