"""Which functions of a file and of what it imports a kernel needs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nki_migrate.comments.todos import MARK

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Reached:
    """Lines of one file that a kernel needs."""

    path: Path
    first: int
    last: int


def reached(trees: Mapping[Path, ast.Module], main: Path, kernel: str) -> tuple[Reached, ...]:
    """The kernel, the functions and classes that it names, that these name, and so on.

    A name is what its own file defines, otherwise every definition of that name
    elsewhere: too much rather than too little.
    """
    defined: dict[str, list[tuple[Path, Function]]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                defined.setdefault(node.name, []).append((path, node))
    waiting = [(p, n) for p, n in defined.get(kernel, []) if p == main]
    found: dict[Function, Path] = {}
    while waiting:
        path, node = waiting.pop()
        if node in found:
            continue
        found[node] = path
        for name in _names(node):
            candidates = defined.get(name, [])
            waiting += [c for c in candidates if c[0] == path] or candidates
    return tuple(
        Reached(path, min([n.lineno, *(d.lineno for d in n.decorator_list)]), n.end_lineno or 0)
        for n, path in found.items()
    )


def _names(node: ast.AST) -> set[str]:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def module_level(tree: ast.Module) -> set[int]:
    """The lines of a file that run when it is imported: all but bodies of functions."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    last = max((n.end_lineno or 0 for n in tree.body), default=0)
    return set(range(1, last + 1)) - inside


def open_findings(
    findings: Mapping[Path, Sequence[Mapping[str, Any]]], places: Sequence[Reached]
) -> list[Mapping[str, Any]]:
    """What is left to a human in those lines."""
    return [
        finding
        for path, found in findings.items()
        for finding in found
        if is_open(finding)
        and any(p.path == path and p.first <= finding["line"] <= p.last for p in places)
    ]


def is_open(finding: Mapping[str, Any]) -> bool:
    """Whether a human has to act."""
    return not finding["applied"] and finding["severity"] in ("error", "warning")


def todos(lines: Sequence[str], place: Reached) -> list[str]:
    """The rules of the TODO comments in or directly above those lines."""
    first = place.first
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    marked = [line for line in lines[first - 1 : place.last] if MARK in line]
    return [line.partition(MARK)[2].partition(")")[0].strip() for line in marked]
