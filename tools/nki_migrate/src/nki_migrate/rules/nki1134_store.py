"""NKI1134: `nl.store` is `nisa.dma_copy`."""

from __future__ import annotations

import ast

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Parameter, Tensor, Value
from nki_migrate.rewriting.context.call_site import DONE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.mutable_parameters import is_in_out
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_number, text_of
from nki_migrate.rewriting.destinations.destination import (
    cut,
    emit,
    mask_region,
    note_write,
    temporary,
    valid_limits,
)
from nki_migrate.rewriting.expressions.results import makes_tile, value_into
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype, spell
from nki_migrate.rules.rule import Hooks


def rewrite_store(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """`nl.store(dst, value)` → `nisa.dma_copy`; a PSUM value goes through SBUF."""
    destination_node = site.get("dst")
    value_node = site.get("value")
    if destination_node is None or value_node is None:
        raise Cannot("NKI1134", "a store without destination or value", site.node)
    dst = as_tensor(ctx, ctx.value_of(destination_node))
    if dst is None:
        raise Cannot(
            "NKI1134", "the destination of the store is not known to be a tensor", site.node
        )
    _reject_parameters(ctx, dst, site)
    dtype = own_dtype(ctx, dst)
    value = _stored_value(ctx, site, value_node, dst, dtype)
    region = mask_region(ctx, site, dst.shape)
    ctx.report("NKI1134", site.node, "a store is a DMA")
    if value.buffer == "psum":
        ctx.report(
            "NKI1134", site.node, "DMA does not read PSUM: the value is copied to SBUF first"
        )
        value = copy_into(
            ctx, site.node, value, dtype, _value_region(ctx, value, region), None, "sbuf"
        )
    use = f"store:{dtype.key}:{dtype.text}"
    ctx.use(value, use)
    ctx.seen.stored[use] = dtype
    limits = region.limits if region else {}
    rank = len(dst.shape) if dst.shape is not None else 2
    if limits and value.shape is not None and dst.shape is not None and len(value.shape) != rank:
        raise Cannot(
            Reason.RECTANGULAR_MASK,
            "a masked store whose two sides have different ranks",
            site.node,
        )
    arguments = [
        ("dst", spell(ctx, dst, limits)),
        ("src", spell(ctx, value, cut(value, limits, rank))),
    ]
    ctx.emit_call(f"{ctx.alias('nisa')}.dma_copy", arguments, region.guards if region else [])
    note_write(ctx, dst, limits, "other")
    return DONE


def _reject_parameters(ctx: Context, dst: Tensor, site: CallSite) -> None:
    """Kernels of SDK 2.20 write to an argument; from 0.2 on a kernel returns what it makes."""
    name = dst.storage.flat_name
    if name is not None and ctx.function.entry and name in ctx.function.parameters:
        if is_in_out(ctx.function.node, name):
            ctx.basis.append(f"`{name}` is annotated as mutable, and every return has it")
            return
        raise Cannot(
            Reason.OUTPUT_PARAMETER,
            f"`{name}` is a parameter: allocate and return it here, and change the callers",
            site.node,
        )


def _stored_value(
    ctx: Context, site: CallSite, node: ast.expr, dst: Tensor, dtype: DType
) -> Tensor:
    """The value as a tile; an expression gets a temporary named after the destination."""

    name = None
    if makes_tile(ctx, node):
        name = ctx.fresh_name(f"{dst.storage.name}_tile")
    value = value_into(ctx, node, Target(name=name)) if name else ctx.value_of(node)
    tensor = as_tensor(ctx, value)
    if tensor is not None:
        return tensor
    number = as_number(ctx, value)
    left = isinstance(value, Parameter) and value.name not in ctx.function.parameters
    if number is None or dst.shape is None or left:
        raise Cannot("NKI1134", "the stored value is not known to be a tile", node)
    tile = temporary(ctx, f"{dst.storage.name}_tile", dst.shape, dtype, "sbuf", site.node)
    emit(ctx, "memset", tile, [("value", text_of(ctx, node))], None, rank=2)
    return tile


def _value_region(ctx: Context, value: Tensor, region: Region | None) -> Region | None:
    if region is None:
        return None
    return Region(region.limits or valid_limits(ctx, value), region.guards)


HOOKS = Hooks(calls={"nl.store": rewrite_store})
