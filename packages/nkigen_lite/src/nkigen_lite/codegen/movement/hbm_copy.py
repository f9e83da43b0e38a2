"""Elements from one place in HBM to another, and one number to many places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine
from neuroncore.targets import PARTITIONS, resolve_target
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.emission.candidates import Candidate, fastest
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.movement.axis_placement import (
    BETWEEN_ARRAYS,
    RUN_BYTES,
    AxisPlace,
    AxisSplits,
    StridedAxis,
    by_copies,
    by_transposes,
)
from nkigen_lite.codegen.movement.permutation import CARRIERS, Reorder
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.selection.engine_operations import held_as
from nkigen_lite.selection.literals import literal, written_as

MANY = 2048
"""Elements from which on other candidates than a DMA are looked at: fewer take less time than those
have latency."""

QUEUES = 16
"""DMA engines of a core [NKI DMA overview]; a descriptor is a run, and one engine's."""

LONG_BYTES = 96 * 1024
"""Runs from which on it counts that one engine moves them: 16 DMAs take less than half the time."""

FILL_BYTES = 4 * 1024
"""Bytes per partition of the tile that holds a number many times."""


def steps_of(to: ArrayView, source: ArrayView) -> tuple[StridedAxis, ...]:
    """The axes of a move, long steps of `to` first; neighbours on both sides are one axis."""
    axes = [
        StridedAxis(n, t, s)
        for n, t, s in zip(to.shape, to.strides, source.strides, strict=True)
        if n != 1
    ]
    axes.sort(key=lambda a: (-abs(a.to), -abs(a.source)))
    merged: list[StridedAxis] = []
    for axis in axes:
        last = merged[-1] if merged else None
        if last and (last.to, last.source) == (axis.to * axis.size, axis.source * axis.size):
            merged[-1] = StridedAxis(last.size * axis.size, axis.to, axis.source)
        else:
            merged.append(axis)
    return tuple(merged)


def forwards(to: ArrayView, source: ArrayView) -> tuple[ArrayView, ArrayView]:
    """The same move, `to` from its first element to its last."""
    for axis, (size, stride) in enumerate(zip(to.shape, to.strides, strict=True)):
        if stride < 0:
            to, source = reversed_axis(to, axis, size), reversed_axis(source, axis, size)
    return to, source


def reversed_axis(source: ArrayView, axis: int, size: int) -> ArrayView:
    """The source with an axis from its last element to its first."""
    strides = tuple(-s if d == axis else s for d, s in enumerate(source.strides))
    offset = source.offset + (size - 1) * source.strides[axis]
    return replace(source, offset=offset, strides=strides)


def move(writer: Writer, to: ArrayView, source: ArrayView) -> str:
    """`to` = `source`, elements of the same shape, by the fastest candidate; says which."""
    to, source = forwards(to, source)

    def straight() -> None:
        writer.call("dma_copy", dst=in_hbm(to), src=in_hbm(source))

    candidates = [Candidate("one DMA from HBM to HBM", straight)]
    axes = steps_of(to, source)
    if _run_bytes(axes, to) >= LONG_BYTES and prod(a.size for a in axes[:-1]) < QUEUES:
        candidates.append(Candidate("DMAs of parts", lambda: _in_parts(writer, to, source, axes)))
    if prod(a.size for a in axes) >= MANY and _run_bytes(axes, to) < RUN_BYTES:
        candidates += [Candidate(name, Reorder(writer, to, source, p).write)
                  for name, p in _plans(axes, to.dtype.itemsize, writer.target)]  # fmt: skip
    return fastest(writer, candidates)


def _in_parts(
    writer: Writer, to: ArrayView, source: ArrayView, axes: Sequence[StridedAxis]
) -> None:
    """Long runs by as many DMAs as there are DMA engines: one takes a run as a whole."""
    *outer, last = axes
    each = last.size // -(-QUEUES // prod(a.size for a in outer))
    down, along = tuple(a.to for a in axes), tuple(a.source for a in axes)
    for start, count in writer.tiles("part", last.size, each):
        shape = (*(a.size for a in outer), count)
        writer.call(
            "dma_copy", dst=Access(to.buffer, start + to.offset, shape, down, to.look),
            src=Access(source.buffer, start + source.offset, shape, along, source.look),
        )  # fmt: skip


def interleave(
    writer: Writer,
    boxes: Sequence[ArrayView],
    sources: Sequence[ArrayView],
    part_by_part: Candidate,
) -> str:
    """`boxes` = `sources`, arrays of one kind that become one: together in SBUF, if `part_by_part`
    is not faster; says by which candidate."""
    first, step = boxes[0], boxes[1].offset - boxes[0].offset
    axes = (*steps_of(first, sources[0]), StridedAxis(len(boxes), step, BETWEEN_ARRAYS))
    alike = all(replace(s, buffer="", offset=0) == replace(sources[0], buffer="", offset=0)
                for s in sources)  # fmt: skip
    even = all(b.offset == first.offset + n * step for n, b in enumerate(boxes))
    onwards = all(a.to > 0 for a in axes)
    pieces = by_copies(axes, first.dtype.itemsize) if alike and even and onwards else None
    candidates = [part_by_part]
    if pieces and any(p.axis == axes[-1] and p.place is AxisPlace.inside for p in pieces):
        whole = Reorder(writer, first, sources[0], pieces, tuple(sources[1:]))
        candidates.append(Candidate("parts put together in SBUF", whole.write))
    return fastest(writer, candidates)


def _run_bytes(axes: Sequence[StridedAxis], to: ArrayView) -> int:
    """Bytes that lie together on both sides."""
    together = axes and axes[-1].to == axes[-1].source == 1
    return (axes[-1].size if together else 1) * to.dtype.itemsize


def _plans(
    axes: Sequence[StridedAxis], itemsize: int, target: str
) -> Iterator[tuple[str, AxisSplits]]:
    """The ways through SBUF."""
    copies = by_copies(axes, itemsize)
    if copies is not None:
        yield "reordered in SBUF by copies", copies
    if itemsize in CARRIERS and resolve_target(target).generation >= 3:
        transposed = by_transposes(axes, itemsize)
        if transposed is not None:
            yield "transposed by TensorE", transposed


def in_hbm(source: ArrayView) -> Access:
    """All of its elements; rank 0 is one element."""
    shape, strides = source.shape or (1,), source.strides or (1,)
    return Access(source.buffer, Affine(source.offset), shape, strides, source.look)


def fill(writer: Writer, to: ArrayView, value: Any) -> None:
    """`value` everywhere: one tile of it, stored again and again."""
    dtype = held_as(to.dtype)
    axes = [(s.size, s.to) for s in steps_of(to, to)]
    *outer, (num_rows, row), (num_columns, column) = _as_rows(axes)
    width = min(num_columns, FILL_BYTES // dtype.itemsize)
    shape = (min(PARTITIONS, num_rows), width)
    tile = writer.allocate("numbers", shape, dtype, MemorySpace.sbuf)
    writer.call("memset", dst=written_as(tile, value), value=literal(value, dtype))
    with writer.loops("batch", [size for size, _ in outer]) as batch:
        start = Affine(to.offset)
        for place, (_, stride) in zip(batch, outer, strict=True):
            start += place * stride
        for rows in parts(num_rows, PARTITIONS):
            for columns in parts(num_columns, width):
                with writer.loop("tile", rows.tiles) as t, writer.loop("chunk", columns.tiles) as c:
                    at = start + (t * rows.size + rows.start) * row
                    at += (c * columns.size + columns.start) * column
                    shape = (rows.size, columns.size)
                    writer.call(
                        "dma_copy", dst=Access(to.buffer, at, shape, (row, column), to.look),
                        src=Access(tile.name, Affine(), shape, (tile.row, 1)),
                    )  # fmt: skip


def _as_rows(axes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """At least two axes; one long axis is cut into rows where a number of rows divides it."""
    if not axes:
        return [(1, 1), (1, 1)]
    if len(axes) > 1:
        return list(axes)
    ((size, stride),) = axes
    rows = next((d for d in range(PARTITIONS, 1, -1) if size % d == 0), 1)
    return [(rows, size // rows * stride), (size // rows, stride)]
