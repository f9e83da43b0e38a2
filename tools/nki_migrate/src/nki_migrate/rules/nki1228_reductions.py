"""NKI1228: `nl` reductions are `nisa.tensor_reduce`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.destination import (
    cut,
    destination,
    mask_region,
    note_write,
    valid_limits,
)
from nki_migrate.rewriting.inference.promotion import is_truth
from nki_migrate.rewriting.operations.instructions import axes_of, reduced_shape
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import spell, storage_dims
from nki_migrate.rules.rule import Hooks

_OPERATORS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


def _rewrite(op: str) -> Callable[[Context, CallSite, Target | None], Tensor]:
    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
        ctx.report("NKI1228", site.node, f"`{site.name}` is tensor_reduce with `nl.{op}`")
        return reduce_tile(ctx, site, op, target)

    return rewrite


def reduce_tile(
    ctx: Context, site: CallSite, op: str, target: Target | None, dtype: DType | None = None
) -> Tensor:
    """`nisa.tensor_reduce(dst, op, data, axis)`; a mask cuts the data, its rows also the result."""
    data = reduced_operand(ctx, site)
    region = mask_region(ctx, site, data.shape) or Region(valid_limits(ctx, data), [])
    shown, place = _reduced_axes_last(ctx, site, data)
    keepdims = _flag(site, "keepdims")
    axis = site.get("axis")
    shape = reduced_shape(ctx, data, axis, keepdims, site.node)
    dtype = dtype or as_dtype(ctx, site.get("dtype")) or data.dtype
    if op == "add" and is_truth(data.dtype) and is_truth(dtype):
        op = "maximum"  # a sum of truth values is a truth value in 0.1: whether any holds
    hint = f"{data.storage.name}_{site.name[3:]}" if data.dims is None else site.name[3:]
    whole = not region.guards and not region.limits
    dst = destination(ctx, target, shape, dtype, "sbuf", site.node, hint=hint, computes=whole)
    rank = len(data.shape) if data.shape is not None else 2
    rows = {a: n for a, n in region.limits.items() if a == 0}
    limits = cut(data, region.limits, rank)
    ctx.use(data, "op")
    assert axis is not None
    arguments = [
        ("dst", spell(ctx, dst, rows)),
        ("op", f"{ctx.alias('nl')}.{op}"),
        ("data", spell(ctx, shown, {place[a]: n for a, n in limits.items()})),
        ("axis", text_of(ctx, axis) if shown is data else _last_axes(ctx, axis, data, site.node)),
    ]
    if keepdims and shown is data:
        arguments.append(("keepdims", "True"))
    ctx.emit_call(f"{ctx.alias('nisa')}.tensor_reduce", arguments, region.guards)
    note_write(ctx, dst, rows, "other")
    return dst


def reduced_operand(ctx: Context, site: CallSite) -> Tensor:
    node = site.get("x")
    data = as_tensor(ctx, ctx.value_of(node)) if node is not None else None
    if data is None:
        raise Cannot("NKI1228", "what is reduced is not known to be a tile", node or site.node)
    return data


def _flag(site: CallSite, name: str) -> bool:
    node = site.get(name)
    return isinstance(node, ast.Constant) and bool(node.value)


def _reduced_axes_last(ctx: Context, site: CallSite, data: Tensor) -> tuple[Tensor, dict[int, int]]:
    """The machine reduces the last free axes only: others are moved there by the access pattern."""
    axes = axes_of(ctx, site.get("axis"), data, site.node)
    rank = len(data.shape) if data.shape is not None else 2
    order = [*(a for a in range(rank) if a not in axes), *sorted(axes)]
    place = {a: i for i, a in enumerate(order)}
    if order == list(range(rank)):
        return data, place
    dims = storage_dims(data)
    if dims is None or data.shape is None:
        raise Cannot("NKI1228", "a reduction over axes of a tile of unknown shape", site.node)
    moved = tuple(replace(d, terms=tuple(sorted((place[a], c) for a, c in d.terms))) for d in dims)
    shape = tuple(data.shape[a] for a in order)
    return replace(data, shape=shape, dims=moved, written=None), place


def _last_axes(ctx: Context, axis: ast.expr, data: Tensor, node: ast.AST) -> str:
    count = len(axes_of(ctx, axis, data, node))
    rank = len(data.shape or ())
    return f"[{', '.join(str(a) for a in range(rank - count, rank))}]"


HOOKS = Hooks(calls={f"nl.{name}": _rewrite(op) for name, op in _OPERATORS.items()})
