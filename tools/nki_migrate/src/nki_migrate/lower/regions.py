"""Tiles that are made where they are used: what `local_tiles` decided, written down (NKI1131)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from nki_migrate.facts.values import Storage, Tensor
from nki_migrate.lower.context import Context, LocalTile
from nki_migrate.lower.local_tiles import regions_of
from nki_migrate.lower.plan import Change

__all__ = ["keep_for_regions", "note_what_is_left", "region_of", "regions_here"]


def regions_here(ctx: Context, node: ast.Call, blocks: int) -> tuple[ast.stmt, ...]:
    """The heads of the regions that the block tensor of this allocation is used in, or ()."""
    statement, site = ctx.statement, ctx.site(node)
    if (
        getattr(statement, "value", None) is not node
        or ctx.is_again
        or site in ctx.before.listed
        or site in ctx.before.folds
    ):
        return ()
    function = ctx.function.node
    if not isinstance(statement, ast.Assign) or not isinstance(function, ast.FunctionDef):
        return ()
    return regions_of(function, statement, blocks)


def keep_for_regions(
    ctx: Context, heads: Sequence[ast.stmt], storage: Storage, lines: Sequence[str]
) -> None:
    """The tile is made by `lines` at the head of each region."""
    assert ctx.statement is not None
    for head in heads:
        made = LocalTile(ctx.statement, storage, tuple(lines))
        ctx.local.setdefault(head, []).append(made)


@contextmanager
def region_of(ctx: Context, statement: ast.stmt) -> Iterator[None]:
    """Tiles of regions that this statement is the head of come in front of it."""
    opened = [tile for tile in ctx.local.get(statement, ()) if _is_gone(ctx, tile.statement)]
    for tile in opened:
        storage = replace(tile.storage, loops=ctx.loops, valid={})
        ctx.made[storage.site] = statement
        tensor = Tensor(storage, storage.shape)
        ctx.scope.bind(storage.name, tensor)
        ctx.scope.hold(storage.name, tensor)
    yield
    if not opened:
        return
    lines = [line for tile in opened for line in tile.lines]
    change = ctx.changes.setdefault(statement, Change())
    if change.lines is None:
        change.before = [*lines, *change.before]
    else:
        change.lines = [*lines, *change.lines]


def _is_gone(ctx: Context, statement: ast.stmt) -> bool:
    """Whether the allocation of the blocks converted."""
    change = ctx.changes.get(statement)
    return change is not None and change.lines == []


def note_what_is_left(ctx: Context) -> None:
    """Blocks that a statement left as it was mentions stay a list: their old indices fit it."""
    names = {n.id for s in ctx.left for n in ast.walk(s) if isinstance(n, ast.Name)}
    for tiles in ctx.local.values():
        ctx.seen.listed |= {t.storage.site for t in tiles if t.storage.name in names}
