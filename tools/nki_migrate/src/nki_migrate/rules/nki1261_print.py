"""NKI1261: `print` of tiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Example, Rule, Site
from nki_migrate.rules.tiles import allocation_of, base_of

__all__ = ["RULE"]


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


_BAD = """
tile = nl.load(x[0:128, 0:512])
print("tile", tile)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
print("tile", tile)
"""

RULE = Rule(
    id="NKI1261",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`print` shows no data of tiles",
    page="""\
Old: `print("tile", tile)`, `print(f"{tile}")`

New: `nl.device_print("tile", tile)`; by hand

`print` runs once, when the kernel is compiled, and shows what a tile is, not what it holds.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
    nodes=(ast.Call,),
    check=_check,
)
