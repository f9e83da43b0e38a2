"""Calls under a mask other than a rectangle: the whole result, and a copy of it under a predicate.

A predicate is a tile of ones from which `affine_select` takes out what a mask leaves out. A result
that gets a tile of its own needs none: what the mask leaves out of it is undefined in 0.1.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Bound, Index, Mask, Relation, Sym, Tensor, Value
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite, Rewrite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import Operand, Result, emit
from nki_migrate.rewriting.destinations.regions import valid_region
from nki_migrate.rewriting.destinations.start_partition import starts_legally
from nki_migrate.rewriting.inference.observations import seen_same
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.masks import region_of
from nki_migrate.rewriting.views.tensors import as_tensor, is_whole, own_dtype

_OF_ISA = ("activation", "reciprocal", "tensor_copy", "tensor_scalar", "tensor_tensor")
_OF_ONE = (
    "copy",
    "load",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "square",
    "negative",
    "abs",
    "relu",
    "tanh",
)
_OF_TWO = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
ELEMENTWISE = {f"nisa.{n}" for n in _OF_ISA} | {f"nl.{n}" for n in (*_OF_ONE, *_OF_TWO)}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip
_ZERO = Sym.number(0)


def under_predicate(ctx: Context, site: CallSite, rewrite: Rewrite) -> Value | None:
    """The value of a call whose mask needs a predicate; None for other calls."""
    parts, view = _predicate(ctx, site), site.target.view
    if parts is None:
        return None
    node, mask, rows = parts
    ctx.report(Reason.PREDICATE_TILE, node, "a mask over several axes is a predicate")
    ctx.masks[node] = Mask(tuple(b for b in mask.bounds if b not in rows), mask.predicates)
    try:
        whole = rewrite(ctx, site if view is None else replace(site, target=NOWHERE))
    finally:
        del ctx.masks[node]
    if view is None or view.shape is None or not isinstance(whole, Tensor):
        return whole
    shape = view.shape
    relations = [p.relation for p in mask.planes] + [_relation(b, shape) for b in rows]
    _copy_under(ctx, node, view, whole, relations, mask.predicates)
    return view


def _predicate(ctx: Context, site: CallSite) -> tuple[ast.expr, Mask, list[Bound]] | None:
    """A mask that no region expresses, and its bounds that begin where no instruction may."""
    node = site.arguments.get("mask")
    if node is None or site.name not in ELEMENTWISE or site.target.accumulate:
        return None
    mask, view = ctx.value_of(node), site.target.view
    if not isinstance(mask, Mask) or mask.opaque:
        return None
    rank = 2 if view is None else len(view.shape or ())
    rows = [b for b in mask.bounds if _cuts_rows(b, rank)]
    is_needed = bool(mask.planes or rows)
    is_readable = site.name != "nl.load" or not is_needed or _loads_all(ctx, site)
    return (node, mask, rows) if is_needed and is_readable else None


def _cuts_rows(bound: Bound, rank: int) -> bool:
    """Whether a bound has an instruction begin at a partition where it may not."""
    first = bound.limit - bound.offset
    on_rows = bound.is_lower and bound.axis == -rank
    return on_rows and not starts_legally(first, bound.extent - first)


def _relation(bound: Bound, shape: tuple[Sym, ...]) -> Relation:
    """A bound as a relation over all axes."""
    terms = ((len(shape) + bound.axis, bound.coefficient),)
    return ast.GtE if bound.is_lower else ast.Lt, Index(shape, terms, bound.offset - bound.limit)


def _loads_all(ctx: Context, site: CallSite) -> bool:
    """Whether what the mask leaves out of a load is part of the tensor, too."""
    source = as_tensor(ctx, ctx.value_of(site.arguments["src"]))
    return source is not None and source.dims is not None and is_whole(ctx, source)


def _copy_under(
    ctx: Context,
    node: ast.AST,
    view: Tensor,
    whole: Tensor,
    relations: Sequence[Relation],
    predicates: Sequence[str],
) -> None:
    """Copy to a view what satisfies all relations, and the predicates on numbers."""
    own, nl = own_dtype(ctx, view), ctx.alias("nl")
    if own_dtype(ctx, whole).key != own.key:
        whole = copy_into(ctx, whole, Result(node, dtype=own, hint="cast"))
    assert view.shape is not None
    kind = DType(f"{nl}.uint8", "uint8")
    places = temporary(ctx, "is_kept", view.shape, kind, "sbuf", node)
    emit(ctx, "memset", places, [("value", "1")])
    for relation in relations:
        select(ctx, places, places, relation, "0", node)
    operands = [("src", whole), ("predicate", places)]
    region = valid_region(ctx, whole)
    region = replace(region, guards=(*predicates, *region.guards))
    emit(ctx, "tensor_copy_predicated", view, operands, region)


def copy_where(ctx: Context, node: ast.AST, dst: Tensor, value: Operand, mask: Mask) -> None:
    """Copy a tile or a number to a tile where a mask holds."""
    assert dst.shape is not None
    if not (mask.planes or mask.opaque):
        name = "tensor_copy" if isinstance(value, Tensor) else "memset"
        part = "src" if isinstance(value, Tensor) else "value"
        region = region_of(ctx, mask, dst.shape, node, partial(_are_same, ctx))
        emit(ctx, name, dst, [(part, value)], region)
        return
    if mask.opaque:
        raise Cannot(Reason.OTHER_MASK, f"a mask that {mask.opaque}", node)
    if not isinstance(value, Tensor):
        tile = temporary(ctx, "value", dst.shape, own_dtype(ctx, dst), "sbuf", node)
        emit(ctx, "memset", tile, [("value", value)])
        value = tile
    relations = [p.relation for p in mask.planes] + [_relation(b, dst.shape) for b in mask.bounds]
    _copy_under(ctx, node, dst, value, relations, mask.predicates)


def _are_same(ctx: Context, a: Poly, b: Poly) -> bool:
    return ctx.facts.same(a, b) or seen_same(ctx, a, b)


def select(
    ctx: Context, dst: Tensor, tile: Tensor, relation: Relation, other: str, node: ast.AST
) -> None:
    """`nisa.affine_select`: the tile where a relation holds, a number elsewhere."""
    operator, index = relation
    assert tile.shape is not None
    if len(index.extents) != len(tile.shape):
        text = "predicate and tile have different numbers of axes"
        raise Cannot(Reason.AFFINE_SELECT, text, node)
    for axis, (extent, size) in enumerate(zip(index.extents, tile.shape, strict=True)):
        same = ctx.facts.same(extent.poly, size.poly) or seen_same(ctx, extent.poly, size.poly)
        if extent.value != 1 and not same:
            text = f"axis {axis} of the predicate is {extent.text}, of the tile {size.text}"
            raise Cannot(Reason.AFFINE_SELECT, text, node)
    operands = [
        *affine_pattern(ctx, index, tile.shape),
        ("on_true_tile", tile),
        ("on_false_value", other),
        ("cmp_op", f"{ctx.alias('nl')}.{_COMPARISONS[operator]}"),
    ]
    emit(ctx, "affine_select", dst, operands, valid_region(ctx, tile))


def affine_pattern(ctx: Context, index: Index, shape: tuple[Sym, ...]) -> list[tuple[str, Operand]]:
    """The numbers of an affine function of the axes, as `iota` and `affine_select` take them."""
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
