"""`nl.copy` copies on the vector engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    if is_device_call(call, site, "nl.copy"):
        said = "nl.copy is bit exact from 0.6 on, where it went through float32 before"
        yield site.finding("NKI5005", call, said, severity=Severity.WARNING, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
