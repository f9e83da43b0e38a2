"""Tiles whose arrays are neighbours in HBM, as the taps of a convolution are: loaded once, with
what lies between them, and put apart by the accesses of the engines. So are every other element,
and elements backwards: DMAs move runs, engines step through them. Results that together fill a
stretch of HBM, as even and odd elements do, are made in their places of one tile and stored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from neuroncore.core import NeuronCore
from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from nkigen_lite.lower.budget import PARTITIONS, PLACES, TILE_BYTES, Fit, shared_places
from nkigen_lite.lower.refuse import LoweringError
from nkigen_lite.lower.replicate import Replicas
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.spaces import Axis, Role, Space
from nkigen_lite.lower.steps import Step
from nkigen_lite.lower.tiles import Tile, Tiles, parts
from nkigen_lite.lower.writer import Writer


def are_neighbours(sources: Iterable[Source]) -> bool:
    """Whether several of the arrays are the same one, some elements apart."""
    kinds = [(s.buffer, s.shape, s.strides, s.dtype) for s in sources]
    return len(set(kinds)) < len(kinds)


@dataclass(frozen=True, slots=True)
class Window:
    """What is moved at once for several values: `box` in HBM, a tile of `elems` a partition, and
    where each value lies in it."""

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
    apart = {v: (a.offset - first.offset).constant for v, a in accesses.items()}
    back = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True) if s < 0)
    low = min(apart.values()) + back
    *many, (count, along) = zip(sizes, map(abs, steps), strict=True)
    line = (count - 1) * along + 1 + max(apart.values()) - min(apart.values())
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
    least = min(apart.values())
    places = {v: (begin + by - least, tuple(sizes), strides) for v, by in apart.items()}
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


class WindowTiles(Tiles):
    """Tiles of which every value that is read lies in a window."""

    def __init__(
        self, writer: Writer, space: Space, fit: Fit, sources: Mapping[str, Source],
        stored: frozenset[str], replicas: Replicas,
    ) -> None:  # fmt: skip
        super().__init__(writer, space, fit, sources, stored, replicas)
        self.read = [v for v in self.inputs if v not in self.resident]
        if any(fit.made.get(v, v) in self.read for v in stored):
            raise LoweringError("what is only read is stored as it is")
        kept = self.resident | frozenset(self.read)
        self.places = shared_places(fit.steps, fit.full, fit.dtypes, kept)

    def together(self, tiles: list[Tile]) -> None:
        """One tile: its windows are loaded first, and those of its results stored last."""
        (at,) = tiles
        self.bound.clear()
        loaded = list(self.windows({v: self.in_hbm(v, at) for v in self.read}))
        made = {self.fit.made.get(v, v): self.in_hbm(v, at) for v in sorted(self.stored)}
        filled = [w for w in self.windows(made) if len(w.places) > 1 and w.is_filled]
        if len(made) < len(self.stored):
            filled = []
        self.refuse_beyond(at, [*loaded, *filled])
        for window in loaded:
            tile = self.open(window)
            self.writer.call("dma_copy", dst=whole(tile), src=window.box)
        results = [(window, self.open(window)) for window in filled]
        super().together(tiles)
        for window, tile in results:
            self.writer.call("dma_copy", dst=window.box, src=whole(tile))

    def windows(self, accesses: Mapping[str, Access]) -> Iterator[Window]:
        """The windows of values, by the arrays that they lie in."""
        families: dict[object, dict[str, Access]] = {}
        for value, access in accesses.items():
            apart = access.offset - access.offset.constant
            kind = (access.buffer, access.shape, access.strides, access.dtype, apart,
                    self.fit.dtypes[value])  # fmt: skip
            families.setdefault(kind, {})[value] = access
        for family in families.values():
            yield from windows_of(family)

    def open(self, window: Window) -> Buffer:
        """A tile for a window; its values are bound to their places in it."""
        dtype = self.fit.dtypes[next(iter(window.places))]
        partitions = window.box.shape[0]
        tile = self.writer.allocate(
            f"{window.box.buffer}_tile", (partitions, window.elems), dtype, Memory.sbuf
        )  # fmt: skip
        for value, (offset, shape, strides) in window.places.items():
            self.bound[value] = Access(
                tile.name, Affine(offset), (partitions, *shape), (tile.row, *strides)
            )  # fmt: skip
        return tile

    def refuse_beyond(self, at: Tile, windows: list[Window]) -> None:
        """Raises LoweringError where the windows do not fit beside what is made of them."""
        dtypes = self.fit.dtypes
        need = sum(w.elems * dtypes[next(iter(w.places))].itemsize for w in windows)
        for place in {p for v, p in self.places.items() if v not in self.read}:
            need += at.rows * (at.columns if self.fit.full[place] else 1) * dtypes[place].itemsize
        held = sum(b.free_bytes for b in self.replicas.buffers.values())
        usable = NeuronCore(self.writer.target, watchers=()).free_bytes_of(Memory.sbuf)
        if PLACES * (need + held) > usable:
            raise LoweringError("neighbours do not fit SBUF together")


def line_axis(space: Space) -> Axis | None:
    """The innermost loop of a space that has rows and columns."""
    batches = [a for a in space.axes if a.role is Role.batch]
    return batches[-1] if batches and space.size(Role.columns) > 1 else None


class Lines(WindowTiles):
    """Tiles of one row a partition and many lines of columns: the turns of the innermost loop, in
    tiles so many times smaller (`fewer`)."""

    def __init__(
        self, writer: Writer, space: Space, fit: Fit, sources: Mapping[str, Source],
        stored: frozenset[str], replicas: Replicas, axis: Axis, fewer: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(writer, space, fit, sources, stored, replicas)
        self.axis = axis
        self.batches = [a for a in space.axes if a.role is Role.batch]
        wide = max(d.itemsize for d in fit.dtypes.values())
        most = max(1, TILE_BYTES // (wide * fit.columns * fewer))
        self.each = -(-axis.size // -(-axis.size // most))

    def run(self) -> None:
        rows, columns = self.space.size(Role.rows), self.space.size(Role.columns)
        with ExitStack() as stack:
            batch = {
                a: stack.enter_context(self.writer.loop("batch", a.size))
                for a in self.batches if a is not self.axis
            }  # fmt: skip
            for down in parts(rows, PARTITIONS):
                for lines in parts(self.axis.size, self.each):
                    for across in parts(columns, self.fit.columns):
                        with (
                            self.writer.loop("tile", down.tiles) as t,
                            self.writer.loop("lines", lines.tiles) as n,
                            self.writer.loop("chunk", across.tiles) as c,
                        ):
                            start = {**batch, self.axis: n * lines.size + lines.start}
                            self.tile(Tile(
                                t * down.size + down.start, down.size, lines.size,
                                c * across.size + across.start, across.size,
                                tuple(start[a] for a in self.batches),
                            ))  # fmt: skip

    def in_hbm(self, value: str, at: Tile) -> Access:
        """(rows, lines, columns), or one number for each row."""
        number = self.batches.index(self.axis)
        step = self.space.strides(self.sources[value], value, Role.batch)[number]
        found = super().in_hbm(value, replace(at, rows=1))
        if not self.fit.full[value]:
            if step:
                raise LoweringError("a number of each line is no number of its partition")
            return found
        (partitions, columns), (down, along) = found.shape, found.strides
        return replace(
            found, shape=(partitions, at.rows, columns), strides=(down, step, along)
        )  # fmt: skip

    def is_by_row(self, step: Step) -> bool:
        """Never: one number is that of all lines of a partition."""
        return False

    def repeated(self, access: Access, at: Tile, row: int | None) -> Access:
        """A partition's number in every line and column."""
        shape = (at.partitions, at.rows, at.columns)
        return replace(access, shape=shape, strides=(access.strides[0], 0, 0))

    def on_chip(
        self, value: str, at: Tile, row: int | None = None, step: Step | None = None
    ) -> Access:
        """A tile of lines, or one number for each partition."""
        full = self.fit.full[value]
        return super().on_chip(value, at if full else replace(at, rows=1), row, step)
