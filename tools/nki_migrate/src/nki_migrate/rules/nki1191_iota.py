"""NKI1191: `nisa.iota` takes a pattern."""

from __future__ import annotations

import ast

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Index, Sym, Tensor, is_none
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import destination, emit, temporary
from nki_migrate.rules.rule import Hooks

_ZERO = Sym.number(0)


def rewrite_iota(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nisa.iota(expr, dtype)`: the numbers of an index expression as a tile."""
    without_mask(ctx, site)
    index = ctx.value_of(site.arguments["expr"])
    if not isinstance(index, Index) or len(index.extents) < 2:
        raise Cannot("NKI1191", "the numbers are not affine in index tensors", site.node)
    ctx.report("NKI1191", site.node, "`nisa.iota` takes a destination and a pattern")
    dtype = as_dtype(ctx, site.get("dtype"))
    dst = destination(ctx, target, index.extents, dtype, "sbuf", site.node, hint="numbers")
    arguments = affine_pattern(ctx, index, index.extents)
    emit(ctx, "iota", dst, arguments, None, rank=len(index.extents))
    return dst


def tile_of_numbers(ctx: Context, node: ast.AST, index: Index) -> Tensor:
    """An index expression as an operand: 0.1 made int32 numbers of it."""
    if len(index.extents) < 2:
        raise Cannot("NKI1191", "an index tensor of one dimension as an operand", node)
    ctx.report("NKI1191", node, "an index expression as an operand is a tile of its numbers")
    whole = DType(f"{ctx.alias('nl')}.int32", "int32")
    dst = temporary(ctx, "numbers", index.extents, whole, "sbuf", node)
    emit(ctx, "iota", dst, affine_pattern(ctx, index, index.extents), None, rank=len(index.extents))
    return dst


def without_mask(ctx: Context, site: CallSite) -> None:
    node = site.get("mask")
    if node is not None and not is_none(ctx.value_of(node)):
        raise Cannot(Reason.OTHER_MASK, f"a mask on `{site.name}`", node)


def affine_pattern(
    ctx: Context, index: Index, shape: tuple[Sym, ...]
) -> list[tuple[str, Tensor | str]]:
    steps = dict(index.terms)
    pairs = [
        f"[{ctx.spell(steps.get(axis, _ZERO))}, {ctx.spell(size)}]"
        for axis, size in enumerate(shape)
        if axis
    ]
    return [
        ("pattern", f"[{', '.join(pairs)}]"),
        ("offset", ctx.spell(index.offset)),
        ("channel_multiplier", ctx.spell(steps.get(0, _ZERO))),
    ]


HOOKS = Hooks(calls={"nisa.iota": rewrite_iota})
