"""Assertions and annotations are facts: divisibility, equal sizes, shapes and dtypes."""

from __future__ import annotations

import ast
import itertools

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import (
    Const,
    Seq,
    ShapeOf,
    Sym,
    Tensor,
    Value,
)
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.source_text import as_number


def learn_annotated_shape(ctx: Context, statement: ast.AnnAssign) -> None:
    """`x: tensor[P, F] = …` says the shape where nothing else does."""
    if not (
        isinstance(statement.target, ast.Name) and isinstance(statement.annotation, ast.Subscript)
    ):
        return
    bound, sizes = ctx.scope.values.get(statement.target.id), statement.annotation.slice
    if not (isinstance(bound, Tensor) and bound.shape is None and isinstance(sizes, ast.Tuple)):
        return
    numbers = [as_number(ctx, ctx.value_of(s)) for s in sizes.elts]
    if all(n is not None for n in numbers):
        shape = tuple(n for n in numbers if n is not None)
        bound.storage.shape = shape
        ctx.scope.values[statement.target.id] = bound.with_shape(shape)


def learn_assertion(ctx: Context, statement: ast.Assert) -> bool:
    """Assertions are facts: `n % 128 == 0`, `K == K_`, conjunctions of such."""
    ctx.value_of(statement.test)
    tests = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
    if isinstance(statement.test, ast.BoolOp) and not isinstance(statement.test.op, ast.And):
        return False
    for test in tests:
        _learn_equal_dtypes(ctx, test)
        if isinstance(test, ast.Compare) and all(isinstance(o, ast.Eq) for o in test.ops):
            sides = [test.left, *test.comparators]
            for left, right in itertools.pairwise(sides):
                _learn_equality(ctx, left, right)
    return False


def _learn_equal_dtypes(ctx: Context, test: ast.expr) -> None:
    """`assert a.dtype == b.dtype`."""
    if not (isinstance(test, ast.Compare) and all(isinstance(o, ast.Eq) for o in test.ops)):
        return
    sides = [ctx.value_of(x) for x in (test.left, *test.comparators)]
    keys = [v.value.key for v in sides if isinstance(v, Const) and isinstance(v.value, DType)]
    if len(keys) == len(sides):
        ctx.same_dtypes |= {frozenset((a, b)) for a in keys for b in keys}


def _learn_equality(ctx: Context, left: ast.expr, right: ast.expr) -> None:
    shapes = [ctx.value_of(x) for x in (left, right)]
    if all(isinstance(s, Seq | ShapeOf) for s in shapes):
        _learn_equal_shapes(ctx, *shapes)
        return
    b = as_number(ctx, ctx.value_of(right))
    is_zero = b is not None and b.value == 0
    if is_zero and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
        _learn_divisibility(ctx, left.left, left.right)
        return
    a = as_number(ctx, ctx.value_of(left))
    if a is not None and b is not None:
        _learn_equal_numbers(ctx, a, b)


def _learn_divisibility(ctx: Context, left: ast.expr, right: ast.expr) -> None:
    """`assert left % right == 0`."""
    number, divisor = (as_number(ctx, ctx.value_of(side)) for side in (left, right))
    if number is not None and divisor is not None and divisor.value:
        ctx.facts.divisible.add((ctx.facts.reduced(number.poly), divisor.value))


def _learn_equal_shapes(ctx: Context, a: Value, b: Value) -> None:
    """`assert q.shape == k.shape`: both have one rank and the same sizes."""
    if isinstance(a, ShapeOf):
        a, b = b, a
    if isinstance(a, Seq) and isinstance(b, ShapeOf):
        ctx.seen.ranks[b.text] = len(a.items)
    elif isinstance(a, ShapeOf) and isinstance(b, ShapeOf):
        known = ctx.seen.ranks.get(a.text) or ctx.seen.ranks.get(b.text)
        if known is not None:
            ctx.seen.ranks |= {a.text: known, b.text: known}
    elif isinstance(a, Seq) and isinstance(b, Seq):
        for x, y in zip(a.items, b.items, strict=False):
            if isinstance(x, Sym) and isinstance(y, Sym):
                _learn_equal_numbers(ctx, x, y)


def _learn_equal_numbers(ctx: Context, a: Sym, b: Sym) -> None:
    for one, other in ((a.poly, b.poly), (b.poly, a.poly)):
        atom = one.single_atom
        if atom is not None and atom not in ctx.facts.reduced(other).atoms():
            ctx.facts.equal[atom] = ctx.facts.reduced(other)
            return
