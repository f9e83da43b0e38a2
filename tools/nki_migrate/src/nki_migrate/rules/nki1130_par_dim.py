"""NKI1130: `nl.par_dim` is gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rewriting.destinations.creation import create
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    """In an annotation it was for a number: `Tuple[int, nl.par_dim, int]`."""
    if site.canonical(node) != "nl.par_dim" or isinstance(site.index.parent(node), ast.Attribute):
        return
    inner: ast.AST = node
    for outer in site.index.ancestors(node):
        if isinstance(outer, ast.arg | ast.AnnAssign) and outer.annotation is inner:
            message = "`nl.par_dim` in an annotation is a number"
            yield site.finding("NKI1130", node, message, edits=[site.replace(node, "int")])
        inner = outer


HOOKS = Hooks(nodes=(ast.Attribute, ast.Name), check=_check, calls={"nl.ndarray": create})
