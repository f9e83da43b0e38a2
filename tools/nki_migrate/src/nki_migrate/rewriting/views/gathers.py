"""Accesses that numbers on the device choose: rows that a tile picks, parts at an offset."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from neuroncore.targets import QUADRANT
from nki_migrate.facts.values import DeviceSlice, Dim, Index, Slice, Storage, Sym, Tensor, Value
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.views.index_tensors import axis_extent, dim_of
from nki_migrate.rewriting.views.slices import number_of, slice_of
from nki_migrate.rewriting.views.tensors import own_dtype

Indices = Sequence[Value | ast.Slice]
_ONE, _ZERO = Sym.number(1), Sym.number(0)
_INDEX_DTYPES = {"int32", "uint32"}


@dataclass(frozen=True, slots=True)
class Gather:
    """The parts of a gather: the whole tensor, the (P, 1) numbers, all axes.

    `at`: the dimension that the numbers index; single numbers index those in front of it.
    """

    base: Tensor
    rows: Tensor
    dims: tuple[Dim, ...]
    shape: tuple[Sym, ...]
    at: int = 0


@dataclass(frozen=True, slots=True)
class Shift:
    """A view at an offset that is known on the device: `number` indices of dimension `at`."""

    view: Tensor
    number: Tensor
    at: int


def gathered(ctx: Context, base: Tensor, values: Indices, node: ast.AST) -> Tensor | None:
    """The rows that a tile picks, as a tensor of its own; None for other accesses."""
    at = _picking(values)
    rows = values[at] if at is not None else None
    if at is None or not isinstance(rows, Tensor) or not _picks_rows(base, values, rows):
        return None
    numbers = _numbers_before(ctx, values[:at], node)
    shape, dims = _others(ctx, base, rows, values[at + 1 :], node)
    ctx.report(Reason.GATHER, node, "rows picked by a tile of numbers are a vector offset")
    if rows.dims is not None:
        ctx.report(Reason.INDEX_COLUMN, node, "the column of numbers is a slice of their tile")
    dims, rows = (*numbers, *dims), _as_integers(ctx, rows, node)
    return _chosen(ctx, base, "rows", shape, Gather(base, rows, dims, shape, at))


def _picks_rows(base: Tensor, values: Indices, rows: Tensor) -> bool:
    """Whether a column of numbers picks rows of a whole tensor in HBM."""
    is_whole = base.dims is None and base.buffer == "hbm" and base.shape is not None
    if not is_whole or not _is_column(rows) or len(values) != len(base.shape or ()):
        return False
    return not _is_offset(rows, [v for v in values if v is not rows])


def _numbers_before(ctx: Context, values: Indices, node: ast.AST) -> list[Dim]:
    """The dimensions in front of the picked one, where each is indexed by a number."""
    numbers = [number_of(ctx, v) for v in values]
    if None in numbers:
        raise Cannot(Reason.GATHER, "rows picked by a tile behind an axis of others", node)
    return [Dim(n) for n in numbers if n is not None]


def offset_view(ctx: Context, values: Indices, at: int, view: Tensor, node: ast.AST) -> Tensor:
    """A part of a tensor whose place along one axis is a number on the device.

    `view` is the part at the number zero.
    """
    chosen = values[at]
    number = chosen.start if isinstance(chosen, DeviceSlice) else chosen
    assert isinstance(number, Tensor)
    if view.buffer != "hbm" or view.storage.gather is not None or view.shape is None:
        raise Cannot(Reason.DYNAMIC_INDEX, "a number in a tile picks part of a tensor", node)
    if number.buffer != "sbuf" or number.shape is None or {s.value for s in number.shape} != {1}:
        raise Cannot(Reason.DYNAMIC_INDEX, "the number is not known to be one in SBUF", node)
    number = _as_integers(ctx, number, node)
    ctx.report(Reason.DYNAMIC_INDEX, node, "a number on the device is a scalar offset")
    return _chosen(ctx, view, "part", view.shape, Shift(view, number, at))


def device_number(base: Tensor, values: Indices) -> int | None:
    """The position of the one index that is a number on the device; None without any."""
    found = [
        k for k, v in enumerate(values)
        if isinstance(v, DeviceSlice) or (isinstance(v, Tensor) and _is_number(v))
    ]  # fmt: skip
    return found[0] if len(found) == 1 and base.dims is None and not base.storage.blocks else None


def at_zero(values: Indices, at: int) -> list[Value | ast.Slice]:
    """The indices of the part that begins at zero along the axis of the number."""
    chosen = values[at]
    zero = Slice(_ZERO, chosen.extent) if isinstance(chosen, DeviceSlice) else _ZERO
    return [*values[:at], zero, *values[at + 1 :]]


def _chosen(
    ctx: Context, base: Tensor, word: str, shape: tuple[Sym, ...], how: Gather | Shift
) -> Tensor:
    name = base.storage.flat_name
    storage = Storage(
        f"{base.storage.name}_{word}", shape, own_dtype(ctx, base), "hbm", flat_name=name,
        mentions=frozenset(), gather=how,
    )  # fmt: skip
    return Tensor(storage, shape)


def _picking(values: Indices) -> int | None:
    """The position of the first index that is a tile."""
    return next((k for k, v in enumerate(values) if isinstance(v, Tensor)), None)


def _as_integers(ctx: Context, numbers: Tensor, node: ast.AST) -> Tensor:
    """The numbers as the access takes them: 0.1 took numbers of every dtype."""
    if numbers.shape is None or (_are_integers(ctx, numbers) and _starts_legally(numbers)):
        return numbers
    if node not in ctx.integers:
        ctx.integers[node] = ctx.handlers.to_index(ctx, node, numbers)
    return ctx.integers[node]


def _are_integers(ctx: Context, numbers: Tensor) -> bool:
    """Whether the numbers are of a dtype that an access takes, as far as it is known."""
    dtype = numbers.dtype
    known = {dtype.key} if dtype is not None and dtype.is_known else set()
    found = known or {*ctx.seen_dtypes.get(own_dtype(ctx, numbers).key, {}).values()}
    return found <= _INDEX_DTYPES


def _starts_legally(numbers: Tensor) -> bool:
    """Whether a number is in a partition that instructions read from; columns are taken to be."""
    if not _is_number(numbers) or not numbers.dims:
        return True
    start = numbers.dims[0].offset.value
    return start is not None and start % QUADRANT == 0


def _is_number(tile: Tensor) -> bool:
    """Whether a view is one element of a tile."""
    return tile.dims is not None and not any(d.terms for d in tile.dims)


def _is_offset(rows: Tensor, others: Indices) -> bool:
    """Whether an element of a tile picks a part of several partitions, and no row of its own."""
    if not _is_number(rows):
        return False
    indices = [v for v in others if isinstance(v, Index)]
    return not indices or any(len(i.extents) > 1 and i.extents[0].value != 1 for i in indices)


def _is_column(rows: Tensor) -> bool:
    if rows.buffer != "sbuf" or rows.shape is None:
        return False
    return len(rows.shape) == 2 and rows.shape[1].value == 1


def _others(
    ctx: Context, base: Tensor, rows: Tensor, values: Indices, node: ast.AST
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
            dims.append(dim_of(value, rank))
            _widen(shape, value, dims[-1], node)
        elif (number := number_of(ctx, value)) is not None:
            dims.append(Dim(number))
        else:
            raise Cannot(Reason.GATHER, "rows picked by a tile, and a slice beside them", node)
    return tuple(shape), tuple(dims)


def _widen(shape: list[Sym], index: Index, dim: Dim, node: ast.AST) -> None:
    """The free axes of an index tensor beside picked rows."""
    if any(axis == 0 for axis, _ in dim.terms):
        raise Cannot(Reason.GATHER, "the partition axis indexes two dimensions", node)
    for axis in range(1, len(shape)):
        extent = axis_extent(index, axis, len(shape))
        if extent.value != 1:
            shape[axis] = extent


def _slices(
    ctx: Context, base: Tensor, rows: Tensor, values: Indices, node: ast.AST
) -> tuple[tuple[Sym, ...], tuple[Dim, ...]]:
    """Every slice beside the rows is an axis behind the partition axis."""
    assert rows.shape is not None and base.shape is not None
    shape, dims = [rows.shape[0]], [Dim(_ZERO, ((0, _ONE),))]
    for value, size in zip(values, base.shape[-len(values) :], strict=True):
        if (number := number_of(ctx, value)) is not None:
            dims.append(Dim(number))
            continue
        found = slice_of(ctx, value, size, node)
        if found is None:
            raise Cannot(Reason.GATHER, "rows picked by a tile, and another tile beside them", node)
        start, extent, step = found
        dims.append(Dim(start, ((len(shape), step),)))
        shape.append(extent)
    return (*shape, *[_ONE] * (2 - len(shape))), tuple(dims)
