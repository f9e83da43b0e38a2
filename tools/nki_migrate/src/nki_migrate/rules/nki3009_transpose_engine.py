"""`nc_transpose(engine=…)` is honoured."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import argument

_HARMLESS = {"nisa.engine.tensor", "nisa.engine.unknown"}


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    engine = argument(call, "engine", 2)
    if engine is None or not is_device_call(call, site, "nisa.nc_transpose"):
        return
    if site.canonical(engine) not in _HARMLESS:
        said = "nc_transpose heeds engine= from 0.4 on: the vector engine transposes 32x32 blocks"
        yield site.finding("NKI3009", call, said, severity=Severity.WARNING, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
