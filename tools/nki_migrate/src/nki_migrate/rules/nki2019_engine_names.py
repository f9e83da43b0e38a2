"""`nisa.dma_engine` is an enum of DMA kinds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    if site.canonical(node) != "nisa.dma_engine" or site.function_of(node) is None:
        return
    if isinstance(site.index.parent(node), ast.Attribute):
        return  # nisa.dma_engine.gpsimd_dma: the enum
    said = "`nisa.dma_engine` is an enum of DMA kinds now: as an engine write `nisa.engine.dma`"
    yield site.finding("NKI2019", node, said, safety=Safety.MANUAL)


_BAD = """
import nki
import nki.isa as nisa

@nki.jit
def wait(x):
    nisa.core_barrier(x, (0, 1), engine=nisa.dma_engine)
"""
_TODO = """\
    # TODO(nki-migrate NKI2019): `nisa.dma_engine` is an enum of DMA kinds now: as an engine write \
`nisa.engine.dma`
"""

RULE = Rule(
    id="NKI2019",
    step=("0.2", "0.3"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nisa.dma_engine` names kinds of DMA, no engine",
    page="""\
Up to 0.2 it was another name of `nisa.engine.dma`; from 0.3 on it is an enum with the members `dma`
and `gpsimd_dma`, which `sendrecv` takes. What the name is meant for is yours to say.
""",
    examples=(Example.of(_BAD, _BAD.replace("    nisa.core", f"{_TODO}    nisa.core")),),
    nodes=(ast.Attribute, ast.Name),
    check=_check,
)
