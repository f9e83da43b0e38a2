"""`t[…] = value` and `t[…] += value` on tiles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Const, Index, Sym, Tensor, Unknown, Value
from nki_migrate.index import walk
from nki_migrate.rewriting.context.call_site import Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_number, text_of
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import (
    VIEW_DIMENSIONS,
    Result,
    emit,
    finish,
    is_widened,
)
from nki_migrate.rewriting.destinations.psum_accumulation import is_sum, is_zero
from nki_migrate.rewriting.expressions.compile_time_calls import value_into
from nki_migrate.rewriting.inference.list_items import note_item
from nki_migrate.rewriting.inference.promotion import float32
from nki_migrate.rewriting.operations.broadcasting import broadcast_to
from nki_migrate.rewriting.operations.calls import hand_over, named_result
from nki_migrate.rewriting.operations.operators import OPERATORS, binary, copied
from nki_migrate.rewriting.views.subscripts import access
from nki_migrate.rewriting.views.tensors import as_tensor


def assign_to_view(ctx: Context, statement: ast.stmt, view: Tensor, value: ast.expr) -> None:
    """The producer gets `dst=view`; a name is copied, a number is a memset."""
    before = len(ctx.out)
    reads = frozenset(n.id for n in walk(value) if isinstance(n, ast.Name))
    found = value_into(ctx, value, Target(view=view, reads=reads))
    found = named_result(ctx, value, found) or found
    if isinstance(found, Tensor) and found is view and len(ctx.out) > before:
        ctx.report(Reason.ASSIGNED_CALL, statement, "the instruction writes to the assigned tile")
        return
    if isinstance(found, Tensor):
        ctx.report(Reason.TILE_ASSIGNMENT, statement, "assigning a tile to a subscript is a copy")
        copy(ctx, statement, view, found)
        return
    number = as_number(ctx, found)
    text = found.text if isinstance(found, Const) else ctx.spell(number) if number else None
    if text is None:
        raise Cannot(
            Reason.TILE_ASSIGNMENT,
            "a subscript of a tile is assigned something that is not known",
            value,
        )
    memset(ctx, statement, view, text)


def memset(ctx: Context, node: ast.AST, view: Tensor, text: str) -> None:
    """`nisa.memset(dst, value)`."""
    ctx.report(Reason.NUMBER_ASSIGNMENT, node, "assigning a number to a tile is a memset")
    storage = view.storage  # adding to what a memset left of a sum is undefined
    is_first = not storage.written and storage.loops == ctx.loops
    kind = "zero" if is_zero(text) and is_first else "other"
    emit(ctx, "memset", view, [("value", text)], kind=kind)


def copy(ctx: Context, node: ast.AST, dst: Tensor, source: Tensor) -> None:
    """`nisa.tensor_copy(dst, src)`, broadcasting a (P, 1) source along the free axis."""
    if is_widened(ctx, source.shape, dst):
        source = broadcast_to(ctx, node, source, dst.shape)
    emit(ctx, "tensor_copy", dst, [("src", source)], source.storage.region)  # type: ignore[arg-type]


def accumulate_into_name(ctx: Context, statement: ast.AugAssign, old: Tensor, name: str) -> None:
    """`name += value`: in place for a declared tensor; a result is bound anew (trap T11).

    0.1: `t = nl.exp(x); u = t; t += 1` leaves `u` as it was, `t = nl.zeros(…)` does not.
    """
    if old.storage.is_value is False or _is_fresh_product(ctx, statement, old):
        accumulate_into(ctx, statement, old)
        return
    if old.storage.is_value is None:
        raise Cannot(
            Reason.AUGMENTED_ASSIGNMENT,
            f"`{name}` may be a declared tensor, which is added to in place,"
            " or a result, which is bound anew",
            statement,
        )
    op = _operator(statement)
    ctx.report(Reason.AUGMENTED_ASSIGNMENT, statement, f"`{op}` of a result makes a new one")
    value: Value = ctx.value_of(statement.value)
    reads = {n.id for n in walk(statement.value) if isinstance(n, ast.Name)}
    target = Target(name=name, reads=frozenset(reads | {name}))
    finish(ctx, name, binary(ctx, op, old, value, Result(statement, target)))


def _operator(statement: ast.AugAssign) -> str:
    op = OPERATORS.get(type(statement.op))
    if op is None:
        text = "an augmented assignment that is not an instruction"
        raise Cannot(Reason.AUGMENTED_ASSIGNMENT, text, statement)
    return op


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
    if isinstance(statement.op, ast.Add) and _is_matmul(ctx, statement.value):
        if view.buffer == "psum" and is_sum(ctx, view.storage):
            ctx.report(
                Reason.PSUM_ACCUMULATION, statement, "a matmul into PSUM accumulates by itself"
            )
            value_into(ctx, statement.value, Target(view=view, accumulate=True))
            return
        ctx.report(Reason.SBUF_ACCUMULATION, statement, "the product is made in PSUM and added")
        value = _separate_product(ctx, statement, view)
    else:
        found = ctx.value_of(statement.value)
        value = named_result(ctx, statement.value, found) or found
    op = _operator(statement)
    ctx.report(Reason.AUGMENTED_ASSIGNMENT, statement, f"`{op}` in place")
    binary(ctx, op, view, value, Result(statement, Target(view=view), view.dtype))
    if isinstance(value, Tensor):
        ctx.use(value, "op")


def _separate_product(ctx: Context, statement: ast.AugAssign, view: Tensor) -> Value:
    """The product in a tile of its own; one that is added in PSUM has the shape of its sum."""
    if view.buffer != "psum" or view.shape is None:
        value = ctx.value_of(statement.value)
        if isinstance(value, Tensor) and view.buffer not in {"sbuf", "hbm"}:  # it may be PSUM
            return copied(ctx, statement.value, value)
        return value
    product = temporary(ctx, "product", view.shape, float32(ctx), "psum", statement.value)
    return value_into(ctx, statement.value, Target(view=product))


def _is_matmul(ctx: Context, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ctx.index.canonical(node.func) in {
        "nisa.nc_matmul",
        "nl.matmul",
    }


@contextmanager
def over_large_grid(ctx: Context, statement: ast.stmt, view: Tensor) -> Iterator[None]:
    """Lines emitted inside are in loops over the axes that are too many for `view`."""
    indices = _indices(ctx, statement)
    rank = max((len(i.extents) for i in indices.values()), default=0)
    if rank <= VIEW_DIMENSIONS:
        yield
        return
    assert isinstance(statement, ast.Assign)
    axes = _smallest(indices, rank, statement)
    _reject_aliases(ctx, statement)
    if not _is_one_to_one(view):
        raise Cannot(Reason.FOLDED_AXES, "an assignment that may write an element twice", statement)
    scope, before = ctx.scope.copy(), len(ctx.out)
    counters = [ctx.fresh_name(f"i_axis_{axis}") for axis in axes]
    for name, axis in zip(counters, axes, strict=True):
        _bind_counter(ctx, name, _extent(indices, axis))
    for name, index in indices.items():
        ctx.scope.values[name] = _fixed(ctx, index, dict(zip(axes, counters, strict=True)))
    with ctx.inside(statement):
        yield
    lines = ctx.out[before:]
    del ctx.out[before:]
    for depth, (name, axis) in enumerate(zip(counters, axes, strict=True)):
        ctx.emit(f"for {name} in range({ctx.spell(_extent(indices, axis))}):", depth)
    for line in lines:
        ctx.emit(line, len(axes))
    message = (
        f"an access of {rank} dimensions: an instruction takes {VIEW_DIMENSIONS}, loops do the rest"
    )
    ctx.report(Reason.FOLDED_AXES, statement, message)
    clock = ctx.scope.clock
    ctx.scope = scope
    ctx.scope.clock = clock


def _indices(ctx: Context, statement: ast.stmt) -> dict[str, Index]:
    """The index tensors that the statement names."""
    found: dict[str, Index] = {}
    for node in walk(statement):
        value = ctx.scope.values.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(value, Index):
            found[node.id] = value  # type: ignore[attr-defined]
    return found


def _extent(indices: dict[str, Index], axis: int) -> Sym:
    extents = [i.extents[axis] for i in indices.values()]
    return next((e for e in extents if e.value != 1), extents[0])


def _smallest(indices: dict[str, Index], rank: int, node: ast.AST) -> list[int]:
    """The axes to loop over: of known sizes, not the partitions, the smallest first."""
    if any(len(i.extents) != rank for i in indices.values()):
        raise Cannot(Reason.FOLDED_AXES, f"index tensors of {rank} dimensions beside others", node)
    sizes = {axis: _extent(indices, axis).value for axis in range(1, rank)}
    known = sorted((size, axis) for axis, size in sizes.items() if size is not None)
    wanted = rank - VIEW_DIMENSIONS
    if len(known) < wanted:
        raise Cannot(
            Reason.FOLDED_AXES, f"index tensors of {rank} dimensions of unknown sizes", node
        )
    return sorted(axis for _, axis in known[:wanted])


def _reject_aliases(ctx: Context, statement: ast.Assign) -> None:
    """The written tensor must not be read: loops would read what they wrote."""
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    written = text_of(ctx, target.value)
    read = {n.id for n in walk(statement.value) if isinstance(n, ast.Name)}
    calls = [n for n in walk(statement.value) if isinstance(n, ast.Call)]
    if written in read or not isinstance(target.value, ast.Name) or calls:
        message = f"`{written}` in loops over a part of it: it may be read on the right"
        raise Cannot(Reason.FOLDED_AXES, message, statement)


def _is_one_to_one(view: Tensor) -> bool:
    """Whether no two results are of one element: each axis counts in one dimension of its own.

    Several axes in one dimension are like digits: a step is larger than all smaller ones reach.
    """
    axes = [axis for dim in view.dims or () for axis, _ in dim.terms]
    return len(axes) == len(set(axes)) and all(_are_digits(view, d.terms) for d in view.dims or ())


def _are_digits(view: Tensor, terms: tuple[tuple[int, Sym], ...]) -> bool:
    assert view.shape is not None
    if len(terms) < 2:
        return True
    pairs = [(step.value or 0, view.shape[axis].value) for axis, step in terms]
    pairs.sort(key=lambda pair: pair[0])
    sizes = [size for _, size in pairs[:-1]]
    if None in sizes:
        return False
    reach = 0
    for step, size in pairs:
        if step <= reach:
            return False
        reach += step * ((size or 1) - 1)
    return True


def _bind_counter(ctx: Context, name: str, extent: Sym) -> None:
    atom = ctx.atom(name)
    ctx.facts.ranges[atom] = (Poly.number(0), extent.poly - Poly.number(1))
    ctx.scope.bind(name, Unknown(name))
    ctx.scope.values[name] = ctx.named(name, Poly.atom(atom))


def _fixed(ctx: Context, index: Index, counters: dict[int, str]) -> Index:
    """The index tensor at one value of some axes, without these."""
    kept = [a for a in range(len(index.extents)) if a not in counters]
    offset = index.offset
    for axis, coefficient in index.terms:
        if axis in counters:
            counter = ctx.scope.values[counters[axis]]
            assert isinstance(counter, Sym)
            offset = offset + coefficient * counter
    terms = tuple((kept.index(a), c) for a, c in index.terms if a in kept)
    return replace(index, extents=tuple(index.extents[a] for a in kept), terms=terms, offset=offset)


def assign_subscript(
    ctx: Context, statement: ast.stmt, target: ast.Subscript, value: ast.expr
) -> bool:
    base = as_tensor(ctx, ctx.value_of(target.value))
    if base is None:
        found = ctx.value_of(value)
        hand_over(ctx, value, found)
        ctx.value_of(target)
        if isinstance(target.value, ast.Name):
            note_item(ctx, target.value.id, found)
        return False
    with over_large_grid(ctx, statement, access(ctx, base, target)):
        assign_to_view(ctx, statement, access(ctx, base, target), value)
    return True
