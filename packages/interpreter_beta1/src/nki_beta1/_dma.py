"""Copies by DMA to an access: all of it, or the elements that a mask names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroncore.errors import UnsupportedError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from nki_beta1._access import Access
from nki_beta1._apply import core_of, not_rectangular, run
from nki_beta1._emit import merge
from nki_beta1._mask import Region
from nki_beta1._usage import issue, usage


def copy_by_dma(
    target: View | Access,
    value: View,
    region: Region | None,
    what: str,
    attrs: Mapping[str, Any] | None = None,
) -> None:
    """Copy `value` to `target`, both cut to the region's rectangle, where the region has elements.

    Raises ShapeError for a mask that leaves out elements of rows which a tile names, or of a
    read-modify-write; UnsupportedError for one of those on an access that is no view.
    """
    attrs = attrs or {}
    adds = attrs.get("dst_rmw_op") is not None
    inside = None if region is None else region.inside
    if isinstance(target, View) and inside is None:
        run("dma_copy", {"dst": target, "src": value}, attrs)
        return
    if region is not None and inside is not None and (_is_moved(target) or adds):
        raise not_rectangular(what, region)
    if adds:
        raise UnsupportedError("dst_rmw_op on an access that is no view", operand="dst_rmw_op")
    core = core_of(what)
    spec = (target if isinstance(target, View) else target.base).spec
    staged = core.allocate(target.shape, spec.dtype, spec.space)
    used = usage(core, INSTRUCTIONS["dma_copy"], attrs)
    issue(core, used, used.ordered({"dst": staged, "src": value}), mask=inside)
    if isinstance(target, View):
        assert inside is not None
        merge(target, staged, inside)
    else:
        target.write(staged, inside)


def _is_moved(target: View | Access) -> bool:
    return isinstance(target, View) and target.dynamic is not None
