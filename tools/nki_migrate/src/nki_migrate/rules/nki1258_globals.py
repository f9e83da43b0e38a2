"""NKI1258: globals that change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.index import walk
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    function = site.function_of(node)
    if function is None or function.node is not node:
        return
    changing = site.index.changing
    names = [n for s in node.body for n in walk(s) if isinstance(n, ast.Name)]
    own = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | set(function.parameters)
    read = {n.id for n in names} - own
    for name in sorted(read & changing):
        said = f"`{name}` changes, and results are cached by arguments: pass it as one"
        yield site.finding("NKI1258", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.FunctionDef,), check=_check)
