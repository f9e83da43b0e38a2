"""`dma_transpose`: both sides have the same rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Example, Rule, Site
from nki_migrate.rules.tiles import allocation_of, argument


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    if not is_device_call(call, site, "nisa.dma_transpose"):
        return
    dst, src = (_rank(argument(call, n, i), site) for i, n in enumerate(("dst", "src")))
    if dst is not None and src is not None and dst != src:
        said = f"dma_transpose from rank {src} to rank {dst}: both have one rank from 0.4 on"
        yield site.finding("NKI3001", call, said, safety=Safety.MANUAL)


def _rank(tile: ast.expr | None, site: Site) -> int | None:
    """The rank of a whole tile, or of slices of one."""
    made = allocation_of(tile, site)
    if made is None or made.rank is None:
        return None
    if isinstance(tile, ast.Subscript):
        index = tile.slice.elts if isinstance(tile.slice, ast.Tuple) else [tile.slice]
        if isinstance(tile.value, ast.Subscript) or not all(
            isinstance(i, ast.Slice) for i in index
        ):
            return None
    return made.rank


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def turn(x):
    tile = nl.ndarray((128, 1, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    turned = nl.ndarray((64, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_transpose(dst=turned, src=tile, axes=(2, 1, 0))
"""
_TODO = """\
    # TODO(nki-migrate NKI3001): dma_transpose from rank 3 to rank 2: both have one rank from 0.4 on
"""

RULE = Rule(
    id="NKI3001",
    step=("0.3", "0.4"),
    klass="b",
    safety=Safety.MANUAL,
    title="`dma_transpose` has one rank on both sides",
    page="""\
Add dimensions of size 1 to the lower side, or take them and their axes from the higher one. Ranks
are read from allocations; which side should change is yours to say.
""",
    examples=(
        Example.of(_BAD, _BAD.replace("    nisa.dma_transpose", f"{_TODO}    nisa.dma_transpose")),
    ),
    nodes=(ast.Call,),
    check=_check,
)
