"""Lists and dicts of tiles: what every item of one is, where all of them are of one kind."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from nki_migrate.facts.values import Container, Seq, Storage, Tensor, Value, is_none
from nki_migrate.index import FileIndex, walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.views.tensors import own_dtype

_READERS = {"len", "enumerate", "reversed"}


def note_item(ctx: Context, name: str, value: Value) -> None:
    """Remember what was put into a list: `name.append(value)`, `name[k] = value`."""
    items = ctx.seen.items.setdefault(name, [])
    if isinstance(value, Tensor) and value.storage.dtype is None:
        own_dtype(ctx, value)
    items.append(value)
    if not all(_is_alike(ctx, items[0], item) for item in items):
        ctx.seen.mixed.add(name)


def note_items(ctx: Context, name: str, node: ast.expr, value: Value) -> None:
    """Remember what a list is made of; one whose items are replaced has no items of its own."""
    if not isinstance(node, ast.List) or not isinstance(value, Seq):
        return
    for item in value.items:
        if not is_none(item):
            note_item(ctx, name, item)
    if any(_replaces(n, name) for n in walk(ctx.function.node)):
        ctx.scope.values[name] = Container(name)


def _replaces(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=base), ctx=ast.Store()):
            return base == name
    return False


def item_of(ctx: Context, name: str, text: str) -> Tensor | None:
    """The tile that `text`, an item of a list, is; None where the items are not of one kind."""
    items = ctx.seen.items.get(name)
    if not items or name not in ctx.before.items or name in ctx.before.mixed | ctx.seen.mixed:
        return None
    first = items[0]
    if not isinstance(first, Tensor) or name not in lists_of_tiles(ctx):
        return None
    known, mentions = first.storage, ctx.mentioned(text)
    is_value = known.is_value if len({_is_value(i) for i in items}) == 1 else None
    valid = dict(known.valid) if _are_filled_alike(items) else {}
    storage = Storage(
        text, first.shape, known.dtype, known.buffer, mentions=mentions, given=True,
        is_value=is_value, written=True, valid=valid,
    )  # fmt: skip
    return Tensor(storage, first.shape)


def _are_filled_alike(items: Sequence[Value]) -> bool:
    """Whether all have the same part filled; else an operation reads all of each, as 0.1 does."""
    parts = [item.storage.valid for item in items if isinstance(item, Tensor)]
    return all(part == parts[0] for part in parts)


def lists_of_tiles(ctx: Context) -> frozenset[str]:
    """Lists and dicts of the function that nothing but `append` and subscripts reaches."""
    if ctx.lists is None:
        ctx.lists = _own_lists(ctx.index, ctx.function.node)
    return ctx.lists


def _own_lists(index: FileIndex, function: ast.AST) -> frozenset[str]:
    names = [n for n in walk(function) if isinstance(n, ast.Name)]
    bound = Counter(n.id for n in names if not isinstance(n.ctx, ast.Load))
    made = {
        target.id
        for node in walk(function)
        if isinstance(node, ast.Assign) and _is_new_list(node.value)
        for target in node.targets
        if isinstance(target, ast.Name) and bound[target.id] == 1
    }
    return frozenset(made - {n.id for n in names if n.id in made and not _is_use(index, n)})


def _is_new_list(node: ast.expr) -> bool:
    """`[]`, `{}`, `[a, b]`, `[None] * n`, `list()`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        node = node.left
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"list", "dict"}
    return isinstance(node, ast.List) or (isinstance(node, ast.Dict) and not node.keys)


def _is_use(index: FileIndex, name: ast.Name) -> bool:
    """Whether a use puts nothing into the list that `note_item` would not see."""
    parent = index.parent(name)
    above = index.parent(parent) if parent is not None else None
    match parent, above:
        case (ast.Attribute(attr="append"), ast.Call()):
            return True
        case (ast.Subscript(), ast.AugAssign(target=target)):
            return target is not parent
        case (ast.Subscript(value=value, slice=part), _):
            return value is name and not isinstance(part, ast.Slice)
        case (ast.Call(func=ast.Name(id=reader)), _):
            return reader in _READERS
        case (ast.For(iter=source), _):
            return source is name
    return not isinstance(name.ctx, ast.Load)


def loop_items(node: ast.For) -> tuple[str, ast.Name] | None:
    """The list that a loop runs over, and the name it binds: `for t in tiles`, `enumerate`."""
    source, target = node.iter, node.target
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.args:
        if source.func.id == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        source = source.args[0]
    is_plain = isinstance(source, ast.Name) and isinstance(target, ast.Name)
    return (source.id, target) if is_plain else None  # type: ignore[union-attr]


def _is_value(item: Value) -> bool | None:
    return item.storage.is_value if isinstance(item, Tensor) else None


def _is_alike(ctx: Context, a: Value, b: Value) -> bool:
    """Whether both are whole tiles of one shape, dtype and memory."""
    kinds = _kind(a), _kind(b)
    if None in kinds or kinds[0] != kinds[1] or not isinstance(a, Tensor):
        return False
    pairs = zip(a.shape or (), b.shape or (), strict=True)  # type: ignore[union-attr]
    return all(ctx.facts.same(x.poly, y.poly) for x, y in pairs)


def _kind(item: Value) -> tuple[object, ...] | None:
    """All of a whole tile but its sizes; None for anything else, and where part is unknown."""
    if not isinstance(item, Tensor) or item.shape is None or item.dims is not None:
        return None
    storage = item.storage
    if storage.buffer is None or storage.dtype is None or storage.blocks:
        return None
    return storage.buffer, storage.dtype.key, len(item.shape)
