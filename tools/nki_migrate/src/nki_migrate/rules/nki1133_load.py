"""NKI1133: `nl.load` is an allocation and `nisa.dma_copy`."""

from __future__ import annotations

from dataclasses import replace

from nki_migrate.facts.values import Sym, Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import (
    cut,
    destination,
    mask_region,
    note_write,
    temporary,
    whole_shape,
)
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype, spell
from nki_migrate.rules.nki1146_identity import use_resident
from nki_migrate.rules.rule import Hooks

_ONE = Sym.number(1)


def rewrite_load(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`x = nl.load(src)` → an SBUF tile of the access's shape and `nisa.dma_copy`."""
    source = as_tensor(ctx, ctx.value_of(site.arguments["src"]))
    if source is None:
        raise Cannot("NKI1133", "the source of the load is not known to be a tensor", site.node)
    if source.storage.is_resident:
        return use_resident(ctx, site, source, target)
    if source.buffer in {"sbuf", "psum"}:
        raise Cannot("NKI1133", f"`{source.storage.name}` is not in HBM", site.node)
    if source.shape is not None and len(source.shape) == 1:
        source = replace(source, shape=(*source.shape, _ONE)) if source.dims else source
    region = mask_region(ctx, site, source.shape)
    ctx.report("NKI1133", site.node, "a load is an allocation and a DMA")
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    hint = f"{source.storage.name}_tile"
    view = target.view if target else None
    if view is not None and view.buffer == "psum":
        staged = temporary(ctx, hint, whole_shape(ctx, source), dtype, "sbuf", site.node)
        _dma(ctx, staged, source, region)
        return copy_into(ctx, site.node, staged, dtype, region, target)
    shape = "" if view is not None else _tile_shape(ctx, source)
    dst = destination(ctx, target, shape, dtype, "sbuf", site.node, hint=hint)
    if dst.dims is None and region is None and view is None:
        dst.storage.loaded_from = source
        if ctx.before.uses.get(ctx.site(site.node)) == {"broadcast"}:
            ctx.out.pop()  # every use reads the row from HBM again
            return dst
    _dma(ctx, dst, source, region)
    return dst


def _tile_shape(ctx: Context, source: Tensor) -> tuple[Sym, ...] | str:
    """The loaded tile's shape: a one-dimensional access fills (n, 1)."""
    shape = whole_shape(ctx, source)
    return (*shape, _ONE) if isinstance(shape, tuple) and len(shape) == 1 else shape


def _dma(ctx: Context, dst: Tensor, source: Tensor, region: Region | None) -> None:
    limits = region.limits if region else {}
    rank = len(source.shape) if source.shape is not None else 2
    ctx.use(source, "op")
    arguments = [
        ("dst", spell(ctx, dst, cut(dst, limits, rank))),
        ("src", spell(ctx, source, cut(source, limits, rank))),
    ]
    ctx.emit_call(f"{ctx.alias('nisa')}.dma_copy", arguments, region.guards if region else [])
    note_write(ctx, dst, limits, "other")


HOOKS = Hooks(calls={"nl.load": rewrite_load})
