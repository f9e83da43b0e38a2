"""Elements of one array at known places along an axis, picked on chip: stretches of HBM are loaded
as they lie, and GpSimdE gathers in each partition what stays. A mask would else be a DMA for each
run of its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import PARTITIONS
from nki_dtypes import uint32
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.selection.unsupported import CodegenError

FEW = 8
"""Parts up to which one DMA each is as fast."""
MOST_PICKED = 512
"""Indices of a partition for which GpSimdE has one group of instructions [NKI: nc_n_gather]."""
MOST_TILES = 8
MOST_LOADED = 4096
"""Elements of a partition that are loaded to pick from."""


@dataclass(frozen=True, slots=True)
class Picks:
    """`to[r, j]` = element `places[j] + r * down` of the source's buffer, for `rows` rows."""

    to: ArrayView
    source: ArrayView
    places: np.ndarray
    rows: int
    across: int
    down: int


def picks_of(boxes: Sequence[ArrayView], sources: Sequence[ArrayView]) -> Picks | None:
    """The parts of an array as picks of one other; None where they are not of one array, differ
    beside one axis, or have elements behind it."""
    if not _are_parts_of_one(boxes, sources):
        return None
    first, down = boxes[0], sources[0].strides[:-1]
    kept = [d for d, n in enumerate(first.shape[:-1]) if n != 1]
    for sides in (down, first.strides):
        steps = [(first.shape[d], sides[d]) for d in kept]
        if any(a[1] != b[0] * b[1] for a, b in pairwise(steps)):
            return None
    places = np.concatenate(
        [s.offset + s.strides[-1] * np.arange(s.shape[-1]) for s in sources]
    )  # fmt: skip
    steps_of_rows = (first.strides[kept[-1]], down[kept[-1]]) if kept else (0, 0)
    return Picks(first, sources[0], places, prod(first.shape[:-1]), *steps_of_rows)


def _are_parts_of_one(boxes: Sequence[ArrayView], sources: Sequence[ArrayView]) -> bool:
    """Whether many parts of one array, alike beside their last axis, follow each other."""
    first = boxes[0]
    if len(boxes) <= FEW or not first.shape or first.strides[-1] != 1:
        return False
    kinds = {
        (s.buffer, s.dtype, s.look, s.strides[:-1], b.strides[:-1], b.shape[:-1])
        for s, b in zip(sources, boxes, strict=True)
    }
    follow = np.cumsum([first.offset, *(b.shape[-1] for b in boxes)])[:-1]
    return len(kinds) == 1 and [b.offset for b in boxes] == follow.tolist()


@dataclass(frozen=True, slots=True)
class Stretches:
    """Partition p loads `width` elements from `first + p * step` on."""

    first: int
    step: int
    width: int


def stretches_of(places: np.ndarray, size: int) -> Stretches | None:
    """The shortest stretches, at equal distances inside `size` elements, that hold each row's
    places; None where they are too long."""
    rows = np.arange(len(places))
    low, high = places.min(axis=1), places.max(axis=1)
    slope = abs(int(low[-1] - low[0])) // max(1, len(places) - 1)
    steps = np.arange(-slope - 8, slope + 9)[:, None]
    first = (low - steps * rows).min(axis=1)
    width = (high - steps * rows).max(axis=1) - first + 1
    ends = first[:, None] + steps * rows[[0, -1]]
    inside = (ends.min(axis=1) >= 0) & (ends.max(axis=1) + width <= size)
    if not inside.any():
        return None
    best = int(np.argmin(np.where(inside, width, np.iinfo(np.int64).max)))
    found = Stretches(int(first[best]), int(steps[best, 0]), int(width[best]))
    return found if found.width <= MOST_LOADED else None


def pick(writer: Writer, picks: Picks) -> None:
    """Write the picks. Raises CodegenError where too much is loaded for them."""
    if picks.rows > 1:
        _by_rows(writer, picks)
    else:
        _by_stretches(writer, picks)


def _by_stretches(writer: Writer, picks: Picks) -> None:
    """One row: as many partitions as it fills, then what is left."""
    size = writer.buffers[picks.source.buffer].size
    count, start = len(picks.places), 0
    if count > PARTITIONS * MOST_PICKED * MOST_TILES:
        raise CodegenError("so many picks are more code than DMAs")
    while start < count:
        each = min(MOST_PICKED, max(1, (count - start) // PARTITIONS))
        rows = min(PARTITIONS, (count - start) // each)
        places = picks.places[start : start + rows * each].reshape(rows, each)
        found = stretches_of(places, size)
        if found is None:
            raise CodegenError("gathered elements are too far apart")
        from_first = found.first + found.step * np.arange(rows)[:, None]
        indices = _indices(writer, places - from_first, rows)
        load = _rows(picks.source, Affine(found.first), (rows, found.width), found.step)
        to = _rows(picks.to, Affine(picks.to.offset + start), (rows, each), each)
        _gather(writer, picks, load, indices, to)
        start += rows * each


def _by_rows(writer: Writer, picks: Picks) -> None:
    """Many rows: the same indices in all partitions."""
    first = int(picks.places.min())
    width, each = int(picks.places.max()) - first + 1, len(picks.places)
    if width > MOST_LOADED or each > MOST_LOADED:
        raise CodegenError("a row of what is picked is too long")
    indices = _indices(writer, picks.places[None] - first, min(PARTITIONS, picks.rows))
    for row, count in writer.tiles("tile", picks.rows, PARTITIONS):
        load = _rows(picks.source, row * picks.down + first, (count, width), picks.down)
        place = row * picks.across + picks.to.offset
        to = _rows(picks.to, place, (count, each), picks.across)
        _gather(writer, picks, load, indices, to)


def _rows(source: ArrayView, start: Affine, shape: tuple[int, int], step: int) -> Access:
    """Rows of elements that lie together, `step` from one row to the next."""
    return Access(source.buffer, start, shape, (step, 1), source.look)


def _indices(writer: Writer, places: np.ndarray, rows: int) -> Buffer:
    """The places on chip; one row of them on all partitions."""
    content = np.ascontiguousarray(places, np.uint32)
    known = writer.constant("places", content.shape, uint32, content.tobytes())
    tile = writer.allocate("places_tile", (rows, content.shape[1]), uint32, MemorySpace.sbuf)
    row = content.shape[1] if len(content) > 1 else 0
    source = Access(known.name, Affine(), (rows, content.shape[1]), (row, 1))
    writer.call("dma_copy", dst=whole(tile), src=source)
    return tile


def _gather(writer: Writer, picks: Picks, load: Access, indices: Buffer, to: Access) -> None:
    rows, each = to.shape
    dtype = picks.source.dtype
    loaded = writer.allocate(f"{picks.source.buffer}_tile", load.shape, dtype, MemorySpace.sbuf)
    writer.call("dma_copy", dst=whole(loaded), src=load)
    picked = writer.allocate("picked", (rows, each), dtype, MemorySpace.sbuf)
    mine = replace(whole(indices), shape=(rows, each))
    writer.call("nc_n_gather", dst=whole(picked), data=whole(loaded), indices=mine)
    writer.call("dma_copy", dst=to, src=whole(picked))
