"""The elements of a view whose place a tile says: taken out, and put back.

Instructions find that place themselves. What looks at a view's `array` does not: it works on a
tensor of its own, copied by an instruction.
"""

from __future__ import annotations

from typing import Any

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from nki_beta1._sums import unnoted
from nki_beta1._usage import issue, usage


def fetched(view: View) -> View:
    """`view` itself; of a view that a tile moves, its elements in a tensor of their own.

    Raises AccessError where the tile's number leaves the dimension.
    """
    if view.dynamic is None:
        return view
    own = view.core.allocate(view.shape, view.spec.dtype, view.spec.space)
    _copy(own, view)
    return own


def put_back(view: View, own: View) -> None:
    """Write what `fetched` gave to where it came from; who changed elements has noted which."""
    if own is not view:
        core: Any = view.core
        with unnoted(core, view):
            _copy(view, own)


def _copy(dst: View, src: View) -> None:
    core: Any = dst.core
    record = INSTRUCTIONS["tensor_copy" if dst.spec.space.on_chip else "dma_copy"]
    used = usage(core, record, {})
    issue(core, used, used.ordered({"dst": dst, "src": src}))
