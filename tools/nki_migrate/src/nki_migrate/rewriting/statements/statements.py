"""Statements: what each kind becomes, and the walk over a function body.

How a statement converts as a whole or not at all is told in conversion.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from neuroncore.findings import Safety, Severity
from nki_migrate.facts.values import (
    Const,
    Grid,
    Index,
    Mask,
    Parameter,
    Returned,
    Seq,
    ShapeOf,
    Slice,
    Sym,
    Tensor,
    Unknown,
    Value,
)
from nki_migrate.index import walk
from nki_migrate.rewriting.blocks.regions import region_of
from nki_migrate.rewriting.context.call_site import Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.source_text import as_number, text_of
from nki_migrate.rewriting.destinations.destination import finish
from nki_migrate.rewriting.expressions.compile_time_calls import (
    is_device_call,
    makes_tile,
    value_into,
)
from nki_migrate.rewriting.inference.helper_calls import bound_to
from nki_migrate.rewriting.inference.list_items import note_items
from nki_migrate.rewriting.operations.calls import hand_over
from nki_migrate.rewriting.statements.assertions import learn_annotated_shape, learn_assertion
from nki_migrate.rewriting.statements.compound import COMPOUND
from nki_migrate.rewriting.statements.conversion import attempt, bind_anything, bind_unknown
from nki_migrate.rewriting.statements.scope_merging import assign_chosen
from nki_migrate.rewriting.statements.tile_assignment import (
    accumulate_into,
    accumulate_into_name,
    assign_subscript,
)
from nki_migrate.rewriting.views.subscripts import access
from nki_migrate.rewriting.views.tensors import as_tensor, dimension
from nki_migrate.rewriting.views.view_text import spell


def walk_body(ctx: Context, body: list[ast.stmt]) -> None:
    """Rewrite the statements of a block in order."""
    for statement in body:
        with region_of(ctx, statement):
            _one(ctx, statement)


def _one(ctx: Context, statement: ast.stmt) -> None:
    rewrite = COMPOUND.get(type(statement))
    if rewrite is not None:
        rewrite(ctx, statement)
        return
    simple = _SIMPLE.get(type(statement))
    if simple is None:
        bind_unknown(ctx, statement)
        return
    attempt(ctx, statement, lambda: simple(ctx, statement))


# -- simple statements: each says whether ctx.out replaces it


def _assign(ctx: Context, statement: ast.Assign) -> bool:
    if len(statement.targets) > 1:
        if makes_tile(ctx, statement.value):
            raise Cannot(Reason.COMPOUND_TARGET, "a chained assignment of a tile", statement)
        value = ctx.value_of(statement.value)
        for t in statement.targets:
            _bind_target(ctx, t, value)
        return False
    return _assign_one(ctx, statement, statement.targets[0], statement.value)


def _annotated(ctx: Context, statement: ast.AnnAssign) -> bool:
    """`x: tensor[128, 512] = …`: the annotation hides an assignment."""
    if statement.value is None:
        return False
    canonical = ctx.index.canonical(_annotation_base(statement.annotation)) or ""
    replaced = _assign_one(ctx, statement, statement.target, statement.value)
    learn_annotated_shape(ctx, statement)
    if not canonical.startswith("nki.typing") and canonical != "nki.tensor":
        return replaced
    ctx.report(Reason.LOCAL_ANNOTATION, statement.annotation, "annotations of local tiles are gone")
    if not replaced:
        target = text_of(ctx, statement.target)
        ctx.emit(f"{target} = {text_of(ctx, statement.value)}")
    return True


def _annotation_base(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _assign_one(ctx: Context, statement: ast.stmt, target: ast.expr, value: ast.expr) -> bool:
    if isinstance(target, ast.Name):
        return _assign_name(ctx, statement, target, value)
    if isinstance(target, ast.Subscript):
        return assign_subscript(ctx, statement, target, value)
    if isinstance(target, ast.Tuple | ast.List):
        return _assign_tuple(ctx, statement, target, value)
    found = ctx.value_of(value)
    hand_over(ctx, value, found)
    ctx.value_of(target)
    return False


def _assign_name(ctx: Context, statement: ast.stmt, target: ast.Name, value: ast.expr) -> bool:
    name = target.id
    if isinstance(value, ast.IfExp) and _chooses_device_call(ctx, value):
        return assign_chosen(
            ctx, value, name, lambda arm: _assign_name(ctx, statement, target, arm)
        )
    try:
        found = value_into(ctx, value, Target(name=name, reads=_names_in(value)))
    except Cannot as error:
        if error.cause is Reason.ONE_DIMENSIONAL_TILE and _is_overwritten(ctx, statement, name):
            ctx.report(error.cause, statement, f"`{name}` is assigned again before it is used")
            return True
        raise
    if isinstance(found, Tensor) and makes_tile(ctx, value):
        kept = isinstance(value, ast.Call) and value in ctx.kept
        finish(ctx, name, found, kept=kept)
        return not kept
    if isinstance(found, Tensor):
        return _alias(ctx, name, value, found)
    _bind(ctx, name, found, statement)
    hand_over(ctx, value, found)
    note_items(ctx, name, value, found)
    return False


def _chooses_device_call(ctx: Context, value: ast.IfExp) -> bool:
    return any(is_device_call(ctx, arm) for arm in (value.body, value.orelse))


def _names_in(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in walk(node) if isinstance(n, ast.Name))


def _is_overwritten(ctx: Context, statement: ast.stmt, name: str) -> bool:
    """Whether the next statement of the block that mentions the name assigns it anew."""
    around = next(iter(ctx.index.ancestors(statement)))
    blocks = (getattr(around, field, ()) for field in ("body", "orelse", "finalbody"))
    block = next((b for b in blocks if statement in b), [statement])
    later = block[block.index(statement) + 1 :]
    match next((s for s in later if name in _names_in(s)), None):
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            return target == name and name not in _names_in(value)
    return False


def _alias(ctx: Context, name: str, value: ast.expr, found: Tensor) -> bool:
    """`y = x` or `y = x[ip, jf]`: another name for (part of) the same tile."""
    ctx.aliased.add(found.storage.site)
    text = spell(ctx, found)
    ctx.scope.bind(name, found)
    ctx.scope.hold(name, found)
    if text == text_of(ctx, value):
        return False
    ctx.use(found, "op")
    if found.storage.blocks:
        ctx.report(Reason.BLOCK_DIMENSIONS, value, f"one of the tiles: `{text}`")
    ctx.emit(f"{name} = {text}")
    return True


def _bind(ctx: Context, name: str, found: Value, statement: ast.stmt | None) -> None:
    ctx.scope.bind(name, found)
    if isinstance(found, Returned):
        found = ctx.scope.values[name] = bound_to(ctx, found, name)
    if isinstance(found, Tensor):
        ctx.aliased.add(found.storage.site)
        ctx.scope.hold(name, found)
    if isinstance(found, Sym):
        ctx.scope.values[name] = ctx.named(name, found.poly, is_float=found.is_float)
        return
    if isinstance(found, Unknown):
        ctx.scope.values[name] = Parameter(name, None, ctx.scope.clock)
        return
    rule = _INDEX_RULES.get(type(found))
    if statement is None or (rule is None and not isinstance(found, Unsupported | Slice)):
        return
    ctx.removable.setdefault(statement, set()).add(name)
    if rule is not None:
        ctx.report(rule, statement, "an index tensor becomes slices where it is used")


_INDEX_RULES: dict[type[Value], Reason] = {
    Index: Reason.INDEX_TENSOR,
    Grid: Reason.INDEX_GRID,
    Mask: Reason.RECTANGULAR_MASK,
}


def _assign_tuple(
    ctx: Context, statement: ast.stmt, target: ast.Tuple | ast.List, value: ast.expr
) -> bool:
    if isinstance(value, ast.Tuple) and any(is_device_call(ctx, v) for v in value.elts):
        text = "several tiles in one assignment are one statement each"
        ctx.report(Reason.COMPOUND_TARGET, statement, text)
        if _reads_its_targets(target, value):
            return _assign_at_once(ctx, target, value)
        for t, v in zip(target.elts, value.elts, strict=True):
            if not _assign_one(ctx, statement, t, v):
                ctx.emit(f"{text_of(ctx, t)} = {text_of(ctx, v)}")
        return True
    found = ctx.value_of(value)
    hand_over(ctx, value, found)
    items = _unpacked(ctx, statement, found, len(target.elts))
    for t, item in zip(target.elts, items, strict=True):
        _bind_target(ctx, t, item)
    names = {t.id for t in target.elts if isinstance(t, ast.Name)}
    if isinstance(found, Grid):
        ctx.removable[statement] = names
    elif _is_index_tuple(value, items) and all(isinstance(t, ast.Name) for t in target.elts):
        text = "index tensors become slices where they are used"
        ctx.report(Reason.INDEX_TENSOR, statement, text)
        ctx.removable[statement] = names
    return False


def _is_index_tuple(value: ast.expr, items: Sequence[Value]) -> bool:
    return isinstance(value, ast.Tuple) and all(isinstance(i, Index) for i in items)


def _unpacked(ctx: Context, statement: ast.stmt, found: Value, count: int) -> Sequence[Value]:
    """The values of the targets; nothing is known of what is not a sequence."""
    if isinstance(found, ShapeOf | Seq) and _depends_on_rank(ctx, statement):
        return [Unknown()] * count
    if isinstance(found, ShapeOf):
        ctx.seen.ranks[found.text] = count
        return [dimension(ctx, found.text, i) for i in range(count)]
    if not isinstance(found, Seq | Grid):
        return [Unknown()] * count
    items = found.items if isinstance(found, Seq) else found.axes
    if len(items) != count:
        text = "the two sides of an assignment have different lengths"
        raise Cannot(Reason.COMPOUND_TARGET, text, statement)
    if isinstance(found, Grid):
        text = "index tensors of `nl.mgrid` become slices where they are used"
        ctx.report(Reason.INDEX_GRID, statement, text)
    return items


def _depends_on_rank(ctx: Context, statement: ast.stmt) -> bool:
    """Whether the statement is in a branch for one of several ranks: `if x.ndim == 2:`."""
    tests = (a.test for a in ctx.index.ancestors(statement) if isinstance(a, ast.If))
    return any(_reads_rank(node) for test in tests for node in walk(test))


def _reads_rank(node: ast.AST) -> bool:
    """`x.ndim`, or `len(x.shape)`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "ndim"
    is_length = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len"
    return is_length and any(getattr(a, "attr", "") == "shape" for a in node.args)


def _reads_its_targets(target: ast.Tuple | ast.List, value: ast.Tuple) -> bool:
    """Whether a value reads a name that an earlier target binds: `a, b = nl.exp(b), a`."""
    bound: set[str] = set()
    for t, v in zip(target.elts, value.elts, strict=False):
        if bound & {n.id for n in walk(v) if isinstance(n, ast.Name)}:
            return True
        bound |= {n.id for n in walk(t) if isinstance(n, ast.Name)}
    return False


def _assign_at_once(ctx: Context, target: ast.Tuple | ast.List, value: ast.Tuple) -> bool:
    """All values first, under names of their own; then one assignment of all."""
    found = [ctx.value_of(v) for v in value.elts]
    if not all(isinstance(t, ast.Name) for t in target.elts):
        raise Cannot(
            Reason.COMPOUND_TARGET,
            "targets other than names in an assignment that permutes",
            target,
        )
    for v, one in zip(value.elts, found, strict=True):
        hand_over(ctx, v, one)
    values = ", ".join(text_of(ctx, v) for v in value.elts)
    ctx.emit(f"{text_of(ctx, target)} = {values}")
    for t, one in zip(target.elts, found, strict=True):
        _bind_target(ctx, t, one)
    return True


def _bind_target(ctx: Context, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Name):
        _bind(ctx, target.id, value, None)
    else:
        bind_unknown(ctx, target)


def _augmented(ctx: Context, statement: ast.AugAssign) -> bool:
    target = statement.target
    if isinstance(target, ast.Name):
        old = ctx.value_of(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        if isinstance(old, Tensor):
            accumulate_into_name(ctx, statement, old, target.id)
            return True
        value = ctx.value_of(statement.value)
        if isinstance(old, Parameter) and isinstance(value, Tensor):
            raise Cannot(
                Reason.AUGMENTED_ASSIGNMENT, f"`{target.id}` is not known to be a tile", statement
            )
        if ctx.loops and as_number(ctx, value) is not None:
            ctx.report(
                Reason.PYTHON_STATE,
                statement,
                "0.1 ran a loop body once; from 0.2 on this counts every iteration",
                severity=Severity.WARNING,
                safety=Safety.MANUAL,
            )
        bind_anything(ctx, target.id)
        return False
    if isinstance(target, ast.Subscript):
        base = as_tensor(ctx, ctx.value_of(target.value))
        if base is not None:
            accumulate_into(ctx, statement, access(ctx, base, target))
            return True
    ctx.value_of(statement.value)
    return False


def _expression(ctx: Context, statement: ast.Expr) -> bool:
    node = statement.value
    if isinstance(node, ast.Constant):
        return False
    found = ctx.value_of(node)
    is_emitted = isinstance(found, Tensor) and is_device_call(ctx, node)  # for its reduce_res=
    is_done = isinstance(found, Const) and found.text == "done"
    return (is_emitted or is_done) and node not in ctx.kept


def _return(ctx: Context, statement: ast.Return) -> bool:
    if statement.value is None:
        return False
    found = ctx.value_of(statement.value)
    hand_over(ctx, statement.value, found)
    if not ctx.functions.intersection(ctx.loops):
        ctx.seen.returned.append(found)
    return False


def _nothing(ctx: Context, statement: ast.stmt) -> bool:
    return False


_SIMPLE: dict[type[ast.stmt], Callable[..., bool]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Assert: learn_assertion,
    ast.Pass: _nothing,
    ast.Import: _nothing,
    ast.ImportFrom: _nothing,
    ast.Continue: _nothing,
    ast.Break: _nothing,
}
