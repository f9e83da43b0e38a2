"""`neuronxcc.nki` inside a kernel is a compile error from 0.4 on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    path = site.index.path(node) or ""
    if not path.startswith("neuronxcc.") or isinstance(site.index.parent(node), ast.Attribute):
        return
    if site.function_of(node) is not None:
        said = f"`{path}` in a kernel is a compile error: migrate it with --from 0.1"
        yield site.finding("NKI3002", node, said, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Attribute, ast.Name), check=_check)
