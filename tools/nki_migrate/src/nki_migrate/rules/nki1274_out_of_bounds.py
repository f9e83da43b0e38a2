"""NKI1274: rows that are out of bounds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    mode = keyword(node, "oob_mode")
    if mode is None or not is_device_call(node, site, "nisa.dma_copy"):
        return
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    picks = any(keyword(c, "vector_offset") or keyword(c, "scalar_offset") for c in calls)
    if picks and site.canonical(mode.value) != "nisa.oob_mode.error":
        said = "rows are skipped by their number alone: a slice must not reach out of the tensor"
        yield site.finding("NKI1274", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


_BAD = """
rows = nl.load(numbers[0:128, 0:1])
tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
ip = nl.arange(128)[:, None]
jf = nl.arange(64)[None, :]
nisa.dma_copy(dst=tile, src=x[rows[ip, 0], jf], oob_mode=nisa.oob_mode.skip)
"""
_GOOD = """
rows = nl.ndarray((128, 1), dtype=numbers.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=rows, src=numbers[0:128, 0:1])
tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(
    dst=tile,
    src=x.ap(pattern=[[x.shape[1], 128], [1, 64]], offset=0, vector_offset=rows[:, 0:1], indirect_dim=0),
    oob_mode=nisa.oob_mode.skip,
)
"""  # noqa: E501

RULE = Rule(
    id="NKI1274",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`oob_mode` with rows that a tile picks",
    page="""\
Old: `nisa.dma_copy(dst=tile, src=x[rows[ip, 0], jf], oob_mode=nisa.oob_mode.skip)`

New: the same mode on the access pattern; to be looked at

The mode is kept. A mask beside picked rows shortens both sides where it is a rectangle (NKI1170),
else it stays with a TODO (NKI1172).

**Trap.** What is skipped keeps what the destination held: initialise it.
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, numbers"),),
    nodes=(ast.Call,),
    check=_check,
)
