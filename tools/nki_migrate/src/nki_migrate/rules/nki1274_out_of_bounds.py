"""NKI1274: rows that are out of bounds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    mode = keyword(node, "oob_mode")
    if mode is None or not is_device_call(node, site, "nisa.dma_copy"):
        return
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    picks = any(keyword(c, "vector_offset") or keyword(c, "scalar_offset") for c in calls)
    if picks and site.canonical(mode.value) != "nisa.oob_mode.error":
        said = "rows are skipped by their number alone: a slice must not reach out of the tensor"
        yield site.finding("NKI1274", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
