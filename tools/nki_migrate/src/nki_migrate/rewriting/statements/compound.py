"""Loops, branches and nested functions: headers, scopes, loop variables."""

from __future__ import annotations

import ast
from collections.abc import Callable

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Sym, Tensor, Unknown
from nki_migrate.index import is_shadowed, walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_number, text_of
from nki_migrate.rewriting.destinations.psum_accumulation import runs_at_all
from nki_migrate.rewriting.expressions.deferred_code import stays_inside
from nki_migrate.rewriting.expressions.loop_items import items_of, note_numbers
from nki_migrate.rewriting.inference.list_items import item_of, loop_items
from nki_migrate.rewriting.plan.changes import Change
from nki_migrate.rewriting.statements.conversion import attempt, bind_anything, bind_unknown
from nki_migrate.rewriting.statements.scope_merging import (
    enter_loop,
    join_branches,
    leave_loop,
    test_presence,
)

_RANGES = {"nl.affine_range", "nl.sequential_range", "nl.static_range"}


def _header(
    ctx: Context, statement: ast.For | ast.While | ast.If | ast.With, parts: list[ast.expr]
) -> None:
    """Rewrite the first line of a compound statement if a part of it changed."""
    texts = [(ctx.index.source.segment(p), text_of(ctx, p)) for p in parts]
    if all(old == new for old, new in texts):
        return
    match statement:
        case ast.For():
            header = f"for {text_of(ctx, statement.target)} in {text_of(ctx, statement.iter)}:"
        case ast.While():
            header = f"while {text_of(ctx, statement.test)}:"
        case ast.If():
            header = f"if {text_of(ctx, statement.test)}:"
        case _:
            return
    ctx.changes.setdefault(statement, Change()).header = header


def _for(ctx: Context, statement: ast.For) -> None:
    bounds: list[_Range | None] = [None]

    def enter() -> bool:
        ctx.value_of(statement.iter)
        _reject_device_bounds(ctx, statement.iter)
        bounds[0] = _range_bounds(ctx, statement.iter)
        if runs_at_all(ctx, bounds[0] and bounds[0][:2]):
            ctx.sure_loops.add(ctx.site(statement))
        _header(ctx, statement, [statement.iter])
        return False

    attempt(ctx, statement, enter)
    carried = enter_loop(ctx, statement)
    with ctx.inside(statement):
        if isinstance(statement.target, ast.Name):
            _bind_loop_variable(ctx, statement.target.id, bounds[0])
        else:
            bind_unknown(ctx, statement.target)
        note_numbers(ctx, statement.target, items_of(ctx, statement.iter))
        _bind_item(ctx, statement)
        ctx.rewrite_body(statement.body)
    leave_loop(ctx, statement, carried)
    ctx.rewrite_body(statement.orelse)


def _bind_item(ctx: Context, statement: ast.For) -> None:
    """`for t in tiles`: what the items of the list are."""
    found = loop_items(statement)
    tile = item_of(ctx, found[0], found[1].id) if found is not None else None
    if tile is not None and found is not None:
        ctx.scope.values[found[1].id] = tile
        ctx.scope.hold(found[1].id, tile)


def _reject_device_bounds(ctx: Context, node: ast.expr) -> None:
    """From 0.2 on the compiler counts: what the device computes needs a loop of the device."""
    arguments = node.args if isinstance(node, ast.Call) else []
    if any(isinstance(ctx.value_of(a), Tensor) for a in arguments):
        text = "a loop bound that the device computes: a register, and a loop of the device"
        raise Cannot(Reason.DEVICE_LOOP, text, node)


_Range = tuple[Sym, Sym, int]
"""Of a loop's variable: the least value, the end of its values, a divisor of all of them."""


def _range_bounds(ctx: Context, node: ast.expr) -> _Range | None:
    """The values of a loop that counts in compile-time numbers."""
    if not isinstance(node, ast.Call):
        return None
    numbers = [as_number(ctx, ctx.value_of(a)) for a in node.args]
    bounds = [n for n in numbers if n is not None]
    if not _is_range(ctx, node) or not bounds or len(bounds) < len(numbers):
        return None
    return _counted(ctx, *(bounds if len(bounds) > 1 else (Sym.number(0), bounds[0])))


def _counted(ctx: Context, start: Sym, stop: Sym, by: Sym | None = None) -> _Range:
    step = (by.value if by else 1) or 1
    divisor = abs(step) if ctx.facts.divides(abs(step), start.poly) else 1
    one = Sym.number(1)
    return (start, stop, divisor) if step > 0 else (stop + one, start + one, divisor)


def _is_range(ctx: Context, node: ast.Call) -> bool:
    if ctx.index.canonical(node.func) in _RANGES:
        return True
    is_builtin = isinstance(node.func, ast.Name) and node.func.id == "range"
    return is_builtin and not is_shadowed(ctx.index, node, "range")


def _bind_loop_variable(ctx: Context, name: str, bounds: _Range | None) -> None:
    if bounds is None:
        bind_anything(ctx, name)
        return
    atom = ctx.atom(name)
    start, stop, divisor = bounds
    ctx.facts.ranges[atom] = (start.poly, stop.poly - Poly.number(1))
    ctx.facts.divisible.add((Poly.atom(atom), divisor))
    ctx.scope.bind(name, Unknown(name))
    ctx.scope.values[name] = ctx.named(name, Poly.atom(atom))


def _while(ctx: Context, statement: ast.While) -> None:
    carried = enter_loop(ctx, statement)

    def enter() -> bool:
        with stays_inside(ctx, statement.test, "the test of a `while`"):
            ctx.value_of(statement.test)
        _header(ctx, statement, [statement.test])
        return False

    attempt(ctx, statement, enter)
    with ctx.inside(statement):
        ctx.rewrite_body(statement.body)
    leave_loop(ctx, statement, carried)
    ctx.rewrite_body(statement.orelse)


def _if(ctx: Context, statement: ast.If) -> None:
    def enter() -> bool:
        if ctx.index.source.segment(statement).startswith("elif"):
            with stays_inside(ctx, statement.test, "the test of an `elif`"):
                ctx.value_of(statement.test)
        else:
            ctx.value_of(statement.test)
        test_presence(ctx, statement.test)
        _header(ctx, statement, [statement.test])
        return False

    attempt(ctx, statement, enter)
    before = ctx.scope.copy()
    with ctx.counting_block():
        ctx.rewrite_body(statement.body)
    then, ctx.scope = ctx.scope, before
    ctx.scope.clock = then.clock
    with ctx.counting_block():
        ctx.rewrite_body(statement.orelse)
    join_branches(ctx, then, ctx.scope)


def _with(ctx: Context, statement: ast.With) -> None:
    def enter() -> bool:
        for item in statement.items:
            ctx.value_of(item.context_expr)
            if text_of(ctx, item.context_expr) != ctx.index.source.segment(item.context_expr):
                raise Cannot(
                    Reason.PYTHON_STATE, "device code in the header of a `with`", item.context_expr
                )
        return False

    attempt(ctx, statement, enter)
    for item in statement.items:
        if item.optional_vars is not None:
            bind_unknown(ctx, item.optional_vars)
    ctx.rewrite_body(statement.body)


def _try(ctx: Context, statement: ast.Try) -> None:
    """Every suite is rewritten where it stands; what any of them rebinds is unknown elsewhere."""
    before = set(ctx.scope.values)
    ctx.rewrite_body(statement.body)
    ctx.rewrite_body(statement.orelse)
    whole = ctx.scope
    for handler in statement.handlers:
        ctx.scope = whole.copy()
        _forget_bound(ctx, [*statement.body, *statement.orelse], before)
        if handler.name:
            bind_anything(ctx, handler.name)
        with ctx.counting_block():
            ctx.rewrite_body(handler.body)
        whole.clock = ctx.scope.clock
    ctx.scope = whole
    for handler in statement.handlers:
        if not isinstance(handler.body[-1], ast.Raise | ast.Return):
            _forget_bound(ctx, handler.body, before | set(whole.values))
    with ctx.counting_block():
        ctx.rewrite_body(statement.finalbody)


def _forget_bound(ctx: Context, body: list[ast.stmt], names: set[str]) -> None:
    """Names that the statements bind may have their new value, or their earlier one."""
    for node in (n for s in body for n in walk(s)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names:
            bind_anything(ctx, node.id)


def _match(ctx: Context, statement: ast.Match) -> None:
    def enter() -> bool:
        with stays_inside(ctx, statement.subject, "the subject of a `match`"):
            ctx.value_of(statement.subject)
        return False

    attempt(ctx, statement, enter)
    before = ctx.scope
    for case in statement.cases:
        ctx.scope = before.copy()
        for node in walk(case.pattern):
            if isinstance(name := getattr(node, "name", None), str):
                bind_anything(ctx, name)
        with ctx.counting_block():
            ctx.rewrite_body(case.body)
        before.clock = ctx.scope.clock
    ctx.scope = before
    _forget_bound(ctx, [s for case in statement.cases for s in case.body], _stored(statement))


def _stored(statement: ast.stmt) -> set[str]:
    nodes = walk(statement)
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _nested(ctx: Context, statement: ast.FunctionDef) -> None:
    """A function inside a kernel sees the kernel's variables."""
    outer = ctx.scope.copy()
    ctx.functions.add(ctx.site(statement))
    calls = ctx.before.arguments.get(statement.name, ())
    for position, name in enumerate(a.arg for a in statement.args.args):
        bind_anything(ctx, name)
        passed = [c[position] for c in calls if position < len(c)]
        if passed and all(isinstance(v, Sym) for v in passed):
            ctx.scope.values[name] = ctx.named(name, Poly.atom(ctx.atom(name)))
    with ctx.inside(statement):
        ctx.rewrite_body(statement.body)
    outer.clock = ctx.scope.clock
    ctx.scope = outer


COMPOUND: dict[type[ast.stmt], Callable[..., None]] = {
    ast.For: _for,
    ast.While: _while,
    ast.If: _if,
    ast.With: _with,
    ast.FunctionDef: _nested,
    ast.ClassDef: bind_unknown,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
}
