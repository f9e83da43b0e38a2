"""Which parameters of a kernel are floats: annotations, defaults, and launches in the same file.

0.1 gives a tile times a float another dtype than a tile times an int (trap T8), and a kernel's
parameter may be either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.lower.context import Context

__all__ = ["float_basis"]


def float_basis(ctx: Context, name: str) -> str | None:
    """The fact that says that a parameter is a float; None if there is none."""
    arguments = ctx.function.node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    own = next((a for a in every if a.arg == name), None)
    if own is None:
        return None
    if isinstance(own.annotation, ast.Name) and own.annotation.id == "float":
        return f"`{name}` is annotated as float"
    passed = list(_passed(ctx, name))
    if passed and all(_is_float(p) for p in passed):
        return f"every launch in the file passes a float as `{name}`"
    return None


def _passed(ctx: Context, name: str) -> Iterator[ast.expr | None]:
    """What the calls in the file give; None where a call does not say."""
    position = list(ctx.function.parameters).index(name)
    for node in ast.walk(ctx.index.source.tree):
        if not isinstance(node, ast.Call):
            continue
        callee = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        if not isinstance(callee, ast.Name) or callee.id != ctx.function.name:
            continue
        keyword = next((k.value for k in node.keywords if k.arg == name), None)
        simple = not any(isinstance(a, ast.Starred) for a in node.args)
        positional = node.args[position] if simple and position < len(node.args) else None
        yield keyword if keyword is not None else positional


def _is_float(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, float)
