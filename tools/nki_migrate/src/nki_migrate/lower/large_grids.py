"""Accesses of more dimensions than an instruction takes: loops over the smallest of them (NKI1153).

`t[ip, 2*jy + jx, …] = …` with index tensors of seven axes is one instruction per value of two of
these. That is the same assignment where no element is written twice and nothing that is written is
read: the tensor of the left-hand side is not on the right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Index, Sym, Tensor, Unknown
from nki_migrate.index import walk
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import VIEW_DIMENSIONS
from nki_migrate.lower.source_text import text_of

__all__ = ["over_large_grid"]


@contextmanager
def over_large_grid(ctx: Context, statement: ast.stmt, view: Tensor) -> Iterator[None]:
    """What is emitted inside stands in loops over the axes that are too many for `view`."""
    indices = _indices(ctx, statement)
    rank = max((len(i.extents) for i in indices.values()), default=0)
    if rank <= VIEW_DIMENSIONS:
        yield
        return
    assert isinstance(statement, ast.Assign)
    axes = _smallest(indices, rank, statement)
    _refuse_aliases(ctx, statement)
    if not _is_one_to_one(view):
        raise Cannot("NKI1153", "an assignment that may write an element twice", statement)
    scope, before = ctx.scope.copy(), len(ctx.out)
    counters = [ctx.fresh_name(f"i_axis_{axis}") for axis in axes]
    for name, axis in zip(counters, axes, strict=True):
        _bind_counter(ctx, name, _extent(indices, axis))
    for name, index in indices.items():
        ctx.scope.values[name] = _fixed(ctx, index, dict(zip(axes, counters, strict=True)))
    outer, ctx.loops = ctx.loops, (*ctx.loops, ctx.site(statement))
    with ctx.counting_block():
        yield
    ctx.loops = outer
    lines = ctx.out[before:]
    del ctx.out[before:]
    for depth, (name, axis) in enumerate(zip(counters, axes, strict=True)):
        pad = "    " * depth
        ctx.emit(f"{pad}for {name} in range({ctx.spell(_extent(indices, axis))}):")
    pad = "    " * len(axes)
    for line in lines:
        ctx.emit(pad + line.replace("\n", "\n" + pad))
    message = (
        f"an access of {rank} dimensions: an instruction takes {VIEW_DIMENSIONS}, loops do the rest"
    )
    ctx.report("NKI1153", statement, message)
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
        raise Cannot("NKI1153", f"index tensors of {rank} dimensions beside others", node)
    sizes = {axis: _extent(indices, axis).value for axis in range(1, rank)}
    known = sorted((size, axis) for axis, size in sizes.items() if size is not None)
    wanted = rank - VIEW_DIMENSIONS
    if len(known) < wanted:
        raise Cannot("NKI1153", f"index tensors of {rank} dimensions of unknown sizes", node)
    return sorted(axis for _, axis in known[:wanted])


def _refuse_aliases(ctx: Context, statement: ast.Assign) -> None:
    """The written tensor must not be read: loops would read what they wrote."""
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    written = text_of(ctx, target.value)
    read = {n.id for n in walk(statement.value) if isinstance(n, ast.Name)}
    calls = [n for n in walk(statement.value) if isinstance(n, ast.Call)]
    if written in read or not isinstance(target.value, ast.Name) or calls:
        message = f"`{written}` in loops over a part of it: it may be read on the right"
        raise Cannot("NKI1153", message, statement)


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
    steps = [(step.value, view.shape[axis].value) for axis, step in terms]
    if any(step is None or step < 1 for step, _ in steps):
        return False
    steps.sort(key=lambda s: s[0] or 0)
    reach = 0
    for position, (step, size) in enumerate(steps):
        if step is None or step <= reach or (size is None and position < len(steps) - 1):
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
