"""Tiles whose arrays are neighbours in HBM, as the taps of a convolution are: loaded once, with
what lies between them, and separated by the accesses of the engines. So are every other element,
and elements backwards: DMAs move runs, engines step through them. Results that together fill a
stretch of HBM, as even and odd elements do, are made in their places of one tile and stored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import PARTITIONS, resolve_target
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.loop_nests.tiles import Tile, Tiles, WriteTiles
from nkigen_lite.codegen.movement.joined_arrays import joined_array
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import PLACES, TILE_BYTES, shared_places
from nkigen_lite.fusion.iteration_domain import Axis, IterationDomain, Role
from nkigen_lite.selection.unsupported import CodegenError


def are_neighbours(sources: Iterable[ArrayView]) -> bool:
    """Whether several of the arrays are the same one at different offsets."""
    kinds = [(s.buffer, s.shape, s.strides, s.dtype) for s in sources]
    return len(set(kinds)) < len(kinds)


@dataclass(frozen=True, slots=True)
class Window:
    """One transfer for several values: `box` in HBM, a tile of `elems` a partition, and
    the place of each value in it."""

    box: Access
    elems: int
    places: Mapping[str, tuple[int, tuple[int, ...], tuple[int, ...]]]
    """Value → (offset, shape, strides) behind the partitions."""

    @property
    def is_filled(self) -> bool:
        """Whether each element is one of one value."""
        counts = np.zeros(self.elems, np.int8)
        for offset, shape, strides in self.places.values():
            at = np.full(shape, offset)
            for axis, step in zip(np.indices(shape), strides, strict=True):
                at += axis * step
            if at.min() < 0 or at.max() >= self.elems:
                return False
            counts[at] += 1
        return bool((counts == 1).all())


def window_of(accesses: Mapping[str, Access]) -> Window:
    """The window of values whose accesses in HBM are the same but for a number of elements."""
    first = next(iter(accesses.values()))
    (partitions, *sizes), (down, *steps) = first.shape, first.strides
    distances = {v: (a.offset - first.offset).constant for v, a in accesses.items()}
    back = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True) if s < 0)
    low = min(distances.values()) + back
    *many, (count, along) = zip(sizes, map(abs, steps), strict=True)
    line = (count - 1) * along + 1 + max(distances.values()) - min(distances.values())
    pitches, elems, dims = [along], line, [(line, 1)]
    for count, step in reversed(many):
        reach = (count - 1) * step + elems
        if reach <= count * elems and len(dims) == 1:
            pitches, elems, dims = [step, *pitches], reach, [(reach, 1)]
        else:
            pitches, dims = [elems, *pitches], [(count, step), *dims]
            elems *= count
    strides = tuple(p if s >= 0 else -p for p, s in zip(pitches, steps, strict=True))
    begin = sum((n - 1) * p for n, p, s in zip(sizes, pitches, steps, strict=True) if s < 0)
    least = min(distances.values())
    places = {v: (begin + by - least, tuple(sizes), strides) for v, by in distances.items()}
    shape, step = zip((partitions, down), *dims, strict=True)
    return Window(replace(first, offset=first.offset + low, shape=shape, strides=step), elems,
                  places)  # fmt: skip


def windows_of(accesses: Mapping[str, Access]) -> Iterator[Window]:
    """Windows of neighbours that are together no more than each alone."""
    mine: dict[str, Access] = {}
    for value in sorted(accesses, key=lambda v: accesses[v].offset.constant):
        alone = {value: accesses[value]}
        if mine and window_of(mine | alone).elems > window_of(mine).elems + window_of(alone).elems:
            yield window_of(mine)
            mine = {}
        mine |= alone
    yield window_of(mine)


class WindowWriter:
    """Writes tiles of which every value that is read is part of a window."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles, self.writer, fit = tiles, tiles.writer, tiles.fit
        self.read = [v for v in tiles.inputs if v not in tiles.resident]
        if any(fit.made.get(v, v) in self.read for v in tiles.stored):
            raise CodegenError("a value is stored unchanged")
        kept = tiles.resident | frozenset(self.read)
        tiles.places = shared_places(fit.steps, fit.full, fit.dtypes, kept)

    def write(self, tiles: list[Tile]) -> None:
        """One tile: its windows are loaded first, and the windows of its results stored last."""
        (at,), group = tiles, self.tiles
        group.bound.clear()
        loaded = list(self.windows(self.accesses(at)))
        made = {group.fit.made.get(v, v): group.in_hbm(v, at) for v in sorted(group.stored)}
        filled = [w for w in self.windows(made) if len(w.places) > 1 and w.is_filled]
        if len(made) < len(group.stored):
            filled = []
        self.check_capacity(at, [*loaded, *filled])
        for window in loaded:
            tile = self.open(window)
            self.writer.call("dma_copy", dst=whole(tile), src=window.box)
        results = [(window, self.open(window)) for window in filled]
        group.together(tiles)
        for window, tile in results:
            self.writer.call("dma_copy", dst=window.box, src=whole(tile))

    def accesses(self, at: Tile) -> dict[str, Access]:
        """The tile's elements in HBM by value; of joined arrays in the arrays of their parts, if
        each of them reaches one."""
        found = {v: self.tiles.in_hbm(v, at) for v in self.read}
        joined = {v: j for v, a in found.items() if (j := joined_array(self.writer, a.buffer))}
        inside = {v: j.within(self.writer, found[v]) for v, j in joined.items()}
        one_each = all(access.buffer != found[v].buffer for v, access in inside.items())
        return found | inside if one_each else found

    def windows(self, accesses: Mapping[str, Access]) -> Iterator[Window]:
        """The windows of values, by the arrays that they are stored in."""
        families: dict[object, dict[str, Access]] = {}
        for value, access in accesses.items():
            variables = access.offset - access.offset.constant
            kind = (access.buffer, access.shape, access.strides, access.dtype, variables,
                    self.tiles.fit.dtypes[value])  # fmt: skip
            families.setdefault(kind, {})[value] = access
        for family in families.values():
            yield from windows_of(family)

    def open(self, window: Window) -> Buffer:
        """A tile for a window; its values are bound to their places in it."""
        dtype = self.tiles.fit.dtypes[next(iter(window.places))]
        partitions = window.box.shape[0]
        tile = self.writer.allocate(
            f"{window.box.buffer}_tile", (partitions, window.elems), dtype, MemorySpace.sbuf
        )
        for value, (offset, shape, strides) in window.places.items():
            self.tiles.bound[value] = Access(
                tile.name, Affine(offset), (partitions, *shape), (tile.row, *strides)
            )
        return tile

    def check_capacity(self, at: Tile, windows: list[Window]) -> None:
        """Raises CodegenError where the windows do not fit beside what is made of them."""
        tiles, dtypes, full = self.tiles, self.tiles.fit.dtypes, self.tiles.fit.full
        need = sum(w.elems * dtypes[next(iter(w.places))].itemsize for w in windows)
        for place in {p for v, p in tiles.places.items() if v not in self.read}:
            need += at.rows * (at.columns if full[place] else 1) * dtypes[place].itemsize
        resident = sum(b.free_bytes for b in tiles.replicas.buffers.values())
        if PLACES * (need + resident) > resolve_target(self.writer.target).usable_sbuf_bytes:
            raise CodegenError("neighbours do not fit SBUF together")


def line_axis(domain: IterationDomain) -> Axis | None:
    """The innermost loop of a domain that has rows and columns."""
    batches = [a for a in domain.axes if a.role is Role.batch]
    return batches[-1] if batches and domain.size(Role.columns) > 1 else None


def write_lines(tiles: Tiles, write: WriteTiles, axis: Axis, fewer: int) -> None:
    """Loops over tiles of one row a partition and many lines of columns: steps of the loop `axis`,
    `fewer` times smaller than the largest tile."""
    fit, domain, writer = tiles.fit, tiles.domain, tiles.writer
    wide = max(d.itemsize for d in fit.dtypes.values())
    most = max(1, TILE_BYTES // (wide * fit.columns * fewer))
    each = -(-axis.size // -(-axis.size // most))
    batches = [a for a in domain.axes if a.role is Role.batch]
    with ExitStack() as stack:
        batch = {
            a: stack.enter_context(writer.loop("batch", a.size)) for a in batches if a is not axis
        }
        for down, lines, across in product(
            parts(domain.size(Role.rows), PARTITIONS), parts(axis.size, each),
            parts(domain.size(Role.columns), fit.columns),
        ):  # fmt: skip
            with (
                writer.loop("tile", down.tiles) as t,
                writer.loop("lines", lines.tiles) as n,
                writer.loop("chunk", across.tiles) as c,
            ):
                start = {**batch, axis: n * lines.size + lines.start}
                write([Tile(
                    t * down.size + down.start, down.size, lines.size,
                    c * across.size + across.start, across.size, tuple(start[a] for a in batches),
                )])  # fmt: skip
