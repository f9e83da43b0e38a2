"""Expressions whose value a statement needs at a place of its own."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Tensor, Value
from nki_migrate.rewriting.context.call_site import Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.expressions.compile_time_calls import KNOWN_CALLS, builtin_name
from nki_migrate.rewriting.operations.calls import rewrite_call
from nki_migrate.rewriting.operations.operators import binary_operator


def makes_tile(ctx: Context, node: ast.expr) -> bool:
    """Whether an expression computes a new tile rather than naming one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return not isinstance(node, ast.Name | ast.Attribute)


def value_into(ctx: Context, node: ast.expr, target: Target) -> Value:
    """The value of an expression; if it is one instruction, the instruction writes to `target`."""
    if isinstance(node, ast.Call):
        canonical = ctx.index.canonical(node.func)
        if KNOWN_CALLS.get(canonical or builtin_name(ctx, node)) is None:
            return rewrite_call(ctx, node, canonical, target)
    if isinstance(node, ast.BinOp):
        left, right = ctx.value_of(node.left), ctx.value_of(node.right)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return binary_operator(ctx, node, left, right, target)
    return ctx.value_of(node)


def is_device_call(ctx: Context, node: ast.expr) -> bool:
    name = ctx.index.canonical(node.func) if isinstance(node, ast.Call) else None
    return name is not None and name.partition(".")[0] in {"nl", "nisa"} and name not in KNOWN_CALLS
