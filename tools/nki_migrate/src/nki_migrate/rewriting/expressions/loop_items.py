"""Loops over Python lists: which of their variables are numbers, and of what kind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from nki_migrate.facts.values import Parameter
from nki_migrate.index import is_shadowed
from nki_migrate.rewriting.context.context import Context

Kind = type | None | tuple["Kind", ...]
"""int or float, None for anything else, a tuple of the kinds of its elements for a tuple."""


def items_of(ctx: Context, node: ast.expr) -> list[Kind] | None:
    """The kinds of what a loop over an expression binds, one for each turn; None if unknown."""
    if isinstance(node, ast.Name) and node.id not in ctx.scope.values:
        constant = _of_module(ctx, node.id)
        return None if constant is None else items_of(ctx, constant)
    if isinstance(node, ast.Tuple | ast.List):
        return [_kind(element) for element in node.elts]
    return _of_call(ctx, node) if isinstance(node, ast.Call) else None


def _of_call(ctx: Context, node: ast.Call) -> list[Kind] | None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    of_builtin = _BUILTINS.get(name)
    if of_builtin is None or not node.args or node.keywords or is_shadowed(ctx.index, node, name):
        return None
    return of_builtin([items_of(ctx, a) for a in node.args])


def _of_module(ctx: Context, name: str) -> ast.expr | None:
    """The tuple or list that a module-level name is always bound to."""
    found = [
        statement.value
        for statement in ctx.index.source.tree.body
        if isinstance(statement, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)
    ]
    is_fixed = len(found) == 1 and name not in ctx.index.changing
    return found[0] if is_fixed and isinstance(found[0], ast.Tuple | ast.List) else None


_Items = list[Kind] | None


def _zipped(parts: Sequence[_Items]) -> _Items:
    lengths = [len(part) for part in parts if part is not None]
    if not lengths:
        return None
    columns = [part or [None] * min(lengths) for part in parts]
    return list(zip(*columns, strict=False))


_BUILTINS: dict[str, Callable[[Sequence[_Items]], _Items]] = {
    "enumerate": lambda parts: _zipped([[int] * len(parts[0] or ()), parts[0]]),
    "reversed": lambda parts: parts[0],
    "zip": _zipped,
}


def _kind(node: ast.expr) -> Kind:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_kind(element) for element in node.elts)
    value = node.value if isinstance(node, ast.Constant) else None
    return type(value) if type(value) in (int, float) else None


def note_numbers(ctx: Context, target: ast.expr, kinds: Sequence[Kind] | None) -> None:
    """Note the kind of each variable that is a number in every turn."""
    if not kinds:
        return
    if isinstance(target, ast.Tuple | ast.List):
        for position, element in enumerate(target.elts):
            note_numbers(ctx, element, [_part(kind, position) for kind in kinds])
        return
    value = ctx.scope.values.get(target.id) if isinstance(target, ast.Name) else None
    if isinstance(value, Parameter) and set(kinds) in ({int}, {float}):
        kind = kinds[0]
        assert isinstance(kind, type)
        ctx.kinds[f"{value.name}@{value.version}"] = kind


def _part(kind: Kind, position: int) -> Kind:
    """The kind of one element of a tuple."""
    return kind[position] if isinstance(kind, tuple) and position < len(kind) else None
