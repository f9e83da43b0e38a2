"""HW59: functions of the 0.1 package that run or time a kernel, beside a kernel of a later one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from neuroncore.checks.traps.catalog import traps
from neuroncore.findings import Finding, Region
from neuroncore.python_source import parse_python

PACKAGE = "neuronxcc"
HARNESSES = frozenset({"baremetal", "benchmark"})


def find_old_harness(script: Path, nki: str) -> list[Finding]:
    """Uses of an old harness in a script that imports a later NKI, or runs as one."""
    try:
        tree = parse_python(script.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []
    imported = {name for node in ast.walk(tree) for name in _packages(node)}
    if PACKAGE not in imported or (nki == "0.1" and "nki" not in imported):
        return []
    aliases = {name for node in ast.walk(tree) for name in _aliases(node)}
    record = traps()["HW59"]
    return [
        Finding(
            "traps", f"{ast.unparse(node)} of {PACKAGE} runs the kernel", _region(script, node),
            certainty=record.certainty, expected="the harness of the NKI version that it is for",
            got=f"NKI {nki}", cure=record.cure, source=record.source, code="HW59",
            notes=(f"device: {record.device}",),
        )
        for node in _uses(tree, aliases)
    ]  # fmt: skip


def _packages(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield (node.module or "").partition(".")[0]


def _aliases(node: ast.AST) -> Iterator[str]:
    """Names that are bound to the old package, to its nki or to a harness."""
    if PACKAGE not in _packages(node):
        return
    if isinstance(node, ast.Import):
        yield from (alias.asname or PACKAGE for alias in node.names if PACKAGE in alias.name)
    elif isinstance(node, ast.ImportFrom):
        kept = (alias for alias in node.names if alias.name in {"nki", *HARNESSES})
        yield from (alias.asname or alias.name for alias in kept)


def _uses(tree: ast.Module, aliases: set[str]) -> Iterator[ast.Attribute | ast.Name]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Name)) or _root(node) not in aliases:
            continue
        if (node.attr if isinstance(node, ast.Attribute) else node.id) in HARNESSES:
            yield node


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", "")


def _region(script: Path, node: ast.expr) -> Region:
    end = node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1
    return Region(str(script), node.lineno, node.col_offset + 1, *end)
