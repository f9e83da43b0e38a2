"""Matrix products and transposes: results in PSUM."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Sym, Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.destinations.destination import (
    destination,
    emit,
    note_write,
    temporary,
    valid_limits,
)
from nki_migrate.rewriting.destinations.psum_accumulation import first_kind, is_sum
from nki_migrate.rewriting.inference.promotion import float32
from nki_migrate.rewriting.operations.instructions import flat_size
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import covers_tile, own_dtype, spell


def tile_operand(ctx: Context, node: ast.expr | None, site: CallSite) -> Tensor:
    tensor = as_tensor(ctx, ctx.value_of(node)) if node is not None else None
    if tensor is None:
        raise Cannot(
            Reason.RETURNED_VALUE,
            "an operand of the product is not known to be a tile",
            node or site.node,
        )
    return tensor


def product_of(
    ctx: Context,
    site: CallSite,
    stationary: Tensor,
    moving: Tensor,
    target: Target | None,
    extra: list[tuple[str, str]],
) -> Tensor:
    stationary, moving = (
        copy_into(ctx, site.node, t, t.dtype, None, None) if t.buffer == "psum" else t
        for t in (stationary, moving)
    )
    shape = (flat_size(stationary), flat_size(moving))
    if target is not None and target.view is not None and not _writes_directly(ctx, target):
        ctx.report(
            Reason.ASSIGNED_PRODUCT,
            site.node,
            "a product that replaces what its tile holds gets a tile of its own",
        )
        view = target.view
        dtype = own_dtype(ctx, view) if view.buffer == "psum" else float32(ctx)
        dst = temporary(ctx, "product", shape, dtype, "psum", site.node)
        _emit(ctx, dst, stationary, moving, extra)
        emit(ctx, "tensor_copy", target.view, [("src", dst)], None, rank=2)
        return target.view
    if target is None or target.view is None:
        ctx.report(
            Reason.RETURNED_VALUE, site.node, "`nisa.nc_matmul` writes to a destination in PSUM"
        )
    dst = destination(ctx, target, shape, float32(ctx), "psum", site.node, hint="product")
    _emit(ctx, dst, stationary, moving, extra)
    return dst


def _writes_directly(ctx: Context, target: Target) -> bool:
    """Whether the product may go straight to the view (trap T4).

    Adding may; assigning may to PSUM that is fresh in this iteration and has not been written.
    """
    view = target.view
    assert view is not None
    if view.buffer != "psum":
        return False
    if target.accumulate:
        return True
    storage = view.storage
    return storage.loops == ctx.loops and not storage.written and is_sum(ctx, storage)


def _emit(
    ctx: Context, dst: Tensor, stationary: Tensor, moving: Tensor, extra: list[tuple[str, str]]
) -> None:
    """The call; a partly filled contraction axis is cut on both operands (trap T5)."""
    left, right = valid_limits(ctx, stationary), valid_limits(ctx, moving)
    rows = {k: v for k, v in (left | right).items() if k == 0}
    cuts = {0: left[1]} if 1 in left and len(stationary.shape or ()) == 2 else {}
    cuts |= {1: right[1]} if 1 in right and len(moving.shape or ()) == 2 else {}
    ctx.use(stationary, "op")
    ctx.use(moving, "op")
    ctx.use(dst, "product")
    is_whole = not cuts and covers_tile(ctx, dst)
    ctx.wrote(dst.storage, first_kind(ctx, dst.storage, is_whole=is_whole))
    arguments = [
        ("dst", spell(ctx, dst, cuts)),
        ("stationary", spell(ctx, stationary, {**rows, **_free(left)})),
        ("moving", spell(ctx, moving, {**rows, **_free(right)})),
        *extra,
    ]
    ctx.emit_call(f"{ctx.alias('nisa')}.nc_matmul", arguments, [])
    note_write(ctx, dst, cuts, "product")


def _free(limits: dict[int, Sym]) -> dict[int, Sym]:
    return {k: v for k, v in limits.items() if k > 0}


def transpose(
    ctx: Context, site: CallSite, data: Tensor, target: Target | None, extra: list[tuple[str, str]]
) -> Tensor:
    if data.buffer == "psum":
        data = copy_into(ctx, site.node, data, data.dtype, None, None)
    rows = data.shape[0] if data.shape else Sym.number(0)
    if data.shape is None:
        raise Cannot(Reason.TRANSPOSE, "a transpose of a tile of unknown shape", site.node)
    name = f"{data.storage.name}_T" if data.dims is None else "transposed"
    dst = destination(
        ctx, target, (flat_size(data), rows), data.dtype, "psum", site.node, hint=name
    )
    limits = valid_limits(ctx, data)
    swapped = {1 - a: n for a, n in limits.items() if a < 2} if len(data.shape) == 2 else {}
    ctx.use(data, "op")
    arguments = [("dst", spell(ctx, dst, swapped)), ("data", spell(ctx, data, limits)), *extra]
    ctx.emit_call(f"{ctx.alias('nisa')}.nc_transpose", arguments, [])
    note_write(ctx, dst, swapped, "other")
    return dst
