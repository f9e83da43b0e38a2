"""Loads that copy nothing: a tile that borrows the memory of a kernel parameter.

A parameter that the kernel may not write stays as it is while the kernel runs, so a load of
elements that lie there one after the other is a matter of names. The tile takes a copy of its own
(`Tile.detach`) before an instruction writes to it and before anything but an instruction looks at a
part of it; NumPy refuses what would forget that. Watched kernels copy: their instructions count.
Python code in the kernel that writes to the caller's array is no part of NKI: when loads see that,
is not defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import Storage, View

if TYPE_CHECKING:
    from nki_beta1._emit import Waiting
    from nki_beta1._tile import Tile

_SOURCE = list(INSTRUCTIONS["dma_copy"].operands).index("src")


def borrows(tile: Tile, waiting: Waiting) -> bool:
    """Let `tile`, the result of an unwatched load, borrow what it loads, if nothing can tell."""
    assert waiting.ready is not None
    source: View = waiting.operands[_SOURCE]
    spec, array = source.spec, source.array
    if spec.mutable or spec.dtype is not waiting.dtype or spec.shape != waiting.shape:
        return False
    if not array.flags.c_contiguous or _may_change(source):
        return False
    held = array.view()
    held.flags.writeable = False
    tile.array, tile.spec, tile.dynamic = held, waiting.ready.result, None
    tile.is_lent = True
    tile.storage = Storage(held.reshape(-1), spec.shape, spec.dtype, waiting.space)
    return True


def _may_change(source: View) -> bool:
    """Whether a parameter that the kernel may write shares memory with `source`."""
    core = source.core
    return any(np.may_share_memory(source.array, memory) for memory in core.writable)  # type: ignore[attr-defined]
