"""Reductions along free axes, and over loops."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Sym, Tensor
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
from nki_migrate.rewriting.inference.promotion import float32, is_truth, reject_truth_values
from nki_migrate.rewriting.operations.instructions import axes_of, product, reduced_shape
from nki_migrate.rewriting.operations.operator_names import operator_text
from nki_migrate.rewriting.operations.operators import binary, two_tiles
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype, spell, storage_dims
from nki_migrate.rules.rule import Hooks

_OPERATORS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


def _rewrite(op: str) -> Callable[[Context, CallSite, Target | None], Tensor]:
    """NKI1228: `nl` reductions are `nisa.tensor_reduce`."""

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


def rewrite_mean(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.mean(x, axis)`: the sum in float32, then 1 / n."""
    ctx.report("NKI1229", site.node, "`nl.mean` is a sum and a multiplication")
    data = reduced_operand(ctx, site)
    if data.shape is None or mask_region(ctx, site, data.shape) or valid_limits(ctx, data):
        raise Cannot("NKI1229", "a mean over a tile of unknown or partly filled shape", site.node)
    axes = axes_of(ctx, site.get("axis"), data, site.node)
    count = product(tuple(s for i, s in enumerate(data.shape) if i in axes))
    total = reduce_tile(ctx, site, "add", None, dtype=float32(ctx))
    dtype = as_dtype(ctx, site.get("dtype"))
    reject_truth_values(own_dtype(ctx, data), dtype, "the mean", site.node, "NKI1229")
    dtype = dtype or data.dtype
    factor = Sym(count.poly, f"1.0 / {ctx.spell(count, 3)}", 2, is_float=True)
    return binary(ctx, site.node, "multiply", total, factor, dtype, None, target)


def _message(canonical: str) -> str:
    return f"`{canonical}` is several instructions; from 0.3 on the call itself runs, too"


_KNOWN = {"x", "op", "loop_indices", "dtype", "mask", "name"}
_RULE = "NKI1253"


def rewrite_loop_reduce(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`t[…] = nl.loop_reduce(x, np.add, loop_indices=[i])` → `t[…] = x + t[…]`."""
    view = target.view if target is not None else None
    x = as_tensor(ctx, ctx.value_of(site.arguments["x"]))
    op = site.get("op")
    if view is None or x is None or op is None:
        raise Cannot(_RULE, "`nl.loop_reduce` that is not assigned to part of a tensor", site.node)
    if site.get("mask") is not None or set(site.arguments) - _KNOWN:
        raise Cannot(_RULE, "`nl.loop_reduce` with a mask", site.node)
    if not view.storage.filled and not _is_set_before(ctx, site.node):
        message = "`nl.loop_reduce` into a tensor that may hold nothing before its first turn"
        raise Cannot(_RULE, message, site.node)
    own = own_dtype(ctx, view)
    dtype = as_dtype(ctx, site.get("dtype"))
    if dtype is not None and dtype.key != own.key:
        raise Cannot(_RULE, "`nl.loop_reduce` that rounds to another dtype on the way", site.node)
    name = operator_text(ctx, op).rpartition(".")[2]
    ctx.report(_RULE, site.node, f"the destination is the other operand: `{name}` in place")
    ctx.use(x, "op")
    return two_tiles(ctx, site.node, name, x, view, own, None, Target(view=view))


def _is_set_before(ctx: Context, node: ast.expr) -> bool:
    """Whether the statement right before the loops gives the destination a number."""
    statement = ctx.index.statement_of(node)
    target = getattr(statement, "targets", [None])[0]
    around = [a for a in ctx.index.ancestors(node) if isinstance(a, ast.For)]
    rebound = {
        n.id for loop in around[:1] for n in ast.walk(loop)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }  # fmt: skip
    if target is None or not around or rebound & {getattr(n, "id", "") for n in ast.walk(target)}:
        return False
    body = getattr(ctx.index.parent(around[0]), "body", [])
    at = body.index(around[0]) if around[0] in body else 0
    first = body[at - 1] if at else None
    return (
        isinstance(first, ast.Assign)
        and isinstance(first.value, ast.Constant)
        and ast.dump(first.targets[0]) == ast.dump(target)
    )


HOOKS = {
    "NKI1228": Hooks(calls={f"nl.{name}": _rewrite(op) for name, op in _OPERATORS.items()}),
    "NKI1229": Hooks(calls={"nl.mean": rewrite_mean}, message=_message),
    "NKI1253": Hooks(calls={"nl.loop_reduce": rewrite_loop_reduce}),
}
