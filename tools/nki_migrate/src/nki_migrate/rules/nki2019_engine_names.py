"""`nisa.dma_engine` is an enum of DMA kinds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    if site.canonical(node) != "nisa.dma_engine" or site.function_of(node) is None:
        return
    if isinstance(site.index.parent(node), ast.Attribute):
        return  # nisa.dma_engine.gpsimd_dma: the enum
    said = "`nisa.dma_engine` is an enum of DMA kinds now: as an engine write `nisa.engine.dma`"
    yield site.finding("NKI2019", node, said, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Attribute, ast.Name), check=_check)
