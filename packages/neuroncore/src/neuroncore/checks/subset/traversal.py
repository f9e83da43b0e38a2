"""Walking what a kernel runs: without decorators, annotations and default values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOT_RUN = {"decorator_list", "annotation", "returns", "type_params", "args"}
_ANNOTATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign, ast.ClassDef)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that run when the kernel does."""
    for name, value in ast.iter_fields(node):
        if name in _NOT_RUN and isinstance(node, _ANNOTATED):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield item


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and everything in it that runs, in the order of the source."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed([*children(node)])


def parents(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """The node around each node below `root`."""
    return {child: node for node in walk(root) for child in children(node)}


def parameters(node: Function) -> list[ast.arg]:
    """All parameters with a name of their own, in order; not `*args` and `**kwargs`."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def bound_names(node: Function) -> set[str]:
    """Parameters, names that the function assigns, and the names of nested functions."""
    names = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    for part in walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, Function | ast.ClassDef) and part is not node:
            names.add(part.name)
    return names
