"""The bracket of a launch is the number of cores."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_CORES = (1, 2)  # logical cores of one launch on current devices (NKI migration guide)


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    launch = next((x for x in site.index.launches if x.call is call), None)
    if launch is None or not launch.grid:
        return
    sizes = [s.value if isinstance(s, ast.Constant) else None for s in launch.grid]
    if len(sizes) > 1 or (sizes[0] is not None and sizes[0] not in _CORES):
        said = "a grid that is not the number of cores (1 or 2) becomes an error"
        yield site.finding("NKI4003", call, said, severity=Severity.WARNING, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
