"""NKI1106: `nki.compiler` outside of decorators and buffers."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_TODO = "# TODO(nki-migrate NKI1106)"


def _check(node: ast.Attribute | ast.Assign, site: Site) -> Iterator[Finding]:
    if isinstance(node, ast.Assign):
        yield from _emptied(node, site)
        return
    name = site.canonical(node) or ""
    parent = site.index.parent(node)
    if not name.startswith("ncc.") or isinstance(parent, ast.Attribute):
        return
    if site.function_of(node) is None and not _is_decorator(node, site):
        message = f"`{site.source(node)}` is gone with `nki.compiler`"
        if isinstance(parent, ast.Assign) and site.index.parent(parent) is site.index.source.tree:
            empty = f"{message}: None lets the file be imported"
            yield site.finding("NKI1106", node, empty, edits=[site.replace(node, "None")])
        yield site.finding("NKI1106", node, message, safety=Safety.MANUAL)


def _emptied(node: ast.Assign, site: Site) -> Iterator[Finding]:
    """What an earlier run put None in for is still to do."""
    lines = site.index.source.lines
    above = lines[node.lineno - 2] if node.lineno > 1 else ""
    if isinstance(node.value, ast.Constant) and node.value.value is None and _TODO in above:
        message = above.partition(": ")[2].strip()
        yield site.finding("NKI1106", node, message, safety=Safety.MANUAL)


def _is_decorator(node: ast.AST, site: Site) -> bool:
    chain = [node, *site.index.ancestors(node)]
    return any(
        isinstance(up, ast.FunctionDef) and down in up.decorator_list
        for down, up in itertools.pairwise(chain)
    )


HOOKS = Hooks(nodes=(ast.Attribute, ast.Assign), check=_check)
