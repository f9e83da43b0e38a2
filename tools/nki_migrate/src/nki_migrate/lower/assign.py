"""`t[…] = value` and `t[…] += value` on tiles (NKI1160, NKI1161, NKI1181–NKI1184, NKI1224)."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Const, Tensor, Value
from nki_migrate.index import walk
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import Target, emit, finish, float32, temporary
from nki_migrate.lower.evaluate import value_of
from nki_migrate.lower.operators import OPERATORS, binary, copy_into
from nki_migrate.lower.source_text import as_number
from nki_migrate.lower.sums import is_sum, is_zero

__all__ = ["accumulate_into", "assign_to_view"]


def assign_to_view(ctx: Context, statement: ast.stmt, view: Tensor, value: ast.expr) -> None:
    """The producer gets `dst=view`; a name is copied, a number is a memset."""
    from nki_migrate.lower.statements import into

    before = len(ctx.out)
    reads = frozenset(n.id for n in walk(value) if isinstance(n, ast.Name))
    found = into(ctx, value, Target(view=view, reads=reads))
    if isinstance(found, Tensor) and found is view and len(ctx.out) > before:
        ctx.report("NKI1181", statement, "the instruction writes to the assigned tile")
        return
    if isinstance(found, Tensor):
        ctx.report("NKI1160", statement, "assigning a tile to a subscript is a copy")
        copy(ctx, statement, view, found)
        return
    number = as_number(ctx, found)
    text = found.text if isinstance(found, Const) else ctx.spell(number) if number else None
    if text is None:
        raise Cannot(
            "NKI1160", "a subscript of a tile is assigned something that is not known", value
        )
    memset(ctx, statement, view, text)


def memset(ctx: Context, node: ast.AST, view: Tensor, text: str) -> None:
    """`nisa.memset(dst, value)`."""
    ctx.report("NKI1161", node, "assigning a number to a tile is a memset")
    storage = view.storage  # adding to what a memset left of a sum is undefined (NKI1136)
    is_first = not storage.written and storage.loops == ctx.loops
    kind = "zero" if is_zero(text) and is_first else "other"
    emit(ctx, "memset", view, [("value", text)], None, rank=len(view.shape or ()), kind=kind)


def copy(ctx: Context, node: ast.AST, dst: Tensor, source: Tensor) -> None:
    """`nisa.tensor_copy(dst, src)`, broadcasting a (P, 1) source along the free axis."""
    rank = len(dst.shape or ())
    if source.shape is not None and dst.shape is not None and len(source.shape) == rank:
        shapes = zip(source.shape, dst.shape, strict=True)
        if any(s.value == 1 and d.value is not None and d.value != 1 for s, d in shapes):
            raise Cannot("NKI1163", "assigning a broadcast tile to a subscript", node)
    emit(ctx, "tensor_copy", dst, [("src", source)], None, rank=rank)


def accumulate_into_name(ctx: Context, statement: ast.AugAssign, old: Tensor, name: str) -> None:
    """`name += value`: in place for a declared tensor; a result is bound anew (trap T11).

    0.1: `t = nl.exp(x); u = t; t += 1` leaves `u` as it was, `t = nl.zeros(…)` does not.
    """
    if old.storage.is_value is False or _is_fresh_product(ctx, statement, old):
        accumulate_into(ctx, statement, old)
        return
    if old.storage.is_value is None:
        raise Cannot(
            "NKI1224",
            f"`{name}` may be a declared tensor, which is added to in place,"
            " or a result, which is bound anew",
            statement,
        )
    op = OPERATORS.get(type(statement.op))
    if op is None:
        raise Cannot("NKI1224", "an augmented assignment that is no instruction", statement)
    ctx.report("NKI1224", statement, f"`{op}` of a result makes a new one")
    value: Value = value_of(ctx, statement.value)
    reads = {n.id for n in walk(statement.value) if isinstance(n, ast.Name)}
    target = Target(name=name, reads=frozenset(reads | {name}))
    finish(ctx, name, binary(ctx, statement, op, old, value, None, None, target))


def _is_fresh_product(ctx: Context, statement: ast.AugAssign, old: Tensor) -> bool:
    """A product in PSUM that no other name has may take another product in place."""
    return (
        isinstance(statement.op, ast.Add)
        and old.buffer == "psum"
        and old.storage.site not in ctx.aliased
        and _is_matmul(ctx, statement.value)
    )


def accumulate_into(ctx: Context, statement: ast.AugAssign, view: Tensor) -> None:
    """`t[…] += value`: PSUM accumulation for a matmul, an in-place instruction otherwise."""
    from nki_migrate.lower.statements import into

    if isinstance(statement.op, ast.Add) and _is_matmul(ctx, statement.value):
        if view.buffer == "psum" and is_sum(ctx, view.storage):
            ctx.report("NKI1182", statement, "a matmul into PSUM accumulates by itself")
            into(ctx, statement.value, Target(view=view, accumulate=True))
            return
        ctx.report("NKI1184", statement, "the product is made in PSUM and added")
        value = _made_apart(ctx, statement, view)
    else:
        value = value_of(ctx, statement.value)
    op = OPERATORS.get(type(statement.op))
    if op is None:
        raise Cannot("NKI1224", "an augmented assignment that is no instruction", statement)
    ctx.report("NKI1224", statement, f"`{op}` in place")
    binary(ctx, statement, op, view, value, view.dtype, None, Target(view=view))
    if isinstance(value, Tensor):
        ctx.use(value, "op")


def _made_apart(ctx: Context, statement: ast.AugAssign, view: Tensor) -> Value:
    """The product in a tile of its own; one that is added in PSUM has the shape of its sum."""
    from nki_migrate.lower.statements import into

    if view.buffer != "psum" or view.shape is None:
        value = value_of(ctx, statement.value)
        if isinstance(value, Tensor) and view.buffer not in {"sbuf", "hbm"}:  # it may be PSUM
            return copy_into(ctx, statement.value, value, value.dtype, None, None)
        return value
    product = temporary(ctx, "product", view.shape, float32(ctx), "psum", statement.value)
    return into(ctx, statement.value, Target(view=product))


def _is_matmul(ctx: Context, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ctx.index.canonical(node.func) in {
        "nisa.nc_matmul",
        "nl.matmul",
    }
