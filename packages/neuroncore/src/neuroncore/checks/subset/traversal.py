"""Walking what a kernel runs: without decorators, annotations and default values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOT_RUN = {"decorator_list", "annotation", "returns", "type_params", "args"}
_ANNOTATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign, ast.ClassDef)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that run when the kernel does."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        not_run = _NOT_RUN if issubclass(kind, _ANNOTATED) else ()
        found = self[kind] = tuple(name for name in kind._fields if name not in not_run)
        return found


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that run when the kernel does."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and everything in it that runs, in the order of the source."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(children(node))


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
