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
    Ref,
    Storage,
    Sym,
    Tensor,
    Value,
)
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.source_text import as_number, text_of
from nki_migrate.rewriting.views.tensors import view_of
from nki_migrate.rewriting.views.view_text import Gather, own_dtype

_ONE, _ZERO = Sym.number(1), Sym.number(0)


# -- reading a subscript


def access(ctx: Context, base: Tensor, node: ast.Subscript) -> Tensor:
    """The view that `base[...]` is."""

    if base.dims is not None and isinstance(node.value, ast.Subscript):
        ctx.report(Reason.NESTED_SUBSCRIPT, node, "nested subscripts become one")
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values: list[Value | ast.Slice]
    values = [p if isinstance(p, ast.Slice) else ctx.value_of(p) for p in parts]
    if len(values) == 1 and isinstance(grid := values[0], Grid):  # `x[nl.mgrid[0:4, 0:8]]`
        ctx.report(Reason.INDEX_GRID, node, "a grid of index tensors becomes slices")
        values = list(grid.axes)
    if any(isinstance(v, Const) and v.value is Ellipsis for v in values):
        spread = _without_ellipsis(base, values, node)
        if spread is None:
            return replace(base, written=base.written)
        values = spread
    _note_rank(ctx, base, values)
    if base.shape is not None and len(values) > len(base.shape):
        rank = len(base.shape)
        raise Cannot(
            Reason.UNKNOWN_RANK, f"{len(values)} indices for a tensor of rank {rank}", node
        )
    if base.storage.gather is not None:
        raise Cannot(Reason.GATHER, "part of an access whose rows a tile picks", node)
    if (picked := gathered(ctx, base, values, node)) is not None:
        return picked
    if any(isinstance(v, Index) for v in values):
        return _advanced(ctx, base, values, node)
    try:
        result = _basic(ctx, base, values, node)
    except Cannot as problem:
        if (
            base.dims is not None
            or base.storage.blocks
            or problem.cause not in {Reason.UNKNOWN_RANK, Reason.SCALED_INDEX}
        ):
            raise
        result = Tensor(
            base.storage, None, ()
        )  # slices of something of unknown size stay as written
    if base.dims is None and not base.storage.blocks:
        text = text_of(ctx, node)
        return replace(result, written=text[len(text_of(ctx, node.value)) :])
    return result


def _note_rank(ctx: Context, base: Tensor, values: list[Value | ast.Slice]) -> None:
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
    return isinstance(value, Const) and isinstance(value.value, tuple)


def _without_ellipsis(
    base: Tensor, values: list[Value | ast.Slice], node: ast.Subscript
) -> list[Value | ast.Slice] | None:
    """`...` written out as whole slices; None if the subscript is nothing else."""
    if len(values) == 1:
        return None
    if base.shape is None:
        raise Cannot(Reason.UNKNOWN_RANK, "`...` in a subscript of a tensor of unknown rank", node)
    at = next(i for i, v in enumerate(values) if isinstance(v, Const) and v.value is Ellipsis)
    fill = len(base.shape) - (len(values) - 1)
    return [*values[:at], *[ast.Slice()] * fill, *values[at + 1 :]]


def _advanced(
    ctx: Context, base: Tensor, values: list[Value | ast.Slice], node: ast.Subscript
) -> Tensor:
    """A subscript with index tensors: the result has the axes of their broadcast."""
    ctx.require(Reason.INDEX_TENSOR)
    indices = [v for v in values if isinstance(v, Index)]
    rank = max(len(i.extents) for i in indices)
    shape = tuple(
        _broadcast_extent(ctx, [_axis(i, a, rank) for i in indices], node) for a in range(rank)
    )
    new: list[Dim] = []
    for value in values:
        if isinstance(value, Index):
            shift = rank - len(value.extents)
            new.append(Dim(value.offset, tuple((a + shift, c) for a, c in value.terms)))
        elif isinstance(number := number_of(ctx, value), Sym):
            new.append(Dim(number))
        elif isinstance(value, ast.Slice) and is_colon(value) and base.shape is not None:
            axis = len(shape)
            size = base.shape[len(new)]
            shape = (*shape, size)
            new.append(Dim(_ZERO, ((axis, _ONE),)))
        else:
            raise _not_affine(value, node)
    _report_index_rules(ctx, new, shape, node)
    missing = 0 if base.shape is None else len(base.shape) - len(new)
    for k in range(missing):
        assert base.shape is not None
        shape = (*shape, base.shape[len(base.shape) - missing + k])
        new.append(Dim(_ZERO, ((len(shape) - 1, _ONE),)))
    return view_of(base, tuple(new), shape)


def _axis(index: Index, axis: int, rank: int) -> Sym:
    own = axis - (rank - len(index.extents))
    return index.extents[own] if own >= 0 else _ONE


def _broadcast_extent(ctx: Context, extents: list[Sym], node: ast.AST) -> Sym:
    large = [e for e in extents if e.value != 1] or [_ONE]
    if not all(ctx.facts.same(e.poly, large[0].poly) for e in large):
        sizes = ", ".join(e.text for e in large)
        raise Cannot(
            Reason.INDEX_TENSOR, f"index tensors of different extents in one axis: {sizes}", node
        )
    return large[0]


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


def _report_index_rules(
    ctx: Context, dims: list[Dim], shape: tuple[Sym, ...], node: ast.Subscript
) -> None:
    """Say under which rules the subscript is rewritten."""
    order = [a for d in dims for a, _ in d.terms]
    rule = next(r for r in _INDEX_RULES if r.holds(dims, order))
    ctx.report(rule.reason, node, rule.message)


def _basic(
    ctx: Context, base: Tensor, values: list[Value | ast.Slice], node: ast.Subscript
) -> Tensor:
    """A subscript of slices and integers."""
    dims: list[Dim] = []
    shape: list[Sym] = []
    known = base.shape is not None
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
    if known:
        for size in (base.shape or ())[len(values) :]:
            dims.append(Dim(_ZERO, ((len(shape), _ONE),)))
            shape.append(size)
    if not known and not shape:  # numbers only, of something of unknown rank
        return Tensor(base.storage, None, tuple(dims))
    return view_of(base, tuple(dims), _at_least_2d(base, dims, shape))


def _at_least_2d(base: Tensor, dims: list[Dim], shape: list[Sym]) -> tuple[Sym, ...]:
    """On chip an integer keeps size 1 where the result would have fewer than two axes.

    0.1 gives a loaded row of HBM the same (P, 1) form, so 1-D results are written (n, 1) here.
    """
    if base.storage.blocks and len(dims) <= base.storage.blocks:
        return tuple(shape)
    while len(shape) < 2:
        shape = [*shape, _ONE]
    return tuple(shape)


_ONE, _ZERO = Sym.number(1), Sym.number(0)
_INDEX_DTYPES = {"int32", "uint32"}


def gathered(
    ctx: Context, base: Tensor, values: list[Value | ast.Slice], node: ast.AST
) -> Tensor | None:
    """The access as a tensor of its own; None if it is none of this kind."""
    rows = values[0]
    if not isinstance(rows, Tensor) or base.shape is None or base.dims is not None:
        return None
    if base.buffer != "hbm" or len(values) != len(base.shape) or base.storage.gather is not None:
        return None
    if rows.buffer != "sbuf" or rows.shape is None or len(rows.shape) != 2:
        return None
    if rows.shape[1].value != 1:
        return None
    if rows.dtype is not None and rows.dtype.is_known and rows.dtype.key not in _INDEX_DTYPES:
        raise Cannot(Reason.GATHER, f"rows picked by numbers of `{rows.dtype.text}`", node)
    shape, dims = _others(ctx, base, rows, values[1:], node)
    ctx.report(Reason.GATHER, node, "rows picked by a tile of numbers are a vector offset")
    if rows.dims is not None:
        ctx.report(Reason.INDEX_COLUMN, node, "the column of numbers is a slice of their tile")

    name = f"{base.storage.name}_rows"
    storage = Storage(
        name, shape, own_dtype(ctx, base), "hbm", flat_name=base.storage.flat_name,
        mentions=frozenset(), gather=Gather(base, rows, dims, shape),
    )  # fmt: skip
    return Tensor(storage, shape)


def _others(
    ctx: Context, base: Tensor, rows: Tensor, values: list[Value | ast.Slice], node: ast.AST
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
            shift = rank - len(value.extents)
            if any(axis + shift == 0 for axis, _ in value.terms):
                raise Cannot(Reason.GATHER, "the partition axis indexes two dimensions", node)
            for axis, extent in enumerate(value.extents):
                if extent.value != 1 and axis + shift > 0:
                    shape[axis + shift] = extent
            dims.append(Dim(value.offset, tuple((a + shift, c) for a, c in value.terms)))
        elif isinstance(value, Sym):
            dims.append(Dim(value))
        else:
            raise Cannot(Reason.GATHER, "rows picked by a tile, and a slice beside them", node)
    return tuple(shape), tuple(dims)


def _slices(
    ctx: Context, base: Tensor, rows: Tensor, values: list[Value | ast.Slice], node: ast.AST
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


_ONE, _ZERO = Sym.number(1), Sym.number(0)


def number_of(ctx: Context, value: Value | ast.Slice) -> Sym | None:

    return None if isinstance(value, ast.Slice) else as_number(ctx, value)


def slice_of(
    ctx: Context, value: Value | ast.Slice, size: Sym | None, node: ast.AST
) -> tuple[Sym, Sym, Sym] | None:
    """(start, extent, step) of `a:b:c` or `nl.ds(start, size)`; None if it is neither."""

    if isinstance(value, Ref) and value.name == "nl.ds":
        return None
    if isinstance(value, Const) and isinstance(value.value, tuple):  # nl.ds, evaluated
        start, extent = value.value
        return start, extent, _ONE
    if not isinstance(value, ast.Slice):
        return None

    def number(part: ast.expr | None, default: Sym | None) -> Sym:
        if part is None:
            if default is None:
                raise Cannot(
                    Reason.UNKNOWN_RANK, "an open slice of a dimension of unknown size", node
                )
            return default
        found = as_number(ctx, ctx.value_of(part))
        if found is None:
            raise Cannot(
                Reason.DYNAMIC_INDEX, "a slice bound that is not a compile-time number", node
            )
        return found

    start, step = number(value.lower, _ZERO), number(value.step, _ONE)
    stop = number(value.upper, size)
    if stop.value is not None and stop.value < 0 and size is not None:
        stop = size + stop
    if step.value == 1:
        return start, stop - start, _ONE
    width = stop - start
    if step.value is None or step.value < 1:
        raise Cannot(
            Reason.SCALED_INDEX, "a slice with a step that is not a positive literal", node
        )
    extent = Sym(
        ctx.facts.quotient(width.poly, step.poly, up=True),
        f"({(width + Sym.number(step.value - 1)).text}) // {step.value}",
        level=2,
        names=width.names,
    )
    return start, extent if extent.poly.constant is None else Sym.number(extent.poly.constant), step
