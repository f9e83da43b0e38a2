"""Loads, stores and DMA: tensors in HBM and tiles on chip."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from neuroncore.findings import Safety, Severity
from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Const, Dim, Parameter, Storage, Sym, Tensor, Unknown, Value
from nki_migrate.rewriting.context.call_site import DONE, NOWHERE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.mutable_parameters import is_in_out, is_output
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, as_number, text_of
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import (
    Result,
    destination,
    emit,
    is_widened,
    note_write,
    result_of,
    whole_shape,
)
from nki_migrate.rewriting.destinations.regions import cut, mask_region, valid_limits
from nki_migrate.rewriting.destinations.start_partition import (
    check_mask_start,
    readable,
    reject_start,
)
from nki_migrate.rewriting.expressions.compile_time_calls import makes_tile, value_into
from nki_migrate.rewriting.functions.covering_grid import note_cover
from nki_migrate.rewriting.inference.observations import guard, seen_same
from nki_migrate.rewriting.operations.operands import operator_text
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.gathers import Gather
from nki_migrate.rewriting.views.masks import EVERYWHERE, Region
from nki_migrate.rewriting.views.tensors import as_tensor, own_dtype, rank_of, tile_of
from nki_migrate.rewriting.views.view_text import spell
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.tiles import base_of

_ONE = Sym.number(1)


def _rewrite_identity(ctx: Context, site: CallSite) -> Value:
    """The statement stays; what 0.1 had in HBM and loaded is on chip already."""
    node = site.get("n")
    size = as_number(ctx, ctx.value_of(node)) if node is not None else None
    dtype = as_dtype(ctx, site.get("dtype")) or DType(f"{ctx.alias('nl')}.uint8", "uint8")
    named = site.target.name if site.target.view is None else None
    if size is None or named is None or not isinstance(ctx.index.parent(site.node), ast.Assign):
        return Unknown(text_of(ctx, site.node))
    ctx.kept.add(site.node)
    storage = Storage(
        named, (size, size), dtype, "sbuf", ctx.loops, ctx.site(site.node), flat_name=named,
        is_value=False, written=True, is_resident=True,
    )  # fmt: skip
    return Tensor(storage, storage.shape)


def _use_resident(ctx: Context, site: CallSite, source: Tensor) -> Tensor:
    """A constant that is on chip from 0.2 on needs no load; a tile that changes is a copy."""
    ctx.report("NKI1146", site.node, f"`{source.storage.name}` is on chip: no load")
    result, own = result_of(ctx, site, source.shape), own_dtype(ctx, source)
    name = site.target.name
    plain = result.region is None and (result.dtype or own).key == own.key
    if plain and name is not None and not _changes(ctx, {name, source.storage.name}):
        ctx.aliased.add(source.storage.site)
        return source
    return copy_into(ctx, source, replace(result, dtype=result.dtype or own))


def _changes(ctx: Context, names: set[str]) -> bool:
    """Whether the function writes to what one of the names, or another name of it, represents."""
    bindings = [n for n in ast.walk(ctx.function.node) if isinstance(n, ast.Assign)]
    for _ in bindings:  # names of names of …
        names = names | {
            t.id
            for b in bindings
            if isinstance(b.value, ast.Name) and b.value.id in names
            for t in b.targets
            if isinstance(t, ast.Name)
        }
    written = (base_of(_written(node)) for node in ast.walk(ctx.function.node))
    return any(base is not None and base.id in names for base in written)


def _written(node: ast.AST) -> ast.expr | None:
    """The target that a node writes to: of an assignment to part of it, or a destination."""
    match node:
        case ast.AugAssign():
            return node.target
        case ast.Subscript(ctx=ast.Store()):
            return node
        case ast.keyword(arg="dst"):
            return node.value
    return None


def load(ctx: Context, site: CallSite) -> Tensor:
    """`x = nl.load(src)` → an SBUF tile of the access's shape and `nisa.dma_copy`."""
    source = _loaded(ctx, site)
    if source.storage.is_resident:
        return _use_resident(ctx, site, source)
    region = mask_region(ctx, site, source.shape)
    ctx.report("NKI1133", site.node, "a load is an allocation and a DMA")
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    hint, view = f"{source.storage.name}_tile", site.target.view
    result = Result(site.node, site.target, dtype, region, hint=hint)
    if view is not None and view.buffer == "psum":
        staged = temporary(ctx, hint, whole_shape(ctx, source), dtype, "sbuf", site.node)
        _fill(ctx, staged, source, region)
        return copy_into(ctx, staged, replace(result, hint=""))
    dst = destination(ctx, result, _tile_shape(ctx, source, view))
    if dst.dims is None and region is None and view is None:
        dst.storage.loaded_from = source
        if ctx.before.uses.get(ctx.site(site.node)) == {"broadcast"}:
            ctx.out.pop()  # every use reads the row from HBM again
            ctx.reread[ctx.site(site.node)] = dst.storage
            return dst
    _fill(ctx, dst, source, region)
    return dst


def _loaded(ctx: Context, site: CallSite) -> Tensor:
    """The loaded tensor; a view of one dimension as a column."""
    source = as_tensor(ctx, ctx.value_of(site.arguments["src"]))
    if source is None:
        raise Cannot("NKI1133", "the source of the load is not known to be a tensor", site.node)
    if source.storage.is_resident:
        return source
    if source.buffer in {"sbuf", "psum"}:
        raise Cannot("NKI1133", f"`{source.storage.name}` is not in HBM", site.node)
    source.storage.buffer = "hbm"
    if source.shape is not None and len(source.shape) == 1 and source.dims:
        return replace(source, shape=(*source.shape, _ONE))
    return source


def _tile_shape(ctx: Context, source: Tensor, view: Tensor | None = None) -> tuple[Sym, ...] | str:
    """The loaded tile's shape: a one-dimensional access fills (n, 1), a view its own."""
    if view is not None and not is_widened(ctx, source.shape, view):
        return ""
    shape = whole_shape(ctx, source)
    return (*shape, _ONE) if isinstance(shape, tuple) and len(shape) == 1 else shape


def _fill(ctx: Context, dst: Tensor, source: Tensor, region: Region | None) -> None:
    region = region or EVERYWHERE
    ctx.use(source, "op")
    text = spell(ctx, dst, cut(dst, region.limits, region.rank))
    _dma(ctx, dst, text, source, region)


def _dma(
    ctx: Context,
    dst: Tensor,
    text: str,
    source: Tensor,
    region: Region,
    others: Sequence[tuple[str, str]] = (),
) -> None:
    """`nisa.dma_copy(dst, src)`."""
    limits = cut(source, region.limits, region.rank)
    for tile, parts in ((dst, cut(dst, region.limits, region.rank)), (source, limits)):
        check_mask_start(parts.get(0) if tile.buffer != "hbm" else None)
    reject_start(ctx, dst)
    source = readable(ctx, source, is_cut=bool(limits))
    arguments = [("dst", text), ("src", spell(ctx, source, limits)), *others]
    ctx.emit_call("dma_copy", arguments, region.guards)
    note_write(ctx, dst, region.limits, "other")


def _rewrite_store(ctx: Context, site: CallSite) -> Value:
    """`nl.store(dst, value)` → `nisa.dma_copy`; a PSUM value goes through SBUF."""
    node, value_node = site.node, site.get("value")
    if site.get("dst") is None or value_node is None:
        raise Cannot("NKI1134", "a store without destination or value", node)
    dst = tile_of(ctx, site, "dst")
    if dst is None:
        raise Cannot("NKI1134", "the destination of the store is not known to be a tensor", node)
    dst.storage.buffer = dst.buffer or "hbm"
    _reject_parameters(ctx, dst, site)
    note_cover(ctx, dst, is_masked=site.get("mask") is not None)
    dtype = own_dtype(ctx, dst)
    value = _stored_value(ctx, site, value_node, dst, dtype)
    region = mask_region(ctx, site, dst.shape)
    ctx.report("NKI1134", node, "a store is a DMA")
    if value.buffer == "psum":
        message = "DMA does not read PSUM: the value is copied to SBUF first"
        ctx.report("NKI1134", node, message)
        part = _value_region(ctx, value, region)
        value = copy_into(ctx, value, Result(node, dtype=dtype, region=part, hint="sbuf"))
    use = f"store:{dtype.key}:{dtype.text}"
    ctx.use(value, use)
    ctx.seen.stored[use] = dtype
    region = region or EVERYWHERE
    if region.limits and value.shape is not None and len(value.shape) != region.rank:
        text = "a masked store whose two sides have different ranks"
        raise Cannot(Reason.RECTANGULAR_MASK, text, node)
    _dma(ctx, dst, spell(ctx, dst, region.limits), value, region)
    return DONE


def _reject_parameters(ctx: Context, dst: Tensor, site: CallSite) -> None:
    """Kernels of SDK 2.20 write to an argument; from 0.2 on a kernel returns what it makes."""
    name = dst.storage.flat_name
    if name is not None and ctx.function.entry and name in ctx.function.parameters:
        if is_in_out(ctx.function.node, name):
            ctx.basis.append(f"`{name}` is annotated as mutable, and every return has it")
            return
        if not is_output(ctx.function.node, name):
            text = f"`{name}` is a parameter: allocate and return it here, and change the callers"
            raise Cannot(Reason.OUTPUT_PARAMETER, text, site.node)
        text = f"`{name}` is an output: it is written as before, and returned"
        callers = None if _was_called(ctx) else f"callers take what `{ctx.function.name}` returns"
        ctx.report(Reason.OUTPUT_PARAMETER, site.node, text, assumption=callers)


def _was_called(ctx: Context) -> bool:
    """Whether a run called the function, whichever of its stores that call came to."""
    expressions = (n for n in ast.walk(ctx.function.node) if isinstance(n, ast.expr))
    return any(ctx.seen_at(n) is not None for n in expressions)


def _stored_value(
    ctx: Context, site: CallSite, node: ast.expr, dst: Tensor, dtype: DType
) -> Tensor:
    """The value as a tile; an expression gets a temporary named after the destination."""
    name = ctx.fresh_name(f"{dst.storage.name}_tile") if makes_tile(ctx, node) else None
    value = value_into(ctx, node, Target(name=name)) if name else ctx.value_of(node)
    tensor = as_tensor(ctx, value)
    if tensor is not None:
        return tensor
    number = as_number(ctx, value)
    left = isinstance(value, Parameter) and value.name not in ctx.function.parameters
    if number is None or dst.shape is None or left:
        raise Cannot("NKI1134", "the stored value is not known to be a tile", node)
    tile = temporary(ctx, f"{dst.storage.name}_tile", dst.shape, dtype, "sbuf", site.node)
    emit(ctx, "memset", tile, [("value", text_of(ctx, node))])
    return tile


def _value_region(ctx: Context, value: Tensor, region: Region | None) -> Region | None:
    if region is None:
        return None
    return replace(region, limits=region.limits or valid_limits(ctx, value), rank=rank_of(value))


def _rewrite_dma_copy(ctx: Context, site: CallSite) -> Value:
    """`nisa.dma_copy(dst=…, src=…)`: only its operands' subscripts and mask change."""
    if site.node.args:
        text = "operands by position: 0.1 took the source first, later versions the destination"
        raise Cannot("NKI1276", f"{text}; name them", site.node)
    if site.get("dst") is None or site.get("src") is None:
        raise Cannot("NKI1276", "a dma_copy without dst or src", site.node)
    dst, src = tile_of(ctx, site, "dst"), tile_of(ctx, site, "src")
    if dst is None or src is None:
        if "mask" not in site.arguments:
            return Const(None, "as it is")  # already 0.2's form
        raise Cannot("NKI1276", "an operand of dma_copy is not known to be a tensor", site.node)
    _report_skipped_rows(ctx, site, dst, src)
    region = mask_region(ctx, site, dst.shape) or EVERYWHERE
    ctx.report("NKI1276", site.node, "the operands of dma_copy are slices, without a mask")
    ctx.use(src, "op")
    text = spell(ctx, dst, region.limits)
    others = [
        (k, operator_text(ctx, v) if k == "dst_rmw_op" else text_of(ctx, v))
        for k, v in site.arguments.items()
        if k not in {"dst", "src", "mask"}
    ]  # an operator stays for 0.2 (NKI2003)
    _dma(ctx, dst, text, src, region, others)
    return DONE


def _report_skipped_rows(ctx: Context, site: CallSite, *tensors: Tensor) -> None:
    """Report rows that are skipped where parts of others may be accessed in their place."""
    mode = site.get("oob_mode")
    if mode is None or ctx.index.canonical(mode) == "nisa.oob_mode.error":
        return
    for gather in (t.storage.gather for t in tensors):
        if isinstance(gather, Gather) and not _is_in_rows(ctx, gather):
            text = "rows are skipped by their number alone: a slice must not reach out of one"
            manual = {"severity": Severity.WARNING, "safety": Safety.MANUAL}
            ctx.report(Reason.OUT_OF_BOUNDS, site.node, text, **manual)


def _is_in_rows(ctx: Context, gather: Gather) -> bool:
    """Whether what is read of each row is part of the row, by the source or under an assert."""
    sizes = gather.base.shape or ()
    return not gather.at and all(
        _is_in(ctx, dim, size, gather.shape)
        for dim, size in zip(gather.dims[1:], sizes[1:], strict=True)
    )


def _is_in(ctx: Context, dim: Dim, size: Sym, shape: tuple[Sym, ...]) -> bool:
    """Whether the indices of a dimension are less than its size."""
    last = dim.offset
    for axis, step in dim.terms:
        last = last + step * (shape[axis] - _ONE)
    if ctx.facts.proves_at_least((size - last).poly, 1):
        return True
    is_seen = seen_same(ctx, (last + _ONE).poly, size.poly)
    if is_seen:
        guard(ctx, f"{ctx.spell(last)} < {ctx.spell(size)}")
    return is_seen


_AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}  # rank → axes, the only ones there are


def _rewrite_dma_transpose(ctx: Context, site: CallSite) -> Tensor:
    """NKI1196: `nisa.dma_transpose` takes a destination."""
    source, shape = _transposable(ctx, site)
    ctx.report("NKI1196", site.node, "`nisa.dma_transpose` writes to a destination")
    own = own_dtype(ctx, source)
    dtype = as_dtype(ctx, site.get("dtype")) or own
    fits = dtype.key == own.key and _takes(site.target, own)
    target = site.target if fits else NOWHERE
    dst = destination(ctx, Result(site.node, target, own, hint="transposed"), shape)
    rest = [
        (k, text_of(ctx, v)) for k, v in site.arguments.items() if k not in {"src", "mask", "dtype"}
    ]
    emit(ctx, "dma_transpose", dst, [("src", source), *rest])
    return dst if fits else copy_into(ctx, dst, Result(site.node, site.target, dtype))


def _transposable(ctx: Context, site: CallSite) -> tuple[Tensor, tuple[Sym, ...]]:
    """The transposed tensor, and the shape of the result."""
    source = tile_of(ctx, site, "src")
    if source is None or source.shape is None:
        raise Cannot("NKI1196", "the shape of what is transposed is not known", site.node)
    axes = _AXES.get(len(source.shape))
    if axes is None or not _names(site.get("axes"), axes):
        raise Cannot("NKI1196", f"axes other than {axes} of a DMA transpose", site.node)
    if source.buffer == "psum" or source.storage.gather is not None:
        raise Cannot("NKI1196", "a DMA transpose of PSUM or of rows that a tile picks", site.node)
    if mask_region(ctx, site, source.shape) is not None or valid_limits(ctx, source):
        raise Cannot("NKI1196", "a DMA transpose of part of a tile", site.node)
    return source, tuple(source.shape[axis] for axis in axes)


def _takes(target: Target, dtype: DType) -> bool:
    """Whether a DMA may write values of this dtype to the place."""
    view = target.view
    if view is None:
        return True
    return view.buffer == "sbuf" and view.dtype is not None and view.dtype.key == dtype.key


def _names(node: ast.expr | None, axes: tuple[int, ...]) -> bool:
    if node is None:
        return True
    items = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    return tuple(i.value if isinstance(i, ast.Constant) else None for i in items) == axes


HOOKS = {
    "NKI1133": Hooks(calls={"nl.load": load}),
    "NKI1134": Hooks(calls={"nl.store": _rewrite_store}),
    "NKI1146": Hooks(calls={"nl.shared_identity_matrix": _rewrite_identity}),
    "NKI1196": Hooks(calls={"nisa.dma_transpose": _rewrite_dma_transpose}),
    "NKI1276": Hooks(calls={"nisa.dma_copy": _rewrite_dma_copy}),
}
