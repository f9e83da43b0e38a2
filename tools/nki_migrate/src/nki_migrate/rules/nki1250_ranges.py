"""NKI1250: ranges of 0.3 to 0.5."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_DEPRECATED = {"nl.affine_range", "nl.sequential_range"}


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    language = site.index.alias_for("nl")
    asked = "0.3" <= site.request.target <= "0.5"  # 0.2 has all three, in 0.6 they are `range`
    if site.canonical(node.func) not in _DEPRECATED or not asked or language is None:
        return
    said = f"`{site.source(node.func)}` is deprecated: every loop is unrolled"
    edits = [site.replace(node.func, f"{language}.static_range")]
    yield site.finding("NKI1250", node, said, severity=Severity.WARNING, edits=edits)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
