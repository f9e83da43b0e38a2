"""Tiles that are made where they are used: what `local_tiles` decided, written down."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile

from nki_migrate.facts.values import Storage, Tensor
from nki_migrate.index import walk
from nki_migrate.rewriting.blocks.disjoint_blocks import (
    Place,
    Step,
    Suite,
    Tree,
    are_disjoint,
    between,
    stored,
    tree_of,
)
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.scope import LocalTile
from nki_migrate.rewriting.plan.changes import Change


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


def regions_of(
    function: ast.FunctionDef, statement: ast.Assign, blocks: int
) -> tuple[ast.stmt, ...]:
    """The first statement of each region of the block tensor that `statement` allocates.

    () if the tensor has to stay a list.
    """
    tree, target = tree_of(function), statement.targets[0]
    if not isinstance(target, ast.Name) or not _is_stable(tree, statement, target.id):
        return ()
    places = _places(tree, statement, _uses(tree, target, blocks))
    if not all(_of_one_block(p, blocks) for p in places):
        return ()
    used = [Place(tuple(_indices(p.uses[0])[:blocks]), p.around) for p in places]
    starts_fresh = all(_writes_first(p, target.id, blocks) for p in places)
    if starts_fresh or are_disjoint(tree, statement, used):
        return tuple(p.first for p in places)
    return ()


# -- uses


def _is_stable(tree: Tree, statement: ast.Assign, name: str) -> bool:
    """Whether the allocation is all that binds the name, and says the same wherever it stands."""
    said = {n.id for n in walk(statement.value) if isinstance(n, ast.Name)}
    own = {a.arg for a in walk(tree.function.args) if isinstance(a, ast.arg)}
    strange = (ast.Match, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal)
    return (
        tree.bindings(name) == 1
        and name not in own
        and all(tree.bindings(n) <= 1 for n in said)
        and not (said - own) & set(tree.arguments)
        and not any(isinstance(n, strange) for n in tree.parents)
    )


def _uses(tree: Tree, target: ast.Name, blocks: int) -> tuple[ast.Subscript, ...]:
    """The subscripts of the tensor; () if more than one block is also mentioned."""
    found = [tree.parents[n] for n in tree.names[target.id] if n is not target]
    uses = [n for n in found if isinstance(n, ast.Subscript) and _is_name(n.value, target.id)]
    plain = len(uses) == len(found) and not any(isinstance(n, ast.Lambda) for n in tree.parents)
    return tuple(uses) if plain and all(len(_indices(use)) >= blocks for use in uses) else ()


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _indices(use: ast.Subscript) -> list[ast.expr]:
    return list(use.slice.elts) if isinstance(use.slice, ast.Tuple) else [use.slice]


# -- places


@dataclass(frozen=True, slots=True)
class _Region:
    """A suite that holds all uses of one function, and what lies around it from outside in."""

    suite: Suite
    around: tuple[ast.stmt, ...]
    first: ast.stmt
    uses: tuple[ast.Subscript, ...]


def _places(tree: Tree, statement: ast.Assign, uses: Sequence[ast.Subscript]) -> list[_Region]:
    """Per function with uses the innermost suite that has them all; [] if one is out of reach."""
    home = tree.path(statement)
    groups: dict[ast.stmt | None, list[tuple[ast.Subscript, list[Step]]]] = {}
    for use in uses:
        path = tree.path(use)
        inner = [None, *(s for _, s in path if isinstance(s, ast.FunctionDef))]
        groups.setdefault(inner[-1], []).append((use, path))
    places = []
    for group in groups.values():
        paths = [path for _, path in group]
        depth = _depth_shared(paths)
        while _is_elif(paths[0][:depth]):  # no statement can precede it
            depth -= 1
        around = between(home, paths[0][:depth])
        if around is None:
            return []
        suite, own = paths[0][depth - 1][0], {path[depth - 1][1] for path in paths}
        first = next(s for s in suite if s in own)
        places.append(_Region(suite, around, first, tuple(use for use, _ in group)))
    return places


def _depth_shared(paths: Sequence[list[Step]]) -> int:
    """How many suites all paths go through."""
    columns = zip(*paths, strict=False)
    return sum(1 for _ in takewhile(lambda c: all(s[0] is c[0][0] for s in c), columns))


def _is_elif(path: list[Step]) -> bool:
    """Whether the last suite may be an `elif` of the statement around it."""
    if len(path) < 2:
        return False
    (suite, statement), around = path[-1], path[-2][1]
    return isinstance(statement, ast.If) and isinstance(around, ast.If) and suite is around.orelse


def _of_one_block(place: _Region, blocks: int) -> bool:
    """Whether all uses name one block: the same words, which mean the same in the whole region."""
    wanted = {tuple(ast.dump(i) for i in _indices(use)[:blocks]) for use in place.uses}
    names = {
        n.id for i in _indices(place.uses[0])[:blocks] for n in walk(i)
        if isinstance(n, ast.Name)
    }  # fmt: skip
    bound = {name for s in place.suite for name in stored(s)}
    return len(wanted) == 1 and not names & bound and _are_numbers(place.uses[0], blocks)


def _are_numbers(use: ast.Subscript, blocks: int) -> bool:
    allowed = (ast.Constant, ast.Name, ast.BinOp, ast.operator, ast.expr_context)
    parts = [n for i in _indices(use)[:blocks] for n in walk(i)]
    return all(
        isinstance(n, allowed) and (not isinstance(n, ast.Constant) or isinstance(n.value, int))
        for n in parts
    )


# -- a region that begins by writing


def _writes_first(place: _Region, name: str, blocks: int) -> bool:
    """Whether the first statement of the region writes the whole block, and reads nothing of it."""
    first = place.first
    if not isinstance(first, ast.Assign) or len(first.targets) != 1:
        return False
    target, value = first.targets[0], walk(first.value)
    if not isinstance(target, ast.Subscript) or not _is_name(target.value, name):
        return False
    return not any(_is_name(n, name) or _is_masked(n) for n in value) and all(
        _is_everything(i) for i in _indices(target)[blocks:]
    )


def _is_masked(node: ast.AST) -> bool:
    """Whether a call may have a mask."""
    masks = [k.value for k in getattr(node, "keywords", ()) if k.arg in {None, "mask"}]
    return any(not isinstance(mask, ast.Constant) or bool(mask.value) for mask in masks)


def _is_everything(index: ast.expr) -> bool:
    if isinstance(index, ast.Slice):
        return index.lower is index.upper is index.step is None
    return isinstance(index, ast.Constant) and index.value is Ellipsis
