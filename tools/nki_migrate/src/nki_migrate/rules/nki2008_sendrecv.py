"""`sendrecv(use_gpsimd_dma=True)` names its DMA engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    given = keyword(call, "use_gpsimd_dma")
    instructions = site.index.alias_for("nisa")
    if given is None or instructions is None or not is_device_call(call, site, "nisa.sendrecv"):
        return
    engines = f"{instructions}.dma_engine"
    if isinstance(given.value, ast.Constant) and isinstance(given.value.value, bool):
        engine = f"{engines}.{'gpsimd_dma' if given.value.value else 'dma'}"
    else:
        chosen = site.source(given.value)
        engine = f"({engines}.gpsimd_dma if {chosen} else {engines}.dma)"
    yield site.finding(
        "NKI2008",
        given.value,
        "use_gpsimd_dma is now dma_engine",
        edits=[site.replace(given, f"dma_engine={engine}")],
    )


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
