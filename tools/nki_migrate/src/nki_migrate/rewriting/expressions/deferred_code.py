"""Code that may run later, more than once or not at all: nothing can be put in front of it.

The rewriting puts instructions before the statement. That is wrong for the body of a lambda or a
comprehension (its variables do not exist there yet), for the arms of `x if c else y` and the later
operands of `and` and `or` (they may not run), and for the test of a `while` (it runs again).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from nki_migrate.facts.values import Container, Parameter, Unknown, Value
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.expressions.loop_items import items_of, note_numbers
from nki_migrate.rewriting.operations.calls import hand_over

_RULE = Reason.PYTHON_STATE  # Python that changes meaning between trace and compile


@contextmanager
def stays_inside(ctx: Context, node: ast.AST, place: str) -> Iterator[None]:
    """Raises Cannot if what is evaluated inside needs instructions of its own."""
    before = len(ctx.out)
    yield
    if len(ctx.out) > before:
        raise Cannot(_RULE, f"device code in {place}; write it as statements of their own", node)


@contextmanager
def _own_names(ctx: Context) -> Iterator[None]:
    """Names bound inside are not seen outside."""
    outer = ctx.scope.copy()
    try:
        yield
    finally:
        outer.clock = ctx.scope.clock
        ctx.scope = outer


def _bind_names(ctx: Context, target: ast.AST) -> None:
    for node in ast.walk(target):
        name = node.arg if isinstance(node, ast.arg) else getattr(node, "id", None)
        if isinstance(name, str):
            ctx.scope.bind(name, Unknown(name))
            ctx.scope.values[name] = Parameter(name, None, ctx.scope.clock)


def _operand(ctx: Context, node: ast.expr) -> None:

    hand_over(ctx, node, ctx.value_of(node))


def _lambda(ctx: Context, node: ast.Lambda) -> Value:
    with stays_inside(ctx, node, "a lambda"), _own_names(ctx):
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            _operand(ctx, default)
        _bind_names(ctx, node.args)
        _operand(ctx, node.body)
    return Unknown("a lambda")


_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def _comprehension(ctx: Context, node: _Comprehension) -> Value:
    with stays_inside(ctx, node, "a comprehension"), _own_names(ctx):
        for generator in node.generators:
            _operand(ctx, generator.iter)
            _bind_names(ctx, generator.target)
            note_numbers(ctx, generator.target, items_of(ctx, generator.iter))
            for condition in generator.ifs:
                _operand(ctx, condition)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in parts:
            _operand(ctx, part)
    return Container("a comprehension")


def _list(ctx: Context, node: ast.ListComp) -> Value:
    """`[nl.load(t) for t in (a, b)]`: a loop that appends, where an element is device code."""
    generator = node.generators[0]
    target = generator.target
    is_plain = len(node.generators) == 1 and not generator.ifs and isinstance(target, ast.Name)
    if not is_plain or target.id in ctx.scope.values:
        return _comprehension(ctx, node)
    _operand(ctx, generator.iter)
    before = len(ctx.out)
    with _own_names(ctx), ctx.inside(node):
        _bind_names(ctx, target)
        note_numbers(ctx, target, items_of(ctx, generator.iter))
        _operand(ctx, node.elt)
    lines = ctx.out[before:]
    if lines:
        del ctx.out[before:]
        _append_in_loop(ctx, node, lines)
    return Container("a comprehension")


def _append_in_loop(ctx: Context, node: ast.ListComp, lines: list[str]) -> None:
    ctx.report(_RULE, node, "a comprehension that makes tiles is a loop")
    name, generator = ctx.fresh_name("tiles"), node.generators[0]
    ctx.emit(f"{name} = []")
    ctx.emit(f"for {text_of(ctx, generator.target)} in {text_of(ctx, generator.iter)}:")
    for line in (*lines, f"{name}.append({text_of(ctx, node.elt)})"):
        ctx.emit(line, 1)
    ctx.rewrites[node] = name


def _walrus(ctx: Context, node: ast.NamedExpr) -> Value:
    with stays_inside(ctx, node, "an assignment expression"):
        _operand(ctx, node.value)
    _bind_names(ctx, node.target)
    return Unknown(node.target.id)


def _display(ctx: Context, node: ast.Dict | ast.Set | ast.Starred) -> Value:
    """Their elements run once, in order: tiles made on the way are named in their place."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            _operand(ctx, child)
    return Container("a display")


SCOPED = {
    ast.Lambda: _lambda,
    ast.ListComp: _list,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.NamedExpr: _walrus,
    ast.Dict: _display,
    ast.Set: _display,
    ast.Starred: _display,
}
