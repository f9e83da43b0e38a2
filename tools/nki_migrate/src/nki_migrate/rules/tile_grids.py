"""Tiles that are cut out by arithmetic, where 0.7 has grids of tiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.Subscript, site: Site) -> Iterator[Finding]:
    """NKI6023: `x[i * P : (i + 1) * P, …]`."""
    if site.function_of(node) is None:
        return
    index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    tiled = [_tile_of(part) for part in index]
    if len(tiled) > 1 and all(tiled):
        said = (
            f"`{site.source(node)}` is a tile of a grid: nl.tiles(…, tile_shape=…)[i, j].data; the "
            "last tile of a grid is cut to the tensor"
        )
        note = Severity.NOTE
        yield site.finding("NKI6023", node, said, severity=note, safety=Safety.MANUAL)


def _tile_of(part: ast.expr) -> bool:
    """Whether a slice is `i * n : (i + 1) * n`."""
    match part:
        case ast.Slice(
            lower=ast.BinOp(left=first, op=ast.Mult(), right=size),
            upper=ast.BinOp(
                left=ast.BinOp(left=again, op=ast.Add(), right=ast.Constant(value=1)),
                op=ast.Mult(),
                right=same,
            ),
            step=None,
        ):
            return ast.dump(first) == ast.dump(again) and ast.dump(size) == ast.dump(same)
    return False


HOOKS = {"NKI6023": Hooks(nodes=(ast.Subscript,), check=_check)}
