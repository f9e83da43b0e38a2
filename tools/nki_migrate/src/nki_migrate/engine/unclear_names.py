"""Files whose names are ambiguous: in their calls, or in the code that migration would write.

They are left as they are, with a finding that says which line to change first. A kernel that the
tool cannot read must not look migrated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.index import FileIndex
from nki_migrate.index.names import dotted
from nki_migrate.rules.run_rules import RunRule

# What migrated code calls the modules, and what they are.
_WRITTEN = {"nki": "nki", "nisa": "nki.isa", "nl": "nki.language"}
_MODULES = {"nki", "nl", "nisa", "ncc"}


def unclear_names(index: FileIndex) -> list[Finding]:
    """A finding for each line that has to change before the file can be migrated."""
    found = dict((*_stars(index), *_aliases(index), *_clashes(index)))
    return [
        Finding(
            RunRule.UNCLEAR_NAMES, place=index.source.region(node), severity=Severity.ERROR,
            safety=Safety.MANUAL, message=f"{text}; nothing of this file was migrated",
        )
        for node, text in sorted(found.items(), key=lambda item: index.source.span(item[0]))
    ]  # fmt: skip


def _stars(index: FileIndex) -> Iterator[tuple[ast.AST, str]]:
    for name in index.imports:
        if name.local == "*" and name.path.removesuffix(".*").startswith(("neuronxcc", "nki.")):
            module = name.path.removesuffix(".*")
            yield name.statement, f"`import *` hides which names come from {module}: name them"


def _aliases(index: FileIndex) -> Iterator[tuple[ast.AST, str]]:
    """`L = nl`, and `load = nl.load` where `load` is called."""
    called = {dotted(node.func) for node in index.nodes if isinstance(node, ast.Call)}
    for node in index.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name | ast.Attribute):
            continue
        meant = index.canonical(node.value) or ""
        names = {name for target in node.targets if (name := dotted(target))}
        is_alias = meant in _MODULES or (_is_function(meant) and not called.isdisjoint(names))
        if is_alias and (index.path(node.value) or "").startswith("neuronxcc"):
            name = min(names, default=index.source.segment(node.targets[0]))
            yield (
                node,
                f"`{name}` is another name for {meant}, which is not followed: write {meant}",
            )


def _is_function(meant: str) -> bool:
    """Whether this is the canonical name of a function for the device."""
    name = meant.rpartition(".")[2]
    return meant.startswith(("nl.", "nisa.")) and name.islower() and "jit" not in meant


def _clashes(index: FileIndex) -> Iterator[tuple[ast.AST, str]]:
    """The names that migrated code uses for modules, bound to something else."""
    written = [i for i in index.imports if i.local in _WRITTEN]
    ours = {i.local for i in written if _is_nki(i.path)}
    for name in written:
        if name.local not in ours:
            yield name.statement, _clash(name.local)
    for node in index.nodes:
        for name, place in _bound(node):
            if name in _WRITTEN and (_is_device(node, index) or _at_top(node, index, ours, name)):
                yield place, _clash(name)


def _is_device(node: ast.AST, index: FileIndex) -> bool:
    """Whether the binding is in a kernel, where migrated code stands."""
    return any(
        isinstance(a, ast.FunctionDef) and index.device_function_of(a) is not None
        for a in index.ancestors(node)
    )


def _at_top(node: ast.AST, index: FileIndex, ours: set[str], name: str) -> bool:
    inside = any(isinstance(a, ast.FunctionDef | ast.Lambda) for a in index.ancestors(node))
    return not inside and name not in ours


def _clash(name: str) -> str:
    return (
        f"`{name}` is something else here than {_WRITTEN[name]}, as migrated code has it: rename it"
    )


def _is_nki(path: str) -> bool:
    return path == "nki" or path.startswith(("nki.", "neuronxcc"))


def _bound(node: ast.AST) -> Iterable[tuple[str, ast.AST]]:
    match node:
        case ast.Name(ctx=ast.Store()):
            return [(node.id, node)]
        case ast.arg():
            return [(node.arg, node)]
        case ast.FunctionDef() | ast.ClassDef():
            return [(node.name, node)]
    return ()
