"""Loads, stores and copies (rules NKI1133, NKI1134, NKI1232, NKI1276)."""

from __future__ import annotations

import ast
from dataclasses import replace

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Const, Parameter, Sym, Tensor, Value
from nki_migrate.lower.access import as_tensor
from nki_migrate.lower.calls import operator_text
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import (
    Target,
    cut,
    destination,
    emit,
    mask_region,
    note_write,
    temporary,
    valid_limits,
    whole_shape,
)
from nki_migrate.lower.evaluate import as_dtype, value_of
from nki_migrate.lower.in_out import is_in_out
from nki_migrate.lower.masks import Region
from nki_migrate.lower.operators import copy_into
from nki_migrate.lower.signatures import CallSite
from nki_migrate.lower.source_text import as_number, text_of
from nki_migrate.lower.views import own_dtype, spell

__all__ = ["lower_copy", "lower_dma_copy", "lower_load", "lower_store"]

DONE = Const(None, "done")
_ONE = Sym.number(1)


def lower_load(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`x = nl.load(src)` → an SBUF tile of the access's shape and `nisa.dma_copy`."""
    source = as_tensor(ctx, value_of(ctx, site.arguments["src"]))
    if source is None:
        raise Cannot("NKI1133", "the source of the load is not known to be a tensor", site.node)
    if source.storage.is_resident:
        return _resident(ctx, site, source, target)
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


def _resident(ctx: Context, site: CallSite, source: Tensor, target: Target | None) -> Tensor:
    """What is on chip from 0.2 on is no longer loaded (NKI1146); a tile that changes is a copy."""
    ctx.report("NKI1146", site.node, f"`{source.storage.name}` is on chip: no load")
    region = mask_region(ctx, site, source.shape)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    name = target.name if target is not None else None
    plain = region is None and dtype.key == own_dtype(ctx, source).key
    if plain and name is not None and not _changes(ctx, {name, source.storage.name}):
        ctx.aliased.add(source.storage.site)
        return source
    return copy_into(ctx, site.node, source, dtype, region, target)


def _changes(ctx: Context, names: set[str]) -> bool:
    """Whether the function writes to what one of the names, or another name of it, stands for."""
    bindings = [n for n in ast.walk(ctx.function.node) if isinstance(n, ast.Assign)]
    for _ in bindings:  # names of names of …
        names = names | {
            t.id
            for b in bindings
            if isinstance(b.value, ast.Name) and b.value.id in names
            for t in b.targets
            if isinstance(t, ast.Name)
        }
    for node in ast.walk(ctx.function.node):
        written = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        target = node.target if isinstance(node, ast.AugAssign) else node if written else None
        if isinstance(node, ast.keyword) and node.arg == "dst":
            target = node.value
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and target.id in names:
            return True
    return False


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


def lower_store(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """`nl.store(dst, value)` → `nisa.dma_copy`; a PSUM value goes through SBUF."""
    destination_node = site.get("dst")
    value_node = site.get("value")
    if destination_node is None or value_node is None:
        raise Cannot("NKI1134", "a store without destination or value", site.node)
    dst = as_tensor(ctx, value_of(ctx, destination_node))
    if dst is None:
        raise Cannot(
            "NKI1134", "the destination of the store is not known to be a tensor", site.node
        )
    _refuse_parameters(ctx, dst, site)
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
        raise Cannot("NKI1170", "a masked store whose two sides have different ranks", site.node)
    arguments = [
        ("dst", spell(ctx, dst, limits)),
        ("src", spell(ctx, value, cut(value, limits, rank))),
    ]
    ctx.emit_call(f"{ctx.alias('nisa')}.dma_copy", arguments, region.guards if region else [])
    note_write(ctx, dst, limits, "other")
    return DONE


def _refuse_parameters(ctx: Context, dst: Tensor, site: CallSite) -> None:
    """Kernels of SDK 2.20 write to an argument; from 0.2 on a kernel returns what it makes."""
    name = dst.storage.flat_name
    if name is not None and ctx.function.entry and name in ctx.function.parameters:
        if is_in_out(ctx.function.node, name):
            ctx.basis.append(f"`{name}` is annotated as mutable, and every return has it")
            return
        raise Cannot(
            "NKI1117",
            f"`{name}` is a parameter: allocate and return it here, and change the callers",
            site.node,
        )


def _stored_value(
    ctx: Context, site: CallSite, node: ast.expr, dst: Tensor, dtype: DType
) -> Tensor:
    """The value as a tile; an expression gets a temporary named after the destination."""
    from nki_migrate.lower.statements import into, makes_tile

    name = None
    if makes_tile(ctx, node):
        name = ctx.fresh_name(f"{dst.storage.name}_tile")
    value = into(ctx, node, Target(name=name)) if name else value_of(ctx, node)
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


def lower_copy(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.copy(x, dtype)` → `nisa.tensor_copy`; no copy of a copy into the same place."""
    source = as_tensor(ctx, value_of(ctx, site.arguments["src"]))
    if source is None:
        raise Cannot("NKI1232", "what is copied is not known to be a tile", site.node)
    ctx.report("NKI1232", site.node, "`nl.copy` is tensor_copy")
    region = mask_region(ctx, site, source.shape)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    return copy_into(ctx, site.node, source, dtype, region, target)


def lower_dma_copy(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """`nisa.dma_copy(dst=…, src=…)`: only its operands' subscripts and mask change."""
    if site.node.args:
        text = "operands by position: 0.1 took the source first, later versions the destination"
        raise Cannot("NKI1276", f"{text}; name them", site.node)
    dst_node, src_node = site.get("dst"), site.get("src")
    if dst_node is None or src_node is None:
        raise Cannot("NKI1276", "a dma_copy without dst or src", site.node)
    dst, src = (as_tensor(ctx, value_of(ctx, n)) for n in (dst_node, src_node))
    if (dst is None or src is None) and "mask" not in site.arguments:
        return Const(None, "as it is")  # already 0.2's form
    if dst is None or src is None:
        raise Cannot("NKI1276", "an operand of dma_copy is not known to be a tensor", site.node)
    region = mask_region(ctx, site, dst.shape)
    ctx.report("NKI1276", site.node, "the operands of dma_copy are slices, and there is no mask")
    limits = region.limits if region else {}
    rank = len(dst.shape) if dst.shape is not None else 2
    ctx.use(src, "op")
    arguments = [
        ("dst", spell(ctx, dst, limits)),
        ("src", spell(ctx, src, cut(src, limits, rank))),
    ]
    others = {k: v for k, v in site.arguments.items() if k not in {"dst", "src", "mask"}}
    arguments += [
        (k, operator_text(ctx, v) if k == "dst_rmw_op" else text_of(ctx, v))
        for k, v in others.items()
    ]  # an operator stays for 0.2 (NKI2003)
    ctx.emit_call(f"{ctx.alias('nisa')}.dma_copy", arguments, region.guards if region else [])
    note_write(ctx, dst, limits, "other")
    return DONE
