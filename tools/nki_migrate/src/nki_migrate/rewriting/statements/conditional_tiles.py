"""Tiles and their absence: `x = A if c else B` of tiles, and the truth value of a tensor.

An argument that is a tensor or None is asked for with `is not None` from 0.2 on: a tensor has no
truth value there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nki_migrate.facts.values import Parameter, Tensor
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Reason
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.statements.scope_merging import join_branches


def test_presence(ctx: Context, test: ast.expr) -> None:
    """`if x` where x is a tensor or None → `if x is not None`."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    node = test.operand if negated else test  # type: ignore[union-attr]
    if isinstance(node, ast.Name) and _is_optional_tensor(ctx, node.id):
        text = f"{node.id} is {'' if negated else 'not '}None"
        ctx.report(Reason.PYTHON_STATE, test, f"a tensor has no truth value: `{text}`")
        ctx.rewrites[test] = text


def _is_optional_tensor(ctx: Context, name: str) -> bool:
    value = ctx.scope.values.get(name)
    if isinstance(value, Tensor):
        is_own = value.dims is None and value.storage.mentions is not None
        is_tensor = is_own and value.storage.name == name
    else:
        is_own = isinstance(value, Parameter) and value.name == name
        is_tensor = is_own and name in ctx.before.tensors
    if not is_tensor:
        return False
    arguments = ctx.function.node.args
    places = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(places), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return any(a.arg == name and isinstance(d, ast.Constant) and d.value is None for a, d in pairs)


def assign_chosen(
    ctx: Context, value: ast.IfExp, name: str, assign: Callable[[ast.expr], bool]
) -> bool:
    """`name = A if c else B` where an arm makes a tile: an `if` statement with two assignments.

    `assign` rewrites one of them, and says whether what it emitted is all of it.
    """
    ctx.report(Reason.PYTHON_STATE, value, "a tile chosen by a condition is made in an `if`")
    ctx.value_of(value.test)
    test_presence(ctx, value.test)
    test, outer = text_of(ctx, value.test), ctx.out
    before = ctx.scope.copy()
    arms: list[list[str]] = []
    scopes = []
    for arm in (value.body, value.orelse):
        ctx.out = []
        with ctx.counting_block():
            if not assign(arm):
                ctx.emit(f"{name} = {text_of(ctx, arm)}")
        arms.append(ctx.out)
        scopes.append(ctx.scope)
        clock = ctx.scope.clock
        ctx.scope = before.copy()
        ctx.scope.clock = clock
    ctx.out = outer
    for head, lines in zip((f"if {test}:", "else:"), arms, strict=True):
        ctx.emit(head)
        for line in lines:
            ctx.emit(line, 1)
    then, ctx.scope = scopes
    join_branches(ctx, then, ctx.scope)
    return True
