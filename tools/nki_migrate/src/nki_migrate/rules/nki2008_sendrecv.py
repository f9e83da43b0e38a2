"""`sendrecv(use_gpsimd_dma=True)` names its DMA engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Example, Rule, Site


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


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def exchange(x, rank):
    src = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    dst = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.sendrecv(src, dst, 1, 1, pipe_id=0, use_gpsimd_dma=True)
"""

RULE = Rule(
    id="NKI2008",
    step=("0.2", "0.3"),
    klass="a",
    safety=Safety.SAFE,
    title="`sendrecv` takes `dma_engine=` in place of `use_gpsimd_dma=`",
    page="`True` is `nisa.dma_engine.gpsimd_dma`, `False` is `nisa.dma_engine.dma`.\n",
    examples=(
        Example.of(
            _BAD, _BAD.replace("use_gpsimd_dma=True", "dma_engine=nisa.dma_engine.gpsimd_dma")
        ),
    ),
    nodes=(ast.Call,),
    check=_check,
)
