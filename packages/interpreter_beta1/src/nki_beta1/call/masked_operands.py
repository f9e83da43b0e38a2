"""Masks of matmuls and DMA copies: the parts of operands that are read and of results written.

stationary (K, M) and moving (K, N) give (M, N). No document says whether the mask of a matmul
refers to the axes of the operands or of the result. The extents decide; a bound on rows where
K = M, or on columns where M = N, is ambiguous and not supported. A copy by DMA under a mask copies
the elements that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroncore.errors import AttributeValueError, ShapeError, UnsupportedError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from nki_beta1.access.access import Access
from nki_beta1.call.apply import apply, cut, not_rectangular, outcome
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import emit, run
from nki_beta1.execution.pending_call import merge
from nki_beta1.execution.plans import issue, usage
from nki_beta1.index.mask import RULE, Mask, Region, as_mask, region_of

Shape = tuple[int, ...]


def masked_matmul(inputs: Mapping[str, Any], given: Mapping[str, Any], mask: Any) -> Any:
    """nc_matmul of `inputs`, under a mask that bounds K, M or N."""
    core = core_of("nc_matmul")
    core.flush()
    regions = None
    if mask is not None and mask is not True:
        regions = _regions(as_mask(mask), inputs["stationary"].shape, inputs["moving"].shape)
    if regions is None:
        return apply("nc_matmul", inputs, given, over="moving")
    found = outcome(core, INSTRUCTIONS["nc_matmul"], inputs, given, "moving", None, None)
    left, right, written = regions
    if left.is_empty or right.is_empty:
        return emit(core, found.used, {}, found.result, _NOTHING)
    parts = {"stationary": cut(inputs["stationary"], left), "moving": cut(inputs["moving"], right)}
    return emit(core, found.used, parts, found.result, written)


_NOTHING = Region((slice(0, 0), slice(0, 0)))


def _regions(mask: Mask, stationary: Shape, moving: Shape) -> tuple[Region, Region, Region] | None:
    """The regions of stationary, moving and result; None for a mask that selects everything."""
    extents = {"K": stationary[0], "M": stationary[-1], "N": moving[-1]}
    kept = {name: slice(0, extent) for name, extent in extents.items()}
    bounds = [bound for term in mask.terms for bound in _bounds(Mask((term,)))]
    for axis, extent, bound in bounds:
        name = _meant(axis, extent, bound, stationary, moving)
        start, stop = max(kept[name].start, bound.start), min(kept[name].stop, bound.stop)
        kept[name] = slice(start, max(start, stop))
    if not bounds:
        return None
    k, m, n = kept.values()
    return Region((k, m)), Region((k, n)), Region((m, n))


def _bounds(mask: Mask) -> list[tuple[int, int, slice]]:
    """(axis, extent, part) for every axis that a predicate bounds. Raises ShapeError."""
    shape = mask.dense().shape or (1,)
    region = region_of(mask, shape)
    if region is None:
        return []
    if region.inside is not None:
        raise not_rectangular("nc_matmul", region)
    found = enumerate(zip(shape, region.rect, strict=True))
    return [(axis, n, part) for axis, (n, part) in found if part != slice(0, n)]


def _meant(axis: int, extent: int, bound: slice, stationary: Shape, moving: Shape) -> str:
    """The dimension that a bound on index axis `axis` is about."""
    if bound.stop <= bound.start:  # nothing is selected in either case
        return "N"
    names, what = _FIRST_AXIS if axis == 0 else _OTHER_AXES
    sizes = {"K": stationary[0], "M": stationary[-1], "N": moving[-1]}
    fitting = [name for name in names if sizes[name] == extent]
    if len(fitting) == 1 and axis < 2 and len(stationary) == len(moving) == 2:
        return fitting[0]
    got = f"stationary {stationary}, moving {moving}"
    if not fitting or axis >= 2:
        raise _unrelated(extent, [sizes[name] for name in names], got)
    raise _ambiguous(extent, what, got)


_FIRST_AXIS, _OTHER_AXES = (("K", "M"), "rows"), (("M", "N"), "columns")
"""The dimensions that a bound on an index axis may be about, and what it bounds."""


def _unrelated(extent: int, sizes: list[int], got: str) -> ShapeError:
    return ShapeError(
        f"a mask over an index axis of extent {extent} fits neither operands nor result",
        expected=f"the index axes of a tile with {' or '.join(map(str, sizes))}",
        got=got,
        operand="mask",
        instruction="nc_matmul",
        rule=RULE,
    )


def _ambiguous(extent: int, what: str, got: str) -> AttributeValueError:
    return AttributeValueError(
        f"a mask on {extent} {what} may refer to the operands or to the result",
        expected="a mask on the loads, or operands cut with slices",
        got=got,
        operand="mask",
        instruction="nc_matmul",
        rule=RULE,
    )


def copy_by_dma(
    target: View | Access,
    value: View,
    region: Region | None,
    what: str,
    attrs: Mapping[str, Any],
) -> None:
    """Copy `value` to `target`, both cut to the region's rectangle, where the region has elements.

    Raises ShapeError for a mask that excludes elements of rows which a tile names, or of a
    read-modify-write, UnsupportedError for a read-modify-write of an access that is not a view.
    """
    inside = None if region is None else region.inside
    if isinstance(target, View) and inside is None:
        run("dma_copy", {"dst": target, "src": value}, attrs)
        return
    adds = attrs.get("dst_rmw_op") is not None
    if inside is not None and (_is_moved(target) or adds):
        raise not_rectangular(what, region)  # type: ignore[arg-type]
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
