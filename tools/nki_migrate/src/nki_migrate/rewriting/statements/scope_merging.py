"""Merging of scopes: meanings of names at the head of a loop, after it, and after branches.

A name that a loop or a branch binds again may represent several tiles. If they agree in shape,
dtype and buffer, it represents one tile of that kind from there on, spelled by the name and by
nothing else (trap T3); if not, nothing is known of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nki_migrate.facts.values import Grid, Index, Mask, Parameter, Part, Storage, Sym, Tensor, Value
from nki_migrate.index import walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Reason, Unsupported
from nki_migrate.rewriting.context.scope import Scope
from nki_migrate.rewriting.context.source_text import default_of, text_of
from nki_migrate.rewriting.destinations.destination import same_sizes
from nki_migrate.rewriting.inference.helper_calls import size_of_blocks
from nki_migrate.rewriting.statements.conversion import bind_anything


def test_presence(ctx: Context, test: ast.expr) -> None:
    """`if x` where x is a tensor or None → `if x is not None`."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    node = test.operand if negated else test  # type: ignore[union-attr]
    if isinstance(node, ast.Name) and _is_optional_tensor(ctx, node.id):
        text = f"{node.id} is {'' if negated else 'not '}None"
        ctx.report(Reason.PYTHON_STATE, test, f"a tensor has no truth value: `{text}`")
        ctx.rewrites[test] = text


def _is_optional_tensor(ctx: Context, name: str) -> bool:
    value = ctx.scope.values.get(name)
    if isinstance(value, Tensor):
        is_own = value.dims is None and value.storage.mentions is not None
        is_tensor = is_own and value.storage.name == name
    else:
        is_own = isinstance(value, Parameter) and value.name == name
        is_tensor = is_own and name in ctx.before.tensors
    if not is_tensor:
        return False
    default = default_of(ctx.function.node.args, name)
    return isinstance(default, ast.Constant) and default.value is None


def assign_chosen(
    ctx: Context, value: ast.IfExp, name: str, assign: Callable[[ast.expr], bool]
) -> bool:
    """`name = A if c else B` where an arm makes a tile: an `if` statement with two assignments.

    `assign` rewrites one of them, and says whether what it emitted is all of it.
    """
    ctx.report(Reason.PYTHON_STATE, value, "a tile chosen by a condition is made in an `if`")
    ctx.value_of(value.test)
    test_presence(ctx, value.test)
    test, outer = text_of(ctx, value.test), ctx.out
    before = ctx.scope.copy()
    arms: list[list[str]] = []
    scopes = []
    for arm in (value.body, value.orelse):
        ctx.out = []
        with ctx.counting_block():
            if not assign(arm):
                ctx.emit(f"{name} = {text_of(ctx, arm)}")
        arms.append(ctx.out)
        scopes.append(ctx.scope)
        clock = ctx.scope.clock
        ctx.scope = before.copy()
        ctx.scope.clock = clock
    ctx.out = outer
    for head, lines in zip((f"if {test}:", "else:"), arms, strict=True):
        ctx.emit(head)
        for line in lines:
            ctx.emit(line, 1)
    then, ctx.scope = scopes
    join_branches(ctx, then, ctx.scope)
    return True


_REMOVED = Index | Grid | Mask  # values that have no counterpart in the new text


def enter_loop(ctx: Context, loop: ast.For | ast.While) -> dict[str, Value]:
    """Bind names that the body binds again to what they are in any iteration; their old values."""
    before: dict[str, Value] = {}
    for name, in_place in _stored(loop).items():
        old = ctx.scope.values.get(name)
        if old is None or (in_place and isinstance(old, Tensor) and old.storage.is_value is False):
            continue
        before[name] = old
        unlike = (ctx.site(loop), name) in ctx.before.unlike
        if isinstance(old, _REMOVED):
            if unlike:
                _forget(ctx, name, old)
        elif isinstance(old, Tensor) and not unlike and _is_whole(old):
            _merge(ctx, name, old, old)
        else:
            _forget(ctx, name, old)
    return before


def leave_loop(ctx: Context, loop: ast.For | ast.While, before: dict[str, Value]) -> None:
    """After the loop a name represents its value from before or for that of the last iteration."""
    for name, old in before.items():
        end = ctx.scope.values.get(name)
        tiles = isinstance(end, Tensor) and isinstance(old, Tensor) and _is_whole(old)
        if tiles and (_alike(ctx, old, end) or not ctx.final):  # earlier passes know too little
            _merge(ctx, name, old, end)
        elif isinstance(old, _REMOVED | Sym) and _same(old, end):
            continue
        else:
            if isinstance(old, Tensor | _REMOVED) and ctx.final:
                ctx.seen.unlike.add((ctx.site(loop), name))
            _forget(ctx, name, old)


def join_branches(ctx: Context, then: Scope, otherwise: Scope) -> None:
    """Continue behind an `if` whose two branches left these scopes; `ctx.scope` is `otherwise`."""
    held = {n: t for n, t in otherwise.held.items() if then.held.get(n) is t}
    ctx.scope.held = held
    for name, value in then.values.items():
        other = ctx.scope.values.get(name)
        if other is not value and not _same(value, other):
            _join(ctx, name, value, other or value)


def _join(ctx: Context, name: str, value: Value, other: Value) -> None:
    """What a name is that two branches bind; where only one does, a read finds its value."""
    tiles = isinstance(value, Tensor) and isinstance(other, Tensor)
    if tiles and _alike(ctx, value, other):
        _merge(ctx, name, value, other)
    elif tiles and _both_lists(value, other):
        _merge_lists(ctx, name, value, other)
    else:
        _forget(ctx, name, value)


def _merge_lists(ctx: Context, name: str, a: Tensor, b: Tensor) -> None:
    """One of two lists of tiles; sizes in which they differ are read from the name."""
    _merge(ctx, name, a, b)
    merged = ctx.scope.values[name]
    assert isinstance(merged, Tensor)
    value = Parameter(name, None, ctx.scope.versions[name])
    pairs = enumerate(zip(a.shape or (), b.shape or (), strict=True))
    sizes = [
        x if ctx.facts.same(x.poly, y.poly) else size_of_blocks(value, axis, a.storage.blocks)
        for axis, (x, y) in pairs
    ]
    merged.storage.shape = tuple(sizes)
    ctx.scope.values[name] = listed = merged.with_shape(tuple(sizes))
    ctx.scope.hold(name, listed)


def _both_lists(a: Tensor, b: Tensor) -> bool:
    """Whether both are lists of tiles of one rank; their sizes and dtypes may differ."""
    one, other = a.storage, b.storage
    return (
        a.dims is b.dims is None
        and one.blocks == other.blocks > 0
        and not (one.folded or other.folded)
        and one.buffer == other.buffer
        and not (one.valid or other.valid)
        and a.shape is not None
        and b.shape is not None
        and len(a.shape) == len(b.shape)
    )


def _stored(loop: ast.AST) -> dict[str, bool]:
    """Names bound inside, and whether only augmented assignments bind them."""
    nodes = walk(loop)
    augmented = {id(n.target) for n in nodes if isinstance(n, ast.AugAssign)}
    found: dict[str, bool] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = found.get(node.id, True) and id(node) in augmented
    return found


def _merge(ctx: Context, name: str, a: Tensor, b: Tensor) -> None:
    """One tile that is `a` or `b`: neither may be reused or narrowed any more."""
    for tensor in (a, b):
        ctx.aliased.add(tensor.storage.site)
        ctx.use(tensor, "op")
    one = a.storage
    other = b.storage.dtype
    dtype = one.dtype if one.dtype is None or (other and one.dtype.key == other.key) else None
    is_value = one.is_value if one.is_value == b.storage.is_value else None
    storage = Storage(
        name, a.shape, dtype, one.buffer, one.loops, one.site, valid=dict(one.valid),
        written=True, given=True, is_value=is_value,
        like=one.like, blocks=one.blocks, alone=one.alone,
    )  # fmt: skip
    tensor = Tensor(storage, a.shape)
    ctx.scope.bind(name, tensor)
    ctx.scope.hold(name, tensor)


def _forget(ctx: Context, name: str, old: Value) -> None:
    bind_anything(ctx, name)
    if isinstance(old, Tensor) and old.buffer in {"sbuf", "psum"} and not old.storage.blocks:
        mentions = ctx.mentioned(name)  # a tile still, and never a number
        storage = Storage(name, None, None, None, mentions=mentions, given=True)
        ctx.scope.values[name] = Tensor(storage, None)
        ctx.scope.hold(name, Tensor(storage, None))
    elif isinstance(old, Tensor) and old.storage.blocks:
        text = f"`{name}` has block dimensions that differ between branches"
        ctx.scope.values[name] = Unsupported(text, Reason.BLOCK_DIMENSIONS)
    elif isinstance(old, _REMOVED):
        ctx.scope.values[name] = Unsupported(
            f"`{name}` is bound to several index tensors", Reason.INDEX_TENSOR
        )


def _is_whole(tensor: Tensor) -> bool:
    storage = tensor.storage
    return tensor.dims is None and not storage.blocks and storage.mentions is None


def _alike(ctx: Context, a: Tensor, b: Tensor) -> bool:
    """Whether two tiles are of one kind, as far as the text made from them depends on it."""
    one, other = a.storage, b.storage
    return (
        _is_whole(a)
        and _is_whole(b)
        and one.buffer is not None
        and one.buffer == other.buffer
        and _same_dtypes(one, other)
        and _same_shapes(ctx, a, b)
        and one.valid.keys() == other.valid.keys()
        and all(_same_part(one.valid[k], other.valid[k]) for k in one.valid)
    )


def _same_part(a: Part, b: Part) -> bool:
    if isinstance(a, Sym) and isinstance(b, Sym):
        return a.poly == b.poly
    return a == b


def _same_dtypes(a: Storage, b: Storage) -> bool:
    return a.dtype is not None and b.dtype is not None and a.dtype.key == b.dtype.key


def _same_shapes(ctx: Context, a: Tensor, b: Tensor) -> bool:
    if a.shape is None or b.shape is None:
        like = a.storage.like
        return a.shape is b.shape and like is not None and like == b.storage.like
    return same_sizes(ctx, a.shape, b.shape)


def _same(a: Value | None, b: Value | None) -> bool:
    """Whether two values are equal and spelled alike (tiles: the same storage)."""
    if isinstance(a, Sym) and isinstance(b, Sym):
        return a.poly == b.poly and a.text == b.text and a.is_float == b.is_float
    return a == b
