"""Reading subscripts: from index tensors, slices and numbers to a view.

A view maps each dimension of its storage to an affine function of result axes (`Dim`);
`views` writes it down.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from nki_migrate.facts.values import (
    Const,
    Dim,
    Grid,
    Index,
    Slice,
    Sym,
    Tensor,
    Value,
)
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.views.gathers import at_zero, device_number, gathered, offset_view
from nki_migrate.rewriting.views.index_tensors import axis_extent, dim_of, shared_extent
from nki_migrate.rewriting.views.slices import number_of, slice_of
from nki_migrate.rewriting.views.tensors import view_of

_Indices = list[Value | ast.Slice]
_ONE, _ZERO = Sym.number(1), Sym.number(0)


def access(ctx: Context, base: Tensor, node: ast.Subscript) -> Tensor:
    """The view that `base[...]` is."""
    if base.dims is not None and isinstance(node.value, ast.Subscript):
        ctx.report(Reason.NESTED_SUBSCRIPT, node, "nested subscripts become one")
    values = _indices(ctx, base, node)
    if values is None:
        return replace(base, written=base.written)
    _check_rank(ctx, base, values, node)
    if base.storage.gather is not None:
        raise Cannot(Reason.GATHER, "part of an access whose rows a tile picks", node)
    if (picked := gathered(ctx, base, values, node)) is not None:
        return picked
    at = device_number(base, values)
    if at is not None:
        view = _at_compile_time(ctx, base, at_zero(values, at), node)
        return offset_view(ctx, values, at, view, node)
    return _at_compile_time(ctx, base, values, node)


def _at_compile_time(ctx: Context, base: Tensor, values: _Indices, node: ast.Subscript) -> Tensor:
    """The view that index tensors, slices and numbers make."""
    if any(isinstance(v, Index) for v in values):
        return _advanced(ctx, base, values, node)
    return _by_position(ctx, base, values, node)


def _by_position(ctx: Context, base: Tensor, values: _Indices, node: ast.Subscript) -> Tensor:
    """Slices and numbers; on a tensor as it was made the text of the subscript stays valid."""
    is_part = base.dims is not None or base.storage.blocks
    if is_part or any(isinstance(v, Slice) for v in values):
        return _basic(ctx, base, values, node)
    try:
        result = _basic(ctx, base, values, node)
    except Cannot as problem:
        if problem.cause not in {Reason.UNKNOWN_RANK, Reason.SCALED_INDEX}:
            raise
        result = Tensor(base.storage, None, ())  # of something of unknown size: as written
    return replace(result, written=text_of(ctx, node)[len(text_of(ctx, node.value)) :])


def _indices(ctx: Context, base: Tensor, node: ast.Subscript) -> _Indices | None:
    """The indices of a subscript, `...` written out; None for `base[...]`."""
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values: _Indices = [p if isinstance(p, ast.Slice) else ctx.value_of(p) for p in parts]
    if len(values) == 1 and isinstance(grid := values[0], Grid):  # `x[nl.mgrid[0:4, 0:8]]`
        ctx.report(Reason.INDEX_GRID, node, "a grid of index tensors becomes slices")
        return list(grid.axes)
    dots = [i for i, v in enumerate(values) if isinstance(v, Const) and v.value is Ellipsis]
    if not dots:
        return values
    if len(values) == 1:
        return None
    if base.shape is None:
        raise Cannot(Reason.UNKNOWN_RANK, "`...` in a subscript of a tensor of unknown rank", node)
    whole = [ast.Slice()] * (len(base.shape) - (len(values) - 1))
    return [*values[: dots[0]], *whole, *values[dots[0] + 1 :]]


def _check_rank(ctx: Context, base: Tensor, values: _Indices, node: ast.AST) -> None:
    _note_rank(ctx, base, values)
    if base.shape is not None and len(values) > len(base.shape):
        text = f"{len(values)} indices for a tensor of rank {len(base.shape)}"
        raise Cannot(Reason.UNKNOWN_RANK, text, node)


def _note_rank(ctx: Context, base: Tensor, values: _Indices) -> None:
    """A parameter has as many dimensions as indices, if there are several and not all are numbers.

    `x[i]` says nothing: it may be an element, a row or a matrix.
    """
    name = base.storage.name
    if base.dims is not None or base.storage.flat_name != name or len(values) < 2:
        return
    if base.storage.mentions is None:  # `x = x.reshape(…)`: the name, but not the parameter
        return
    if any(isinstance(v, ast.Slice | Index) or _is_ds(v) for v in values):
        ctx.seen.ranks[name] = max(len(values), ctx.seen.ranks.get(name, 0))


def _is_ds(value: Value | ast.Slice) -> bool:
    return isinstance(value, Slice) or (isinstance(value, Const) and isinstance(value.value, tuple))


def _advanced(ctx: Context, base: Tensor, values: _Indices, node: ast.Subscript) -> Tensor:
    """A subscript with index tensors: the result has the axes of their broadcast."""
    ctx.require(Reason.INDEX_TENSOR)
    indices = [v for v in values if isinstance(v, Index)]
    rank = max(len(i.extents) for i in indices)
    shape = [
        _broadcast_extent(ctx, [axis_extent(i, a, rank) for i in indices], node)
        for a in range(rank)
    ]
    new: list[Dim] = []
    for value in values:
        if isinstance(value, Index):
            new.append(dim_of(value, rank))
        elif isinstance(number := number_of(ctx, value), Sym):
            new.append(Dim(number))
        elif base.shape is not None and (part := slice_of(ctx, value, base.shape[len(new)], node)):
            start, extent, step = part
            new.append(Dim(start, ((len(shape), step),)))
            shape.append(extent)
        else:
            raise _not_affine(value, node)
    _report_index_rules(ctx, new, node)
    for size in (base.shape or ())[len(new) :]:
        shape.append(size)
        new.append(Dim(_ZERO, ((len(shape) - 1, _ONE),)))
    return view_of(base, tuple(new), tuple(shape))


def _broadcast_extent(ctx: Context, extents: list[Sym], node: ast.AST) -> Sym:
    extent = shared_extent(ctx, extents)
    if extent is None:
        sizes = ", ".join(e.text for e in extents if e.value != 1)
        text = f"index tensors of different extents in one axis: {sizes}"
        raise Cannot(Reason.INDEX_TENSOR, text, node)
    return extent


def _not_affine(value: Value | ast.Slice, node: ast.AST) -> Cannot:
    if isinstance(value, Tensor):
        return Cannot(Reason.GATHER, "an index that is itself a tensor (gather or scatter)", node)
    if isinstance(value, Unsupported):
        return Cannot(value.reason, value.text, node)
    return Cannot(
        Reason.INDEX_TENSOR, "an index that is not affine in index tensors and numbers", node
    )


@dataclass(frozen=True, slots=True)
class _IndexRule:
    """Under which rule a subscript with such dimensions is rewritten; `order` is of their axes."""

    reason: Reason
    message: str
    holds: Callable[[list[Dim], list[int]], bool]


_INDEX_RULES = (
    _IndexRule(
        Reason.FOLDED_AXES,
        "two index tensors folded into one dimension",
        lambda dims, order: any(len(d.terms) > 1 for d in dims),
    ),
    _IndexRule(
        Reason.REPEATED_AXIS,
        "the same index axis in two dimensions",
        lambda dims, order: len(set(order)) < len(order),
    ),
    _IndexRule(
        Reason.PERMUTED_AXES,
        "index tensors in permuted order",
        lambda dims, order: order != sorted(order),
    ),
    _IndexRule(
        Reason.SCALED_INDEX,
        "a scaled index tensor is a strided slice",
        lambda dims, order: any(c.value != 1 for d in dims for _, c in d.terms),
    ),
    _IndexRule(
        Reason.OFFSET_INDEX,
        "an index tensor with an offset is a slice",
        lambda dims, order: any(d.offset.value != 0 and d.terms for d in dims),
    ),
    _IndexRule(Reason.INDEX_TENSOR, "index tensors are slices", lambda dims, order: True),
)
"""The first that holds is reported."""


def _report_index_rules(ctx: Context, dims: list[Dim], node: ast.Subscript) -> None:
    """Say under which rules the subscript is rewritten."""
    order = [a for d in dims for a, _ in d.terms]
    rule = next(r for r in _INDEX_RULES if r.holds(dims, order))
    ctx.report(rule.reason, node, rule.message)


def _basic(ctx: Context, base: Tensor, values: _Indices, node: ast.Subscript) -> Tensor:
    """A subscript of slices and integers."""
    _reject_one_slice(ctx, base, values, node)
    dims: list[Dim] = []
    shape: list[Sym] = []
    for k, value in enumerate(values):
        size = base.shape[k] if base.shape is not None else None
        sliced = slice_of(ctx, value, size, node)
        if sliced is not None:
            start, extent, step = sliced
            dims.append(Dim(start, ((len(shape), step),)))
            shape.append(extent)
            continue
        number = number_of(ctx, value)
        if number is None:
            raise _not_affine(value, node)
        dims.append(Dim(number))
    for size in (base.shape or ())[len(values) :]:
        dims.append(Dim(_ZERO, ((len(shape), _ONE),)))
        shape.append(size)
    if base.shape is None and not shape:  # numbers only, of something of unknown rank
        return Tensor(base.storage, None, tuple(dims))
    return view_of(base, tuple(dims), _at_least_2d(base, dims, shape))


def _reject_one_slice(ctx: Context, base: Tensor, values: _Indices, node: ast.AST) -> None:
    """`x[a:b]` of a tensor of unknown rank has a shape of unknown rank."""
    if base.shape is None and len(values) == 1 and number_of(ctx, values[0]) is None:
        text = f"`{base.storage.name}` may have more dimensions than the one that is indexed"
        raise Cannot(Reason.UNKNOWN_RANK, text, node)


def _at_least_2d(base: Tensor, dims: list[Dim], shape: list[Sym]) -> tuple[Sym, ...]:
    """On chip an integer keeps size 1 where the result would have fewer than two axes.

    0.1 gives a loaded row of HBM the same (P, 1) form, so 1-D results are written (n, 1) here.
    """
    if base.storage.blocks and len(dims) <= base.storage.blocks:
        return tuple(shape)
    while len(shape) < 2:
        shape = [*shape, _ONE]
    return tuple(shape)
