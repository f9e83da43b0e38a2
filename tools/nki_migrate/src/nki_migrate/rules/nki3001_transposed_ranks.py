"""`dma_transpose`: both sides have the same rank."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
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


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
