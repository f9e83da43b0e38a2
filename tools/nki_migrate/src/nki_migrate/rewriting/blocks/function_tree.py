"""A function by names and by suites: where each name occurs, and the suites around each node."""

from __future__ import annotations

import ast
from functools import lru_cache

from nki_migrate.index import children, walk

Suite = list[ast.stmt]
Step = tuple[Suite, ast.stmt]
_AROUND = ast.For | ast.If | ast.With | ast.FunctionDef


class Tree:
    """A function: where each name occurs, and the suites that each node is in."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        self.names: dict[str, list[ast.Name]] = {}
        nodes = walk(function)
        self.arguments = [n.arg for n in nodes if isinstance(n, ast.arg)]
        self.helpers = [n.name for n in nodes if isinstance(n, ast.FunctionDef)]
        self.parents: dict[ast.AST, ast.AST] = {}
        self._suites: dict[ast.stmt, Suite] = {}
        for node in nodes:
            if isinstance(node, ast.Name):
                self.names.setdefault(node.id, []).append(node)
            for child in children(node):
                self.parents[child] = node
            for suite in _suites(node):
                self._suites |= dict.fromkeys(suite, suite)

    def bindings(self, name: str) -> int:
        """How often the name is bound."""
        stored = sum(not isinstance(n.ctx, ast.Load) for n in self.names.get(name, ()))
        return stored + self.arguments.count(name)

    def is_constant(self, name: str) -> bool:
        """Whether the name means one thing as long as the function runs."""
        if not self.bindings(name):
            return True
        if self.bindings(name) > 1 or name in self.helpers:
            return False
        own = (a.arg for a in walk(self.function.args) if isinstance(a, ast.arg))
        if name in self.arguments:
            return name in own
        bound = next(n for n in self.names[name] if not isinstance(n.ctx, ast.Load))
        path = self.path(bound)
        return len(path) == 1 and not isinstance(path[0][1], ast.For | ast.While)

    def path(self, node: ast.AST) -> list[Step]:
        """The suites around a node, outermost first, each with its statement on the way."""
        steps: list[Step] = []
        at: ast.AST | None = node
        while at is not None and at is not self.function:
            if isinstance(at, ast.stmt):
                steps.insert(0, (self._suites[at], at))
            at = self.parents.get(at)
        return steps


@lru_cache(maxsize=1)
def tree_of(function: ast.FunctionDef) -> Tree:
    return Tree(function)


def _suites(node: ast.AST) -> list[Suite]:
    found = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return [s for s in found if isinstance(s, list)]


def stored(node: ast.AST) -> list[str]:
    names = (n for n in walk(node) if isinstance(n, ast.Name))
    return [n.id for n in names if not isinstance(n.ctx, ast.Load)]


def between(home: list[Step], path: list[Step]) -> tuple[ast.stmt, ...] | None:
    """The statements around the last suite of the path, from the suite of the allocation on.

    None where the allocation is not seen, or may be seen by what is not understood.
    """
    depth = len(home)
    if len(path) < depth or path[depth - 1][0] is not home[-1][0]:
        return None
    around = tuple(s for _, s in path[depth - 1 : -1])
    return around if all(isinstance(s, _AROUND) for s in around) else None
