"""Slices as the bounds of an axis: `a:b:c`, `nl.ds(start, size)`, `slice(a, b)`."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Const, Slice, Sym, Value
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_number

_ONE, _ZERO = Sym.number(1), Sym.number(0)


def is_colon(node: ast.Slice) -> bool:
    return node.lower is None and node.upper is None and node.step is None


def number_of(ctx: Context, value: Value | ast.Slice) -> Sym | None:
    return None if isinstance(value, ast.Slice) else as_number(ctx, value)


def _of_object(value: Value) -> tuple[Sym, Sym, Sym] | None:
    """`slice(a, b)`, or `nl.ds(start, size)` as it was evaluated."""
    if isinstance(value, Slice):
        return value.start, value.extent, _ONE
    if isinstance(value, Const) and isinstance(value.value, tuple):
        start, extent = value.value
        return start, extent, _ONE
    return None


def slice_of(
    ctx: Context, value: Value | ast.Slice, size: Sym | None, node: ast.AST
) -> tuple[Sym, Sym, Sym] | None:
    """(start, extent, step) of `a:b:c` or `nl.ds(start, size)`; None if it is neither."""
    if not isinstance(value, ast.Slice):
        return _of_object(value)
    start, step = _bound(ctx, value.lower, _ZERO, node), _bound(ctx, value.step, _ONE, node)
    stop = _bound(ctx, value.upper, size, node)
    if stop.value is not None and stop.value < 0 and size is not None:
        stop = size + stop
    if step.value == 1:
        return start, stop - start, _ONE
    if step.value is None or step.value < 1:
        text = "a slice with a step that is not a positive literal"
        raise Cannot(Reason.SCALED_INDEX, text, node)
    width = stop - start
    poly = ctx.facts.quotient(width.poly, step.poly, up=True)
    if poly.constant is not None:
        return start, Sym.number(poly.constant), step
    text = f"({(width + Sym.number(step.value - 1)).text}) // {step.value}"
    return start, Sym(poly, text, level=2, names=width.names), step


def _bound(ctx: Context, part: ast.expr | None, default: Sym | None, node: ast.AST) -> Sym:
    """The number of a part of a slice."""
    if part is None:
        if default is None:
            text = "an open slice of a dimension of unknown size"
            raise Cannot(Reason.UNKNOWN_RANK, text, node)
        return default
    found = as_number(ctx, ctx.value_of(part))
    if found is None:
        text = "a slice bound that is not a compile-time number"
        raise Cannot(Reason.DYNAMIC_INDEX, text, node)
    return found
