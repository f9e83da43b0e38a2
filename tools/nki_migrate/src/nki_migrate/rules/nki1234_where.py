"""`nl.where`: the other value everywhere, then this one where the condition holds (NKI1234)."""

from __future__ import annotations

import ast
from dataclasses import replace

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Mask, Sym, Tensor, Value
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import Operand, Result, destination, emit
from nki_migrate.rewriting.destinations.regions import valid_region
from nki_migrate.rewriting.inference.promotion import met, two_guessed, with_number
from nki_migrate.rewriting.operations.broadcasting import broadcast_to, form_of, spread_shape
from nki_migrate.rewriting.operations.masked_calls import copy_where
from nki_migrate.rewriting.operations.operands import scalar_of
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.masks import EVERYWHERE
from nki_migrate.rewriting.views.tensors import as_tensor, own_dtype, tile_of
from nki_migrate.rules.rule import Hooks

_PREDICATES = {"uint8", "uint16", "uint32"}


def _rewrite_where(ctx: Context, site: CallSite) -> Tensor:
    """`nl.where(c, x, y)`: y into the tile, x over it under the predicate c."""
    node, condition = site.node, _condition(ctx, site)
    (chosen, x_float), (other, y_float) = (_operand(ctx, site, name) for name in ("x", "y"))
    tiles = [t for t in (chosen, other) if isinstance(t, Tensor)]
    read = [condition, *tiles] if isinstance(condition, Tensor) else tiles
    if not read:
        raise Cannot("NKI1234", "a choice between numbers by a mask", node)
    shape = _common_shape(ctx, read, node)
    ctx.report("NKI1234", node, "a choice is a copy, and a copy under a predicate")
    dtype = as_dtype(ctx, site.get("dtype")) or _dtype(ctx, chosen, other, x_float or y_float)
    guess = two_guessed(ctx, *(own_dtype(ctx, t) for t in tiles)) if len(tiles) == 2 else None
    result = Result(node, site.target, dtype, None, guess, "chosen")
    if isinstance(condition, Tensor):
        condition = broadcast_to(ctx, node, condition, shape)
        chosen, other = (_widened(ctx, x, shape, node) for x in (chosen, other))
    final = site.target.view
    if final is None or not any(t.storage is final.storage for t in read):
        return _choice(ctx, condition, chosen, other, shape, result)
    # writing to the target would destroy what is still to be read
    result = replace(result, target=NOWHERE, dtype=dtype or own_dtype(ctx, final))
    dst = _choice(ctx, condition, chosen, other, shape, result)
    emit(ctx, "tensor_copy", final, [("src", dst)], valid_region(ctx, dst))
    return final


def _common_shape(ctx: Context, tiles: list[Tensor], node: ast.AST) -> tuple[Sym, ...]:
    """The shape that all tiles are repeated to."""
    first, *others = tiles
    for tile in others:
        if form_of(ctx, first, tile, node) != "same":
            first = Tensor(first.storage, spread_shape(ctx, first, tile))
    if first.shape is None:
        raise Cannot("NKI1234", "a choice between tiles of unknown shape", node)
    return first.shape


def _widened(ctx: Context, operand: Operand, shape: tuple[Sym, ...], node: ast.AST) -> Operand:
    if not isinstance(operand, Tensor) or operand.shape is None:
        return operand
    return broadcast_to(ctx, node, operand, shape)


def _condition(ctx: Context, site: CallSite) -> Tensor | Mask:
    node = site.get("condition")
    value = ctx.value_of(node) if node is not None else None
    condition = value if isinstance(value, Mask) else tile_of(ctx, site, "condition")
    if condition is None or (isinstance(condition, Tensor) and condition.shape is None):
        raise Cannot("NKI1234", "a condition that is not known to be a tile", site.node)
    if site.get("mask") is not None:
        raise Cannot("NKI1234", "a mask on a choice", site.node)
    return condition


def _choice(
    ctx: Context,
    condition: Tensor | Mask,
    chosen: Operand,
    other: Operand,
    shape: tuple[Sym, ...],
    result: Result,
) -> Tensor:
    tiles = [t for t in (condition, chosen, other) if isinstance(t, Tensor)]
    if isinstance(condition, Mask):
        region = valid_region(ctx, other) if isinstance(other, Tensor) else EVERYWHERE
    else:
        region = valid_region(ctx, *tiles)
    result = replace(result, region=region)
    predicate = _predicate(ctx, condition, result) if isinstance(condition, Tensor) else None
    dst = destination(ctx, result, shape)
    if isinstance(other, Tensor):
        emit(ctx, "tensor_copy", dst, [("src", other)], region)
    else:
        emit(ctx, "memset", dst, [("value", other)], region)
    if isinstance(condition, Mask):
        copy_where(ctx, result.node, dst, chosen, condition)
        return dst
    own = own_dtype(ctx, dst)
    if isinstance(chosen, Tensor) and own_dtype(ctx, chosen).key != own.key:
        chosen = copy_into(ctx, chosen, Result(result.node, NOWHERE, own, region, hint="cast"))
    operands = [("src", chosen), ("predicate", predicate or "")]
    emit(ctx, "tensor_copy_predicated", dst, operands, region)
    return dst


def _operand(ctx: Context, site: CallSite, name: str) -> tuple[Operand, bool | None]:
    """A tile, or a number's text and whether it is a float."""
    node = site.get(name)
    if node is None:
        raise Cannot("NKI1234", f"a choice without {name}", site.node)
    value: Value = ctx.value_of(node)
    tensor = as_tensor(ctx, value) if isinstance(value, Tensor) else None
    if tensor is not None:
        return tensor, False
    _, text, is_float = scalar_of(ctx, value, node)
    return text, is_float


def _dtype(ctx: Context, a: Operand, b: Operand, is_float: bool | None) -> DType | None:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return met(ctx, own_dtype(ctx, a), own_dtype(ctx, b))
    tile, number = (a, b) if isinstance(a, Tensor) else (b, a)
    if not isinstance(tile, Tensor) or isinstance(number, Tensor):
        return None
    own, is_truth = own_dtype(ctx, tile), number in {"True", "False"}
    return with_number(ctx, "add", own, is_float, is_truth=is_truth)


def _predicate(ctx: Context, condition: Tensor, result: Result) -> Tensor:
    """The condition as unsigned integers, as the instruction takes it."""
    if own_dtype(ctx, condition).key in _PREDICATES:
        return condition
    nl = ctx.alias("nl")
    kind = DType(f"{nl}.uint8", "uint8")
    assert condition.shape is not None
    dst = temporary(ctx, "predicate", condition.shape, kind, "sbuf", result.node)
    operands = [("data", condition), ("op0", f"{nl}.not_equal"), ("operand0", "0.0")]
    emit(ctx, "tensor_scalar", dst, operands, result.region)
    return dst


HOOKS = Hooks(calls={"nl.where": _rewrite_where})
