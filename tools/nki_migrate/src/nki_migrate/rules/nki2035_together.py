"""Kernels of 0.2 and of 0.3 do not work in one model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    foreign = next((x for x in site.index.foreign_launches if x.call is call), None)
    if foreign is not None and site.index.functions:
        said = f"`{foreign.kernel}` has to move to 0.3 with the kernels of this file"
        yield site.finding("NKI2035", call, said, severity=Severity.NOTE, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
