"""Index expressions as values: `iota` and `affine_select`."""

from __future__ import annotations

import ast

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Index, Mask, Tensor, is_none
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import Result, destination, emit
from nki_migrate.rewriting.destinations.regions import valid_region
from nki_migrate.rewriting.operations.masked_calls import affine_pattern, select
from nki_migrate.rewriting.operations.operators import copied
from nki_migrate.rewriting.views.tensors import as_tensor, own_dtype
from nki_migrate.rules.rule import Hooks


def _rewrite_iota(ctx: Context, site: CallSite) -> Tensor:
    """`nisa.iota(expr, dtype)`: the numbers of an index expression as a tile."""
    _reject_mask(ctx, site)
    index = ctx.value_of(site.arguments["expr"])
    if not isinstance(index, Index) or len(index.extents) < 2:
        raise Cannot("NKI1191", "the numbers are not affine in index tensors", site.node)
    ctx.report("NKI1191", site.node, "`nisa.iota` takes a destination and a pattern")
    dtype = as_dtype(ctx, site.get("dtype"))
    result = Result(site.node, site.target, dtype, hint="numbers")
    dst = destination(ctx, result, index.extents)
    emit(ctx, "iota", dst, affine_pattern(ctx, index, index.extents))
    return dst


def tile_of_numbers(ctx: Context, node: ast.AST, index: Index) -> Tensor:
    """An index expression as an operand: 0.1 made int32 numbers of it."""
    if len(index.extents) < 2:
        raise Cannot("NKI1191", "an index tensor of one dimension as an operand", node)
    ctx.report("NKI1191", node, "an index expression as an operand is a tile of its numbers")
    whole = DType(f"{ctx.alias('nl')}.int32", "int32")
    dst = temporary(ctx, "numbers", index.extents, whole, "sbuf", node)
    emit(ctx, "iota", dst, affine_pattern(ctx, index, index.extents))
    return dst


def _reject_mask(ctx: Context, site: CallSite) -> None:
    node = site.get("mask")
    if node is not None and not is_none(ctx.value_of(node)):
        raise Cannot(Reason.OTHER_MASK, f"a mask on `{site.name}`", node)


def _rewrite_affine_select(ctx: Context, site: CallSite) -> Tensor:
    """`nisa.affine_select(pred, tile, number)`: `L < R` is `L - R` compared with zero."""
    _reject_mask(ctx, site)
    predicate = ctx.value_of(site.arguments["pred"])
    if not isinstance(predicate, Mask) or predicate.relation is None:
        raise Cannot("NKI1192", "the predicate is not one comparison of index tensors", site.node)
    node = site.arguments["on_true_tile"]
    tile = as_tensor(ctx, ctx.value_of(node))
    if tile is None or tile.shape is None:
        raise Cannot("NKI1192", "the shape of the selected tile is not known", node)
    region = valid_region(ctx, tile)
    if any(axis > 0 for axis in region.limits):
        raise Cannot("NKI1192", "a tile that is filled in part along a free axis", site.node)
    ctx.report("NKI1192", site.node, "`nisa.affine_select` takes a destination and a pattern")
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, tile)
    if tile.buffer == "psum":  # 0.1 copied it first
        tile = copied(ctx, site.node, tile)
    assert tile.shape is not None
    other = text_of(ctx, _number(ctx, site))
    dst = destination(ctx, Result(site.node, site.target, dtype, hint="selected"), tile.shape)
    select(ctx, dst, tile, predicate.relation, other, site.node)
    return dst


def _number(ctx: Context, site: CallSite) -> ast.expr:
    node = site.arguments["on_false_value"]
    if isinstance(ctx.value_of(node), Tensor):
        raise Cannot("NKI1192", "the other value is a tile", node)
    return node


HOOKS = {
    "NKI1191": Hooks(calls={"nisa.iota": _rewrite_iota}),
    "NKI1192": Hooks(calls={"nisa.affine_select": _rewrite_affine_select}),
}
