"""NKI1261: `print` of tiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, base_of


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    if not isinstance(node.func, ast.Name) or node.func.id != "print":
        return
    values = [v.value for v in ast.walk(node) if isinstance(v, ast.FormattedValue)]
    tiles = [v for v in (*node.args, *values) if allocation_of(v, site) is not None]
    if tiles:
        name = base_of(tiles[0])
        assert name is not None
        said = f'`print` shows no data of the device: `nl.device_print("{name.id}", {name.id})`'
        yield site.finding("NKI1261", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
