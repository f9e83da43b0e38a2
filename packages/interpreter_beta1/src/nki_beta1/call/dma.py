"""Copies by DMA to an access: all of it, or the elements that a mask names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroncore.errors import UnsupportedError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from nki_beta1.access.access import Access
from nki_beta1.call.apply import not_rectangular
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import run
from nki_beta1.execution.pending_call import merge
from nki_beta1.execution.plans import issue, usage
from nki_beta1.index.mask import Region


def copy_by_dma(
    target: View | Access,
    value: View,
    region: Region | None,
    what: str,
    attrs: Mapping[str, Any] | None = None,
) -> None:
    """Copy `value` to `target`, both cut to the region's rectangle, where the region has elements.

    Raises ShapeError for a mask that excludes elements of rows which a tile names, or of a
    read-modify-write, UnsupportedError for a read-modify-write of an access that is not a view.
    """
    attrs = attrs or {}
    inside = None if region is None else region.inside
    if isinstance(target, View) and inside is None:
        run("dma_copy", {"dst": target, "src": value}, attrs)
        return
    adds = attrs.get("dst_rmw_op") is not None
    if region is not None and inside is not None and (_is_moved(target) or adds):
        raise not_rectangular(what, region)
    if adds:
        raise UnsupportedError("dst_rmw_op on an access that is not a view", operand="dst_rmw_op")
    staged = _staged(target, value, inside, what, attrs)
    if isinstance(target, Access):
        target.write(staged, inside)
    elif inside is not None:
        merge(target, staged, inside)


def _staged(
    target: View | Access, value: View, inside: Any, what: str, attrs: Mapping[str, Any]
) -> View:
    """A tensor of the target's shape, dtype and memory with the elements of `value`."""
    core = core_of(what)
    spec = (target if isinstance(target, View) else target.base).spec
    staged = core.allocate(target.shape, spec.dtype, spec.space)
    used = usage(core, INSTRUCTIONS["dma_copy"], attrs)
    issue(core, used, used.ordered({"dst": staged, "src": value}), mask=inside)
    return staged


def _is_moved(target: View | Access) -> bool:
    return isinstance(target, View) and target.dynamic is not None
