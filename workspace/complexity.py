"""`python workspace/complexity.py [LIMIT]`: functions whose complexity exceeds LIMIT (10).

Complexity is 1 + branches, loops, handlers, `case`, conditional expressions, boolean operators,
comprehensions and asserts. A nested function is counted by itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from members import ROOT, members

LIMIT = 10
DECISIONS = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case, ast.IfExp,
    ast.comprehension, ast.Assert,
)  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the source and its complexity."""

    path: Path
    line: int
    name: str
    complexity: int


def complexity(function: ast.AST) -> int:
    """1 + the decisions of the function's own body."""
    return 1 + sum(map(_decisions, _own_nodes(function)))


def _decisions(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    return isinstance(node, DECISIONS)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Every node below `function` that is not part of a nested function."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from _own_nodes(child)


def functions(path: Path) -> Iterator[Function]:
    """Every function of the file, methods and nested functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTIONS):
            yield Function(path, node.lineno, node.name, complexity(node))


def source_functions() -> Iterator[Function]:
    """Every function of every package's source."""
    for member in members():
        for path in sorted(member.source.rglob("*.py")):
            yield from functions(path)


def main(arguments: list[str]) -> int:
    """Print the functions above the limit, the most complex first, and how many there are."""
    limit = int(arguments[0]) if arguments else LIMIT
    above = [f for f in source_functions() if f.complexity > limit]
    for function in sorted(above, key=lambda f: -f.complexity):
        place = f"{function.path.relative_to(ROOT)}:{function.line}"
        print(f"{function.complexity:4} {place} {function.name}")
    print(f"{len(above)} functions with complexity > {limit}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
