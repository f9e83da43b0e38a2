"""Loop nests over affine accesses for every group of element-wise operations and row reductions.

The same emitter serves all: a tile is P partitions, K rows in each, W columns. What is left over
at the end of an axis is one more, smaller tile, so code does not grow with the number of tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, Protocol

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import PARTITIONS
from nkigen_lite.codegen.emission.axis_tiling import AxisTiles, parts, row_parts
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.loop_nests.row_replication import Replicas
from nkigen_lite.codegen.movement.joined_arrays import joined_array
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import NARROW, Fit, shared_places
from nkigen_lite.fusion.iteration_domain import Axis, IterationDomain, Role
from nkigen_lite.selection.tile_instructions import (
    Operand,
    ReinterpretedTile,
    TileInstruction,
    value_of,
)
from nkigen_lite.selection.unsupported import CodegenError


@dataclass(frozen=True, slots=True)
class Tile:
    """Where one tile lies: first row, partitions P, rows in each K; first column, columns W."""

    row: Affine
    partitions: int
    rows: int
    column: Affine
    columns: int
    batch: tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """How rows and columns step through HBM: a line is cut into rows of `length` elements."""

    rows: int = 0
    columns: int = 0
    length: int | None = None
    start: int = 0


class Transfers(Protocol):
    """How the tiles of values are loaded from arrays and stored to them."""

    def load(self, tiles: Tiles, value: str, at: Tile) -> None:
        """The value's tile, from its array."""

    def store(self, tiles: Tiles, name: str, value: str, at: Tile) -> None:
        """The array `name`, from the tile of `value`."""


class DirectTransfers:
    """One DMA for each tile."""

    def load(self, tiles: Tiles, value: str, at: Tile) -> None:
        tiles.writer.call("dma_copy", dst=tiles.on_chip(value, at), src=tiles.in_hbm(value, at))

    def store(self, tiles: Tiles, name: str, value: str, at: Tile) -> None:
        tiles.writer.call("dma_copy", dst=tiles.in_hbm(name, at), src=tiles.on_chip(value, at))


DIRECT = DirectTransfers()


class Tiles:
    """Writes the tiles of one group. `sources` are the arrays in HBM, `stored` the values to store.

    `bound` values have accesses of their own, set before each tile: products in PSUM, or values
    that stay on chip. With `lines`, a tile has one row in each partition and many steps of that
    loop of the domain (`Tile.rows`).
    """

    def __init__(
        self, writer: Writer, domain: IterationDomain, fit: Fit, sources: Mapping[str, ArrayView],
        stored: frozenset[str], replicas: Replicas, transfers: Transfers = DIRECT,
        lines: Axis | None = None,
    ) -> None:  # fmt: skip
        self.transfers = transfers
        self.lines = lines
        self.bound: dict[str, Access] = {}
        self.frame = Frame()
        self.writer, self.domain, self.fit = writer, domain, fit
        self.sources, self.stored, self.replicas = sources, stored, replicas
        made = {w for step in fit.steps for w in step.writes}
        read = [r for step in fit.steps for r in step.reads]
        kept = [fit.made.get(v, v) for v in sorted(stored)]
        self.inputs = [v for v in dict.fromkeys((*read, *kept)) if v not in made]
        self.resident = frozenset(replicas.buffers) & frozenset(self.inputs)
        own = self.resident.union(v for v in kept if v not in made)
        self.places = shared_places(fit.steps, fit.full, fit.dtypes, own)
        for value in self.inputs:
            self.places.setdefault(value, value)
        self.buffers: dict[str, Buffer] = {}

    # -- geometry ---------------------------------------------------------------------------------

    def frames(self) -> Iterator[Frame]:
        """The whole domain; or stretches of a line as 128 rows, and what is left of each as one."""
        columns = self.domain.size(Role.columns)
        if not self.fit.is_line:
            yield Frame(self.domain.size(Role.rows), columns)
            return
        for start, stop in self.stretches(Role.columns, columns):
            count = stop - start
            most = range(PARTITIONS, PARTITIONS // 2, -1)
            partitions = next((d for d in most if count % d == 0), PARTITIONS)
            if length := count // partitions:
                yield Frame(partitions, length, length, start)
            if rest := count % partitions:
                yield Frame(1, rest, rest, stop - rest)

    def stretches(self, role: Role, size: int) -> Iterator[tuple[int, int]]:
        """The axis, cut where joined arrays have another part."""
        cuts = {0, size}
        for value, source in self.sources.items():
            joined = joined_array(self.writer, source.buffer)
            if joined and value in self.inputs:
                for step in self.domain.strides(source, value, role):
                    cuts |= joined.cuts(source.offset, step)
        yield from pairwise(sorted(cut for cut in cuts if 0 <= cut <= size))

    def row_parts(self) -> Iterator[tuple[AxisTiles, int, int]]:
        """The rows of the frame in tiles."""
        rows = self.frame.rows
        for start, stop in [(0, rows)] if self.frame.length else self.stretches(Role.rows, rows):
            for part, partitions, each in row_parts(stop - start, self.fit.rows):
                yield replace(part, start=part.start + start), partitions, each

    # -- one tile ---------------------------------------------------------------------------------

    def tile(self, at: Tile) -> None:
        """One tile: loaded, worked on, stored."""
        self.together([at])

    def together(self, tiles: list[Tile]) -> None:
        """Interleaved tiles, step by step; each has buffers of its own."""
        every: list[tuple[Tile, dict[str, Buffer]]] = [(at, {}) for at in tiles]
        for at, self.buffers in every:
            for value in self.inputs:
                if value not in self.resident and value not in self.bound:
                    self.transfers.load(self, value, at)
        made = {self.fit.made.get(v, v): v for v in sorted(self.stored)}
        last = {v: number for number, s in enumerate(self.fit.steps) for v in s.writes}
        for number, step in enumerate(self.fit.steps):
            for at, self.buffers in every:
                self.step(step, at)
                for value in step.writes:
                    if value in made and value not in self.bound and last[value] == number:
                        self.store(value, at)
        for at, self.buffers in every:
            for value in self.inputs:
                if value in made and value not in self.bound:
                    self.store(value, at)

    def store(self, value: str, at: Tile) -> None:
        """Every array that holds the value, from its tile."""
        for name in sorted(self.stored):
            if self.fit.made.get(name, name) == value:
                self.transfers.store(self, name, value, at)

    def step(self, step: TileInstruction, at: Tile) -> None:
        """One instruction, or one for each row of a partition where it takes one value per row."""
        attrs = dict(step.attrs)
        if step.instruction == "tensor_reduce":
            attrs["axis"] = (2,) if at.rows > 1 else (1,)
        by_row = at.rows > 1 and self.is_by_row(step)
        if by_row and self.is_narrow(step, at):
            self.spread(step, at)
            return
        for row in range(at.rows) if by_row else (None,):
            operands = {
                name: self.operand(name, given, at, row, step)
                for name, given in step.operands.items()
            }
            self.writer.call(
                step.instruction, step.origin, **self.with_one_in_psum(operands), **attrs
            )

    def with_one_in_psum(self, operands: dict[str, Any]) -> dict[str, Any]:
        """The operands, at most one of them in PSUM: others are copied to SBUF, because an
        instruction reads PSUM once."""
        found, in_psum = dict(operands), 0
        for name, given in operands.items():
            if name in ("dst", "reduce_res") or not isinstance(given, Access):
                continue
            buffer = self.writer.buffers[given.buffer]
            in_psum += buffer.space is MemorySpace.psum
            if buffer.space is MemorySpace.psum and in_psum > 1:
                made = self.writer.allocate("beside", given.shape, buffer.dtype, MemorySpace.sbuf)
                self.writer.call("tensor_copy", dst=whole(made), src=given)
                found[name] = whole(made)
        return found

    def is_narrow(self, step: TileInstruction, at: Tile) -> bool:
        """Whether one instruction that repeats each row's number over its columns is faster than
        an instruction for each row."""
        alone = step.instruction == "tensor_scalar" and "op1" not in step.attrs
        return alone and at.columns <= NARROW and isinstance(step.operands["operand0"], str)

    def spread(self, step: TileInstruction, at: Tile) -> None:
        """data op number, with each row's number for all its columns."""
        wide = self.repeated(self.on_chip(str(step.operands["operand0"]), at), at, None)
        data = self.operand("data", step.operands["data"], at, None, step)
        one, other = (wide, data) if step.attrs["reverse0"] else (data, wide)
        dst = self.on_chip(str(step.operands["dst"]), at, None, step)
        operands = self.with_one_in_psum({"dst": dst, "data1": one, "data2": other})
        self.writer.call("tensor_tensor", step.origin, **operands, op=step.attrs["op0"])

    def is_by_row(self, step: TileInstruction) -> bool:
        """Whether rows of a partition need an instruction each; lines share their numbers."""
        if self.lines is not None:
            return False
        if step.instruction == "tensor_tensor_scan":
            return True
        if step.instruction == "tensor_reduce" or not self.makes_tiles(step):
            return False
        taken = (value_of(v) for k, v in step.operands.items() if not step.is_spread(k))
        return not all(self.fit.full[v] for v in taken if v is not None)

    def makes_tiles(self, step: TileInstruction) -> bool:
        return self.fit.full[step.writes[0]]

    # -- accesses ---------------------------------------------------------------------------------

    def operand(
        self, name: str, given: Operand, at: Tile, row: int | None, step: TileInstruction
    ) -> Any:
        """A number, or the tile: seen as another dtype, repeated over the columns."""
        value = value_of(given)
        if value is None:
            return given
        access = self.on_chip(value, at, row, step)
        if self.makes_tiles(step) and not self.fit.full[value] and step.is_spread(name):
            access = self.repeated(access, at, row)
        if not isinstance(given, ReinterpretedTile):
            return access
        n = given.every
        strides = tuple(s * n for s in access.strides)
        return replace(access, dtype=given.dtype, offset=access.offset * n, strides=strides)

    def repeated(self, access: Access, at: Tile, row: int | None) -> Access:
        """One value per row in every column."""
        down, along = access.strides[:2]
        if self.lines is not None:
            shape = (at.partitions, at.rows, at.columns)
            return replace(access, shape=shape, strides=(down, 0, 0))
        if at.rows > 1 and row is None:
            shape, strides = (at.partitions, at.rows, at.columns), (down, along, 0)
        else:
            shape, strides = (at.partitions, at.columns), (down, 0)
        return replace(access, shape=shape, strides=strides)

    def on_chip(
        self, value: str, at: Tile, row: int | None = None, step: TileInstruction | None = None
    ) -> Access:
        """The value's tile, or one row of each of its partitions."""
        if self.lines is not None and not self.fit.full[value]:
            at = replace(at, rows=1)
        if value in self.bound:
            return self.of_bound(value, row)
        width = at.columns if self.fit.full[value] else 1
        if value in self.resident:
            buffer = self.replicas.buffers[value]
            whole_tile = at.rows > 1 and row is None
            shape = (at.partitions, at.rows, width) if whole_tile else (at.partitions, width)
            strides = (buffer.row, 0, 1) if whole_tile else (buffer.row, 1)
            return Access(buffer.name, at.column, shape, strides)
        buffer = self.buffer(value, at, width, step)
        if row is None:
            return whole(buffer)
        return Access(buffer.name, Affine(row * width), (at.partitions, width), (buffer.row, 1))

    def of_bound(self, value: str, row: int | None) -> Access:
        """The place that was set, or one row of each of its partitions."""
        access = self.bound[value]
        if row is None:
            return access
        (partitions, _, *rest), (down, along, *steps) = access.shape, access.strides
        offset = access.offset + row * along
        return Access(access.buffer, offset, (partitions, *(rest or [1])), (down, *(steps or [1])))

    def buffer(self, value: str, at: Tile, width: int, step: TileInstruction | None) -> Buffer:
        place = self.places[value]
        if place not in self.buffers:
            full = self.fit.full[value]
            free = (at.rows, width) if full and at.rows > 1 else (width if full else at.rows,)
            name = self.name_of(value, step)
            self.buffers[place] = self.writer.allocate(
                name, (at.partitions, *free), self.fit.dtypes[value], MemorySpace.sbuf,
                step.origin if step else None,
            )  # fmt: skip
        return self.buffers[place]

    def name_of(self, value: str, step: TileInstruction | None) -> str:
        """The buffer's name: after the array that it is loaded from, or what is computed."""
        if step is None:
            return f"{self.sources[value].buffer}_tile"
        if value in self.writer.names:
            return self.writer.names[value]
        op = step.attrs.get("op") or step.attrs.get("op1") or step.attrs.get("op0")
        word = str(op or step.instruction)
        return f"{word}_of_rows" if not self.fit.full[value] else f"{word}_tile"

    def in_hbm(self, value: str, at: Tile) -> Access:
        """The tile's elements in HBM."""
        if self.lines is not None:
            return self.lines_in_hbm(value, at)
        return self.rows_in_hbm(value, at)

    def lines_in_hbm(self, value: str, at: Tile) -> Access:
        """(rows, lines, columns), or one number for each row."""
        batches = [a for a in self.domain.axes if a.role is Role.batch]
        strides = self.domain.strides(self.sources[value], value, Role.batch)
        step = next(s for a, s in zip(batches, strides, strict=True) if a is self.lines)
        found = self.rows_in_hbm(value, replace(at, rows=1))
        if not self.fit.full[value]:
            if step:
                raise CodegenError("a number of each line is not a number of its partition")
            return found
        (partitions, columns), (down, along) = found.shape, found.strides
        return replace(found, shape=(partitions, at.rows, columns), strides=(down, step, along))

    def rows_in_hbm(self, value: str, at: Tile) -> Access:
        """(rows, columns), K rows in each partition."""
        source = self.sources[value]
        column = (self.domain.strides(source, value, Role.columns) or (0,))[0]
        row = (self.domain.strides(source, value, Role.rows) or (0,))[0]
        if self.frame.length is not None:
            row = self.frame.length * column
        offset = Affine(source.offset + self.frame.start * column) + at.row * row
        batch = self.domain.strides(source, value, Role.batch)
        for variable, stride in zip(at.batch, batch, strict=True):
            offset += variable * stride
        dims = [(at.partitions, at.rows * row)]
        if at.rows > 1:
            dims.append((at.rows, row))
        if self.fit.full[value]:
            offset += at.column * column
            dims.append((at.columns, column))
        elif at.rows == 1:
            dims.append((1, 1))
        shape, strides = tuple(n for n, _ in dims), tuple(s for _, s in dims)
        return Access(source.buffer, offset, shape, strides, source.look)


WriteTiles = Callable[[list[Tile]], None]
"""Writes interleaved tiles."""


def write_loops(tiles: Tiles, write: WriteTiles | None = None) -> None:
    """Loops over all tiles of a group."""
    write = write or tiles.together
    for batch in batch_loops(tiles):
        for frame in tiles.frames():
            tiles.frame = frame
            for rows, partitions, each in tiles.row_parts():
                for columns in parts(frame.columns, tiles.fit.columns):
                    _write_part(tiles, write, batch, rows, (partitions, each), columns)


def batch_loops(tiles: Tiles) -> Iterator[tuple[Affine, ...]]:
    """The loops over the batch axes, around the body of the caller's `for`."""
    sizes = [a.size for a in tiles.domain.axes if a.role is Role.batch]
    with tiles.writer.loops("batch", sizes) as batch:
        yield batch


def _write_part(
    tiles: Tiles, write: WriteTiles, batch: tuple[Affine, ...], rows: AxisTiles,
    shape: tuple[int, int], columns: AxisTiles,
) -> None:  # fmt: skip
    over_rows = tiles.fit.interleaved if rows.tiles > 1 else 1
    over_columns = tiles.fit.interleaved if rows.tiles == 1 else 1
    for down in parts(rows.tiles, over_rows):
        for across in parts(columns.tiles, over_columns):
            with (
                tiles.writer.loop("tile", down.tiles) as t,
                tiles.writer.loop("chunk", across.tiles) as c,
            ):
                row = (t * down.size + down.start) * rows.size + rows.start
                column = (c * across.size + across.start) * columns.size + columns.start
                places = product(range(down.size), range(across.size))
                write([
                    Tile(row + i * rows.size, *shape, column + k * columns.size, columns.size,
                         batch)
                    for i, k in places
                ])  # fmt: skip
