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
    Storage,
    Sym,
    Tensor,
    Value,
)
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.source_text import as_number, text_of
from nki_migrate.rewriting.views.index_tensors import shared_extent
from nki_migrate.rewriting.views.tensors import Gather, own_dtype, view_of

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
    if (picked := _gathered(ctx, base, values, node)) is not None:
        return picked
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
        _broadcast_extent(ctx, [_axis(i, a, rank) for i in indices], node) for a in range(rank)
    ]
    new: list[Dim] = []
    for value in values:
        if isinstance(value, Index):
            new.append(_dim_of(value, rank))
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


def _dim_of(index: Index, rank: int) -> Dim:
    """How an index tensor, broadcast to `rank` axes, addresses its dimension."""
    shift = rank - len(index.extents)
    return Dim(index.offset, tuple((a + shift, c) for a, c in index.terms))


def _axis(index: Index, axis: int, rank: int) -> Sym:
    own = axis - (rank - len(index.extents))
    return index.extents[own] if own >= 0 else _ONE


def _broadcast_extent(ctx: Context, extents: list[Sym], node: ast.AST) -> Sym:
    extent = shared_extent(ctx, extents)
    if extent is None:
        sizes = ", ".join(e.text for e in extents if e.value != 1)
        text = f"index tensors of different extents in one axis: {sizes}"
        raise Cannot(Reason.INDEX_TENSOR, text, node)
    return extent


def is_colon(node: ast.Slice) -> bool:
    return node.lower is None and node.upper is None and node.step is None


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


_INDEX_DTYPES = {"int32", "uint32"}


def _gathered(ctx: Context, base: Tensor, values: _Indices, node: ast.AST) -> Tensor | None:
    """The access as a tensor of its own; None if it is none of this kind."""
    rows = values[0]
    if not isinstance(rows, Tensor) or not _is_column(rows):
        return None
    if base.shape is None or base.dims is not None or base.buffer != "hbm":
        return None
    if len(values) != len(base.shape):
        return None
    if rows.dtype is not None and rows.dtype.is_known and rows.dtype.key not in _INDEX_DTYPES:
        raise Cannot(Reason.GATHER, f"rows picked by numbers of `{rows.dtype.text}`", node)
    shape, dims = _others(ctx, base, rows, values[1:], node)
    ctx.report(Reason.GATHER, node, "rows picked by a tile of numbers are a vector offset")
    if rows.dims is not None:
        ctx.report(Reason.INDEX_COLUMN, node, "the column of numbers is a slice of their tile")
    storage = Storage(
        f"{base.storage.name}_rows", shape, own_dtype(ctx, base), "hbm",
        flat_name=base.storage.flat_name, mentions=frozenset(),
        gather=Gather(base, rows, dims, shape),
    )  # fmt: skip
    return Tensor(storage, shape)


def _is_column(rows: Tensor) -> bool:
    if rows.buffer != "sbuf" or rows.shape is None:
        return False
    return len(rows.shape) == 2 and rows.shape[1].value == 1


def _others(
    ctx: Context, base: Tensor, rows: Tensor, values: _Indices, node: ast.AST
) -> tuple[tuple[Sym, ...], tuple[Dim, ...]]:
    """Shape of the access, and how its axes address the dimensions, the first one included."""
    assert rows.shape is not None
    indices = [v for v in values if isinstance(v, Index)]
    if not indices and any(isinstance(v, ast.Slice) for v in values):
        return _slices(ctx, base, rows, values, node)
    rank = max([2, *(len(i.extents) for i in indices)])
    shape = [rows.shape[0], *[_ONE] * (rank - 1)]
    dims = [Dim(_ZERO, ((0, _ONE),))]
    for value in values:
        if isinstance(value, Index):
            dims.append(_dim_of(value, rank))
            _widen(shape, value, dims[-1], node)
        elif isinstance(value, Sym):
            dims.append(Dim(value))
        else:
            raise Cannot(Reason.GATHER, "rows picked by a tile, and a slice beside them", node)
    return tuple(shape), tuple(dims)


def _widen(shape: list[Sym], index: Index, dim: Dim, node: ast.AST) -> None:
    """The free axes of an index tensor beside picked rows."""
    if any(axis == 0 for axis, _ in dim.terms):
        raise Cannot(Reason.GATHER, "the partition axis indexes two dimensions", node)
    for axis in range(1, len(shape)):
        extent = _axis(index, axis, len(shape))
        if extent.value != 1:
            shape[axis] = extent


def _slices(
    ctx: Context, base: Tensor, rows: Tensor, values: _Indices, node: ast.AST
) -> tuple[tuple[Sym, ...], tuple[Dim, ...]]:
    """Every slice beside the rows is an axis behind the partition axis."""
    assert rows.shape is not None and base.shape is not None
    if rows.dims is not None and not any(d.terms for d in rows.dims):  # a number, not rows
        raise Cannot(Reason.DYNAMIC_INDEX, "a number in a tile picks part of a tensor", node)
    shape, dims = [rows.shape[0]], [Dim(_ZERO, ((0, _ONE),))]
    for value, size in zip(values, base.shape[1:], strict=True):
        if isinstance(value, Sym):
            dims.append(Dim(value))
            continue
        found = slice_of(ctx, value, size, node)
        if found is None:
            raise Cannot(Reason.GATHER, "rows picked by a tile, and another tile beside them", node)
        start, extent, step = found
        dims.append(Dim(start, ((len(shape), step),)))
        shape.append(extent)
    return (*shape, *[_ONE] * (2 - len(shape))), tuple(dims)


def number_of(ctx: Context, value: Value | ast.Slice) -> Sym | None:
    return None if isinstance(value, ast.Slice) else as_number(ctx, value)


def _of_object(value: Value) -> tuple[Sym, Sym, Sym] | None:
    """`slice(a, b)`, or `nl.ds(start, size)` as it was evaluated."""
    if isinstance(value, Slice):
        return value.start, value.extent, _ONE
    if isinstance(value, Const) and isinstance(value.value, tuple):
        start, extent = value.value
        return start, extent, _ONE
    return None


def slice_of(
    ctx: Context, value: Value | ast.Slice, size: Sym | None, node: ast.AST
) -> tuple[Sym, Sym, Sym] | None:
    """(start, extent, step) of `a:b:c` or `nl.ds(start, size)`; None if it is neither."""
    if not isinstance(value, ast.Slice):
        return _of_object(value)
    start, step = _bound(ctx, value.lower, _ZERO, node), _bound(ctx, value.step, _ONE, node)
    stop = _bound(ctx, value.upper, size, node)
    if stop.value is not None and stop.value < 0 and size is not None:
        stop = size + stop
    if step.value == 1:
        return start, stop - start, _ONE
    if step.value is None or step.value < 1:
        text = "a slice with a step that is not a positive literal"
        raise Cannot(Reason.SCALED_INDEX, text, node)
    width = stop - start
    poly = ctx.facts.quotient(width.poly, step.poly, up=True)
    if poly.constant is not None:
        return start, Sym.number(poly.constant), step
    text = f"({(width + Sym.number(step.value - 1)).text}) // {step.value}"
    return start, Sym(poly, text, level=2, names=width.names), step


def _bound(ctx: Context, part: ast.expr | None, default: Sym | None, node: ast.AST) -> Sym:
    """The number of a part of a slice."""
    if part is None:
        if default is None:
            text = "an open slice of a dimension of unknown size"
            raise Cannot(Reason.UNKNOWN_RANK, text, node)
        return default
    found = as_number(ctx, ctx.value_of(part))
    if found is None:
        text = "a slice bound that is not a compile-time number"
        raise Cannot(Reason.DYNAMIC_INDEX, text, node)
    return found
