"""Parameters that a kernel changes and returns.

They are annotated as mutable in 0.1. From 0.2 on a store to a parameter is a store, and what is to
reach the caller is returned: the caches of `attention_block_tkg` in the NKI Library are such
parameters.
"""

from __future__ import annotations

import ast

from nki_migrate.index.file import FunctionNode

_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def is_in_out(node: FunctionNode, name: str) -> bool:
    """Whether a parameter is annotated as mutable, never bound anew, and always returned."""
    if not _is_mutable(node.args, name):
        return False
    inner = _own_nodes(node)
    if any(isinstance(n, ast.Name) and n.id == name and _binds(n) for n in inner):
        return False
    returns = [n.value for n in inner if isinstance(n, ast.Return)]
    return bool(returns) and all(_gives(value, name) for value in returns)


def is_output(node: FunctionNode, name: str) -> bool:
    """Whether a function returns nothing, so that a parameter that it writes is its output."""
    inner = _own_nodes(node)
    is_rebound = any(isinstance(n, ast.Name) and n.id == name and _binds(n) for n in inner)
    return not is_rebound and not any(isinstance(n, ast.Return | ast.Yield) for n in inner)


def _is_mutable(arguments: ast.arguments, name: str) -> bool:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    annotation = next((a.annotation for a in every if a.arg == name), None)
    return annotation is not None and "mutable" in ast.unparse(annotation)


def _own_nodes(node: FunctionNode) -> list[ast.AST]:
    found: list[ast.AST] = []
    queue: list[ast.AST] = list(node.body)
    while queue:
        current = queue.pop()
        if isinstance(current, _OTHER_SCOPES):
            continue
        found.append(current)
        queue.extend(ast.iter_child_nodes(current))
    return found


def _binds(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _gives(value: ast.expr | None, name: str) -> bool:
    items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    return any(isinstance(item, ast.Name) and item.id == name for item in items)
