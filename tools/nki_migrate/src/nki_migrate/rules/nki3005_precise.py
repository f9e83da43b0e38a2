"""Simulation keeps the precision of the tiles unless it is told otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_VARIABLE = "NKI_PRECISE_FP"


def _check(node: ast.Constant, site: Site) -> Iterator[Finding]:
    if node.value == _VARIABLE:
        said = f"{_VARIABLE} is 1 by default from 0.4 on: simulated results differ where it was 0"
        yield site.finding("NKI3005", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Constant,), check=_check)
