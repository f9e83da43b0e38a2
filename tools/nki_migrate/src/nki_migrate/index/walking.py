"""Walking syntax trees: `ast.walk` spends its time asking each node for all of its fields.

Contexts (`ast.Load`) and operators (`ast.Add`) have no place in a file: they are not met here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

# What holds no node, or only nodes without a place.
_BARE = {
    *("ctx", "op", "ops", "id", "attr", "kind", "conversion", "simple", "is_async", "level"),
    *("module", "type_comment", "lineno"),
}


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that may hold nodes with a place."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        bare = kind is ast.Constant
        found = self[kind] = () if bare else tuple(f for f in kind._fields if f not in _BARE)
        return found


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes of `ast.iter_child_nodes`, without contexts and operators."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [n for n in value if isinstance(n, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def bound_names(nodes: Iterable[ast.AST]) -> list[ast.Name]:
    """The names among the nodes that are stored or deleted."""
    return [n for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]


def walk(node: ast.AST) -> list[ast.AST]:
    """The node and all below it, breadth first as `ast.walk`, without contexts and operators."""
    found = [node]
    add = found.append
    for at in found:
        for name in _FIELDS[type(at)]:
            value = getattr(at, name, None)
            if type(value) is list:
                found += [n for n in value if isinstance(n, ast.AST)]
            elif isinstance(value, ast.AST):
                add(value)
    return found
