"""Sums of products in PSUM: which product may go straight to its tile.

From 0.2 on the first product at a place of PSUM replaces what is there and later ones add. In 0.1
`t[…] += product` adds to the contents of `t`. The two agree if `t` holds products or zeros wherever
the statement is reached; anything else makes a tile *given*, and a product is then made apart and
added. The contents of a tile that another function made, or got, are unknown here.
"""

from __future__ import annotations

import ast

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Storage, Sym
from nki_migrate.rewriting.context.context import Context

Loops = tuple[int, ...]


def is_zero(text: str) -> bool:
    """Whether a fill is a literal zero."""
    return text.strip() in {"0", "0.0"}


def note_given(ctx: Context, storage: Storage) -> None:
    """From here on the tile holds, or may hold, something that no product put there."""
    storage.given = True
    if storage.buffer == "psum":
        ctx.seen.given.setdefault(storage.site, set()).add(ctx.loops)


def is_sum(ctx: Context, storage: Storage) -> bool:
    """Whether the tile holds nothing but zeros and products whenever control comes here."""
    if storage.given:
        return False
    return not any(
        _may_come_before(ctx, storage, loops) for loops in ctx.before.given.get(storage.site, ())
    )


def _may_come_before(ctx: Context, storage: Storage, there: Loops) -> bool:
    """Whether what stands further down comes first: in a loop, or in a function inside."""
    depth = len(storage.loops)
    inside = {*there[depth:], *ctx.loops[depth:]}
    in_one_loop = len(there) > depth and there[: depth + 1] == ctx.loops[: depth + 1]
    return in_one_loop or bool(inside & ctx.functions)


def first_kind(ctx: Context, storage: Storage, *, is_whole: bool) -> str:
    """The kind of a product as the first use of its tile: "matmul" if it is sure to fill all of it.

    A tile that its first product may leave part of keeps its zeros: the product replaces the
    zeros under it, and the others may be read.
    """
    made = ctx.made.get(storage.site)
    return "matmul" if is_whole and made is not None and _is_sure(ctx, made) else "other"


def _is_sure(ctx: Context, made: ast.stmt) -> bool:
    """Whether this statement runs whenever the one that made the tile did."""
    statement, block = ctx.statement, ctx.index.parent(made)
    if statement is None:
        return False
    for around in ctx.index.ancestors(statement):
        if around is block:
            return True
        if isinstance(around, ast.With):
            continue
        if not isinstance(around, ast.For) or ctx.site(around) not in ctx.sure_loops:
            return False
        if any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(around)):
            return False
    return False


def runs_at_all(ctx: Context, bounds: tuple[Sym, Sym] | None) -> bool:
    """Whether a loop is taken to have an iteration: its length is one thing for all programs."""
    if bounds is None:
        return False
    length = bounds[1].poly - bounds[0].poly
    if ctx.facts.proves_at_least(length, 1):
        return True
    return length.constant is None and not _varies(ctx, length)


def _varies(ctx: Context, poly: Poly) -> bool:
    """Whether a number depends on where in a loop, or in the grid, it is asked for."""
    return any(
        atom in ctx.facts.ranges
        or "program_id" in atom
        or ((q := ctx.facts.quotients.get(atom)) is not None and _varies(ctx, q.numerator))
        for atom in poly.atoms()
    )
