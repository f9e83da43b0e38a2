"""The part of a view that a call reads or writes: what its mask leaves, what was filled before."""

from __future__ import annotations

from nki_migrate.facts.values import Mask, Part, Sym, Tensor, is_none
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.source_text import as_number
from nki_migrate.rewriting.inference.observations import seen_same
from nki_migrate.rewriting.views.masks import Region, guards_of, region_of
from nki_migrate.rewriting.views.tensors import covers, rank_of
from nki_migrate.rewriting.views.view_text import Limits


def mask_region(ctx: Context, site: CallSite, shape: tuple[Sym, ...] | None) -> Region | None:
    """The region that `mask=` leaves; None without a mask."""
    node = site.arguments.get("mask")
    if node is None:
        return None
    value = ctx.masks.get(node) or ctx.value_of(node)
    if is_none(value):
        ctx.report(Reason.NO_MASK, node, "`mask=None` goes")
        return None
    if not isinstance(value, Mask):
        why = "arrives as a parameter" if as_number(ctx, value) else "is not understood"
        detail = value.text if isinstance(value, Unsupported) else f"the mask {why}"
        raise Cannot(Reason.OTHER_MASK, detail, node)
    if shape is None:
        raise Cannot(Reason.RECTANGULAR_MASK, "a mask on an access whose shape is not known", node)
    return region_of(
        ctx, value, shape, node, lambda a, b: ctx.facts.same(a, b) or seen_same(ctx, a, b)
    )


def valid_limits(ctx: Context, tensor: Tensor) -> dict[int, Part]:
    """Axes of a view along which only part of the tile was ever filled (trap T5)."""
    valid = tensor.storage.valid
    if not valid:
        return {}
    if tensor.dims is None:
        return dict(valid)
    full, found = tensor.storage.shape, dict[int, Part]()
    if full is None or tensor.shape is None:
        return found
    for k, dim in enumerate(tensor.dims):
        axis = dim.terms[0][0] if dim.terms else 0
        if k in valid and dim.terms and covers(ctx, dim, full[k], tensor.shape, axis):
            found[axis] = valid[k]
    return found


def cut(tensor: Tensor, limits: Limits, rank: int) -> dict[int, Part]:
    """The limits that apply to an operand: not along axes that it broadcasts."""
    if tensor.shape is None:
        return dict(limits)
    shift = rank - len(tensor.shape)
    return {
        a - shift: n for a, n in limits.items() if a >= shift and tensor.shape[a - shift].value != 1
    }


def valid_region(ctx: Context, *tensors: Tensor) -> Region:
    """The filled region that all these tensors share, in the axes of the first."""
    limits: dict[int, Part] = {}
    for tensor in tensors:
        limits |= valid_limits(ctx, tensor)
    return Region(limits, guards_of(ctx, limits.values()), rank_of(tensors[0]))
