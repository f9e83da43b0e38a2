"""Rows of an array at computed places: one indirect DMA for each tile of rows, or one DMA whose
place a scalar gives. `nc_n_gather` picks elements of each partition.

Indices name the first axis of an array in HBM [NKI: NkiTensor.ap, vector_offset]: what is stored in
another order is copied into rows before or after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, Indirect, whole
from neuroncore.spec import row_major
from neuroncore.targets import PARTITIONS
from nki_dtypes import float32, int32, uint32
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.movement.hbm_copy import move
from nkigen_lite.fusion.array_view import ArrayView, array_view_of, squeezed
from nkigen_lite.ir import Node
from nkigen_lite.selection.unsupported import unsupported

Places = Mapping[str, ArrayView]
"""Operation → the array of its result; one that is overwritten already contains a copy of what is
overwritten."""
ROW_BYTES = 32 * 1024
"""Bytes of a partition that one DMA moves."""
MOST_GATHERED = 64 * 1024
"""Bytes of a partition in which `nc_n_gather` picks."""


# ------------------------------------------------------------------------------- rows in HBM


def _dense(writer: Writer, source: ArrayView, name: str = "rows_in_hbm") -> ArrayView:
    """The array in C order from the beginning of a buffer; copied where it is not."""
    buffer = writer.buffers[source.buffer]
    if not source.offset and source.shape == buffer.shape and source.strides == buffer.strides:
        return source
    return _filled(writer, source, name)


def _filled(writer: Writer, source: ArrayView, name: str) -> ArrayView:
    made = _new(writer, source, name)
    move(writer, made, source)
    return made


def _new(writer: Writer, model: ArrayView, name: str) -> ArrayView:
    """A new array of the shape and dtype of another."""
    made = writer.allocate(name, model.shape, model.dtype, MemorySpace.private_hbm)
    return array_view_of(made.name, model.shape, model.dtype)


def _axis_first(source: ArrayView, axis: int, count: int = 1) -> ArrayView:
    """The view whose `count` axes from `axis` on come first."""
    moved = range(axis, axis + count)
    order = [*moved, *(d for d in range(len(source.shape)) if d not in moved)]
    return replace(
        source, shape=tuple(source.shape[d] for d in order),
        strides=tuple(source.strides[d] for d in order),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of `width` elements that lie together, one after the other from `offset` on."""

    view: ArrayView
    count: int
    width: int

    def at(self, row: Affine | int, count: int, column: Affine | int, width: int) -> Access:
        """`count` rows from `row` on, `width` elements of each from `column` on."""
        start = Affine(self.view.offset) + row * self.width + column
        return Access(self.view.buffer, start, (count, width), (self.width, 1), self.view.look)


def _as_rows(view: ArrayView, axes: int) -> Rows | None:
    """The view with its first `axes` as rows; None where its elements are not in C order."""
    kept = [d for d, n in enumerate(view.shape) if n != 1]
    dense = row_major(view.shape)
    if any(view.strides[d] != dense[d] for d in kept):
        return None
    return Rows(view, prod(view.shape[:axes]), prod(view.shape[axes:]))


def dense_rows(writer: Writer, source: ArrayView, axes: int) -> Rows:
    """The array with its first `axes` as rows, copied into C order where it is in another."""
    return _as_rows(source, axes) or _rows_of(_filled(writer, source, "rows_in_hbm"), axes)


def _rows_of(view: ArrayView, axes: int) -> Rows:
    """The same of an array in C order."""
    rows = _as_rows(view, axes)
    assert rows is not None, "an array in another order"
    return rows


def _is_indexable(writer: Writer, rows: Rows) -> bool:
    """Whether an index of the buffer's first axis is an index of rows."""
    buffer = writer.buffers[rows.view.buffer]
    return buffer.strides[0] == rows.width and rows.view.offset % rows.width == 0


def _table(writer: Writer, source: ArrayView, axis: int) -> Rows:
    """The array as rows along an axis that an index may name."""
    first = _axis_first(source, axis)
    rows = _as_rows(first, 1)
    if rows is None or not _is_indexable(writer, rows):
        rows = _rows_of(_filled(writer, first, "rows_in_hbm"), 1)
    return rows


# ------------------------------------------------------------------------------------ indices


def _index_tile(writer: Writer, index: ArrayView, start: int, rows: int, each: int) -> Buffer:
    """Indices from `start` on, `each` for every partition: number t · rows + p is at (p, t)."""
    tile = writer.allocate("index", (rows, each), int32, MemorySpace.sbuf)
    src = Access(index.buffer, Affine(index.offset + start), (rows, each), (1, rows), index.look)
    writer.call("dma_copy", dst=whole(tile), src=src)
    return tile


def _each_tile(
    writer: Writer, index: ArrayView, table: Rows,
    write: Callable[[Affine, int, Indirect, Affine, int], None],
) -> None:  # fmt: skip
    """(first row, rows, index, first column, columns) of every tile of rows, in order. A pattern
    has no more rows than the table, for which it would leave it at index 0."""
    index = _dense(writer, index, "index_in_hbm")
    most = max(1, ROW_BYTES // table.view.dtype.itemsize)
    for part in parts(prod(index.shape), min(PARTITIONS, table.count)):
        tile = _index_tile(writer, index, part.start, part.size, part.tiles)
        with writer.loop("tile", part.tiles) as t:
            found = Indirect("vector", columns_of(tile, t, 1))
            for column, width in writer.tiles("chunk", table.width, most):
                write(t * part.size + part.start, part.size, found, column, width)


def _tile(writer: Writer, rows: Rows, count: int, width: int) -> Buffer:
    return writer.allocate("rows", (count, width), rows.view.dtype, MemorySpace.sbuf)


def _gather_rows(writer: Writer, to: Rows, index: ArrayView, table: Rows) -> None:
    def write(row: Affine, count: int, found: Indirect, column: Affine, width: int) -> None:
        tile = _tile(writer, to, count, width)
        source = replace(table.at(0, count, column, width), indirect=found)
        writer.call("dma_copy", dst=whole(tile), src=source)
        writer.call("dma_copy", dst=to.at(row, count, column, width), src=whole(tile))

    _each_tile(writer, index, table, write)


def _scatter_rows(
    writer: Writer, table: Rows, index: ArrayView, part: Rows
) -> None:  # fmt: skip
    """In the order of the rows: of equal indices the last one counts."""

    def write(row: Affine, count: int, found: Indirect, column: Affine, width: int) -> None:
        tile = _tile(writer, part, count, width)
        writer.call("dma_copy", dst=whole(tile), src=part.at(row, count, column, width))
        target = replace(table.at(0, count, column, width), indirect=found)
        writer.call("dma_copy", dst=target, src=whole(tile))

    _each_tile(writer, index, table, write)


def _add_rows(writer: Writer, table: Rows, index: ArrayView, part: Rows) -> None:
    """One row after the other, in order: DMAs that add do not take equal indices
    [NKI: dma_compute]."""
    index, most = _dense(writer, index, "index_in_hbm"), ROW_BYTES // float32.itemsize
    for start, count in writer.tiles("tile", part.count, most):
        tile = writer.allocate("index", (1, count), int32, MemorySpace.sbuf)
        src = Access(index.buffer, start + index.offset, (1, count), (count, 1), index.look)
        writer.call("dma_copy", dst=whole(tile), src=src)
        with writer.loop("row", count) as row:
            found = Indirect("scalar", columns_of(tile, row, 1))
            for column, width in writer.tiles("chunk", table.width, most):
                place = replace(table.at(0, 1, column, width), indirect=found)
                old, new = (_tile(writer, part, 1, width) for _ in range(2))
                writer.call("dma_copy", dst=whole(old), src=place)
                added = part.at(start + row, 1, column, width)
                writer.call("dma_copy", dst=whole(new), src=added)
                total = {"dst": whole(old), "data1": whole(old), "data2": whole(new)}
                writer.call("tensor_tensor", **total, op="add")
                writer.call("dma_copy", dst=place, src=whole(old))


# ---------------------------------------------------------------------------------- one index


def _at_scalar(
    writer: Writer, view: ArrayView, axis: int, index: ArrayView
) -> Access | None:  # fmt: skip
    """The elements of a view at one index of an axis; None where its buffer has no such axis."""
    buffer = writer.buffers[view.buffer]
    if prod(index.shape) != 1 or view.strides[axis] not in buffer.strides:
        return None
    dim = buffer.strides.index(view.strides[axis])
    if buffer.shape[dim] < view.shape[axis]:
        return None
    tile = _index_tile(writer, index, 0, 1, 1)
    rest = [d for d, n in enumerate(view.shape) if d != axis and n != 1]
    shape = tuple(view.shape[d] for d in rest) or (1,)
    strides = tuple(view.strides[d] for d in rest) or (1,)
    moved = Indirect("scalar", whole(tile), dim)
    return Access(view.buffer, Affine(view.offset), shape, strides, view.look, moved)


def _all(view: ArrayView) -> Access:
    kept = [d for d, n in enumerate(view.shape) if n != 1]
    shape = squeezed(view.shape) or (1,)
    strides = tuple(view.strides[d] for d in kept) or (1,)
    return Access(view.buffer, Affine(view.offset), shape, strides, view.look)


# ----------------------------------------------------------------------------------- writers


def into_rows(
    writer: Writer, target: ArrayView, rank: int, write: Callable[[Rows], None]
) -> None:  # fmt: skip
    """Write the array as rows; where it is not stored in rows, by a new array."""
    rows = _as_rows(target, rank)
    if rows is not None:
        write(rows)
        return
    made = _new(writer, target, "gathered_in_hbm")
    write(_rows_of(made, rank))
    move(writer, target, made)


def write_gather(
    writer: Writer, node: Node, places: Places, sources: Sequence[ArrayView]
) -> None:  # fmt: skip
    (x, index), axis, to = sources, node.attrs["axis"], places[node.op]
    source = _at_scalar(writer, x, axis, index)
    if source is not None:
        writer.call("dma_copy", dst=_all(to), src=source)
        return
    table, rank = _table(writer, x, axis), len(index.shape)
    target = _axis_first(to, axis, rank)
    into_rows(writer, target, rank, lambda rows: _gather_rows(writer, rows, index, table))


def write_scatter(
    writer: Writer, node: Node, places: Places, sources: Sequence[ArrayView]
) -> None:  # fmt: skip
    (_, index, part), axis, to = sources, node.attrs["axis"], places[node.op]
    adds = node.op == "scatter_add"
    target = None if adds else _at_scalar(writer, to, axis, index)
    if target is not None:
        writer.call("dma_copy", dst=target, src=_all(part))
        return
    first, rank = _axis_first(to, axis), len(index.shape)
    moved = _axis_first(part, axis, rank)
    given = dense_rows(writer, moved, rank)
    table = _table(writer, to, axis)
    (_add_rows if adds else _scatter_rows)(writer, table, index, given)
    if table.view.buffer != to.buffer:
        move(writer, first, table.view)


def write_gather_along(
    writer: Writer, node: Node, places: Places, sources: Sequence[ArrayView]
) -> None:  # fmt: skip
    rank = len(node.spec.shape) - 1
    data, index = (dense_rows(writer, s, rank) for s in sources)
    if max(data.width, index.width) * 2 * index.view.dtype.itemsize > MOST_GATHERED:
        raise unsupported(node, "its rows are longer than the machine gathers in")
    to = places[node.op]
    into_rows(writer, to, rank, lambda rows: _gather_elements(writer, rows, index, data))


def _gather_elements(writer: Writer, to: Rows, places: Rows, data: Rows) -> None:
    """Rows on partitions: each picks its own elements."""
    for row, count in writer.tiles("tile", data.count, PARTITIONS):
        tiles = [_tile(writer, rows, count, rows.width) for rows in (data, places, to)]
        for rows, tile in zip((data, places), tiles, strict=False):
            writer.call("dma_copy", dst=whole(tile), src=rows.at(row, count, 0, rows.width))
        loaded, index, picked = map(whole, tiles)
        unsigned = replace(index, dtype=uint32)
        writer.call("nc_n_gather", dst=picked, data=loaded, indices=unsigned)
        writer.call("dma_copy", dst=to.at(row, count, 0, to.width), src=picked)
