"""Gather and write back the elements of a view whose offset is in a tile.

Instructions resolve that offset themselves. Code that reads `array` of a view does not: it works on
a tensor of its own, copied by an instruction.
"""

from __future__ import annotations

from typing import Any

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from nki_beta1.execution.accumulation import preserved_marks
from nki_beta1.execution.plans import issue, usage


def gathered(view: View) -> View:
    """`view` itself; of a view that a tile moves, its elements in a tensor of their own.

    Raises AccessError where the tile's number leaves the dimension.
    """
    if view.dynamic is None:
        return view
    own = view.core.allocate(view.shape, view.spec.dtype, view.spec.space)
    _copy(own, view)
    return own


def write_back(view: View, own: View) -> None:
    """Write the tensor that `gathered` returned to its view; marks of written elements stay."""
    if own is not view:
        core: Any = view.core
        with preserved_marks(core, view):
            _copy(view, own)


def _copy(dst: View, src: View) -> None:
    core: Any = dst.core
    record = INSTRUCTIONS["tensor_copy" if dst.spec.space.on_chip else "dma_copy"]
    used = usage(core, record, {})
    issue(core, used, used.ordered({"dst": dst, "src": src}))
