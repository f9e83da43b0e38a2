"""NKI1189: engines and modes are members of enums."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.enums import members_for_codes
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]

_ENGINES = ("tensor", "vector", "scalar", "gpsimd", "unknown", "dma")
_ALIASES = {f"nisa.{name}_engine": f"engine.{name}" for name in _ENGINES}


def _check(node: ast.expr, site: Site) -> Iterator[Finding]:
    if isinstance(node, ast.Call):
        yield from members_for_codes("NKI1189", node, site)
        return
    member = _ALIASES.get(site.canonical(node) or "")
    instructions = site.index.alias_for("nisa")
    if member is None or instructions is None or site.function_of(node) is None:
        return
    if isinstance(site.index.parent(node), ast.Attribute):
        return  # nisa.dma_engine.dma, as 0.3 has it
    text = f"{instructions}.{member}"
    said = f"engines are members of an enum: `{text}`"
    yield site.finding("NKI1189", node, said, edits=[site.replace(node, text)])


_BAD = """
tile = nl.load(x[0:128, 0:512])
one = nisa.tensor_copy(tile, engine=nisa.vector_engine)
two = nisa.tensor_copy(tile, engine=3)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
one = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=one, src=tile, engine=nisa.engine.vector)
two = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=two, src=tile, engine=nisa.engine.gpsimd)
"""

RULE = Rule(
    id="NKI1189",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="engines and modes are members of enums",
    page="""\
Old: `engine=nisa.vector_engine`, `engine=3`, `dge_mode=2`

New: `engine=nisa.engine.vector`, `engine=nisa.engine.gpsimd`, `dge_mode=nisa.dge_mode.hwdge`

**Trap.** `nisa.dma_engine` names something else from 0.3 on (NKI2019).
""",
    examples=(Example.kernel(_BAD, _GOOD),),
    nodes=(ast.Call, ast.Attribute, ast.Name),
    check=_check,
)
