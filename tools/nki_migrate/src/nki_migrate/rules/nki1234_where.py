"""`nl.where`: the other value everywhere, then this one where the condition holds (NKI1234)."""

from __future__ import annotations

from dataclasses import replace

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Tensor, Value
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import (
    Operand,
    Result,
    destination,
    emit,
    temporary,
)
from nki_migrate.rewriting.destinations.regions import valid_region
from nki_migrate.rewriting.inference.promotion import met, two_guessed, with_number
from nki_migrate.rewriting.operations.broadcasting import form_of
from nki_migrate.rewriting.operations.operands import scalar_of
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.tensors import as_tensor, own_dtype, tile_of
from nki_migrate.rules.rule import Hooks

_PREDICATES = {"uint8", "uint16", "uint32"}


def _rewrite_where(ctx: Context, site: CallSite) -> Tensor:
    """`nl.where(c, x, y)`: y into the tile, x over it under the predicate c."""
    node, condition = site.node, _condition(ctx, site)
    (chosen, x_float), (other, y_float) = (_operand(ctx, site, name) for name in ("x", "y"))
    tiles = [t for t in (chosen, other) if isinstance(t, Tensor)]
    if any(form_of(ctx, condition, t, node) != "same" for t in tiles):
        raise Cannot("NKI1234", "a choice between tiles of another shape", node)
    ctx.report("NKI1234", node, "a choice is a copy, and a copy under a predicate")
    dtype = as_dtype(ctx, site.get("dtype")) or _dtype(ctx, chosen, other, x_float or y_float)
    region = valid_region(ctx, condition, *tiles)
    guess = two_guessed(ctx, *(own_dtype(ctx, t) for t in tiles)) if len(tiles) == 2 else None
    result = Result(node, site.target, dtype, region, guess, "chosen")
    final = site.target.view
    if final is None or not any(t.storage is final.storage for t in (condition, *tiles)):
        return _choice(ctx, condition, chosen, other, result)
    # writing to the target would destroy what is still to be read
    result = replace(result, target=NOWHERE, dtype=dtype or own_dtype(ctx, final))
    dst = _choice(ctx, condition, chosen, other, result)
    emit(ctx, "tensor_copy", final, [("src", dst)], region)
    return final


def _condition(ctx: Context, site: CallSite) -> Tensor:
    condition = tile_of(ctx, site, "condition")
    if condition is None or condition.shape is None:
        raise Cannot("NKI1234", "a condition that is not known to be a tile", site.node)
    if site.get("mask") is not None:
        raise Cannot("NKI1234", "a mask on a choice", site.node)
    return condition


def _choice(
    ctx: Context, condition: Tensor, chosen: Operand, other: Operand, result: Result
) -> Tensor:
    assert condition.shape is not None
    region = result.region
    predicate = _predicate(ctx, condition, result)
    dst = destination(ctx, result, condition.shape)
    if isinstance(other, Tensor):
        emit(ctx, "tensor_copy", dst, [("src", other)], region)
    else:
        emit(ctx, "memset", dst, [("value", other)], region)
    own = own_dtype(ctx, dst)
    if isinstance(chosen, Tensor) and own_dtype(ctx, chosen).key != own.key:
        chosen = copy_into(ctx, chosen, Result(result.node, NOWHERE, own, region, hint="cast"))
    operands = [("src", chosen), ("predicate", predicate)]
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
