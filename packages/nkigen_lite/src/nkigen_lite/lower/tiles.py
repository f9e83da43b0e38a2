"""Loop nests over affine accesses for every group of element-wise operations and row reductions.

The same emitter serves all: a tile is P partitions, K rows in each, W columns. What is left over
at the end of an axis is one more, smaller tile, so code does not grow with the number of tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from nkigen_lite.lower.budget import NARROW, PARTITIONS, Fit, shared_places
from nkigen_lite.lower.replicate import Replicas
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.spaces import Role, Space
from nkigen_lite.lower.steps import Operand, Seen, Step, value_of
from nkigen_lite.lower.writer import Writer


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of an axis: `tiles` tiles of `size` from `start` on."""

    start: int
    tiles: int
    size: int


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


class Tiles:
    """Writes one group. `sources` are the values that lie in HBM, `stored` those to be written.

    `bound` values have places of their own, that are set before each tile: what TensorE has made,
    or what stays on chip.
    """

    def __init__(
        self, writer: Writer, space: Space, fit: Fit, sources: Mapping[str, Source],
        stored: frozenset[str], replicas: Replicas,
    ) -> None:  # fmt: skip
        self.bound: dict[str, Access] = {}
        self.frame = Frame()
        self.writer, self.space, self.fit = writer, space, fit
        self.sources, self.stored, self.replicas = sources, stored, replicas
        made = {w for step in fit.steps for w in step.writes}
        read = [r for step in fit.steps for r in step.reads]
        kept = [fit.made.get(v, v) for v in sorted(stored)]
        self.inputs = [v for v in dict.fromkeys((*read, *kept)) if v not in made]
        self.resident = frozenset(replicas.buffers) & frozenset(self.inputs)
        untouched = frozenset(v for v in kept if v not in made)
        self.places = shared_places(
            fit.steps, fit.full, fit.dtypes, self.resident | untouched
        )  # fmt: skip
        for value in self.inputs:
            self.places.setdefault(value, value)
        self.buffers: dict[str, Buffer] = {}

    # -- geometry ---------------------------------------------------------------------------------

    def frames(self) -> Iterator[Frame]:
        """The whole space; or a line as 128 rows, and what is left of it as one."""
        rows, columns = self.space.size(Role.rows), self.space.size(Role.columns)
        if not self.fit.is_line:
            yield Frame(rows, columns)
            return
        cut = next((d for d in range(PARTITIONS, PARTITIONS // 2, -1) if columns % d == 0), None)
        partitions = cut or PARTITIONS
        length = columns // partitions
        if length:
            yield Frame(partitions, length, length)
        if columns % partitions:
            yield Frame(1, columns % partitions, columns % partitions, partitions * length)

    def run(self) -> None:
        batches = [a for a in self.space.axes if a.role is Role.batch]
        with ExitStack() as stack:
            batch = tuple(stack.enter_context(self.writer.loop("batch", a.size)) for a in batches)
            for frame in self.frames():
                self.frame = frame
                for rows, partitions, each in row_parts(frame.rows, self.fit.rows):
                    for columns in parts(frame.columns, self.fit.columns):
                        self.tiles(batch, rows, partitions, each, columns)

    def tiles(
        self, batch: tuple[Affine, ...], rows: Part, partitions: int, each: int, columns: Part
    ) -> None:
        over_rows = self.fit.turns if rows.tiles > 1 else 1
        over_columns = self.fit.turns if rows.tiles == 1 else 1
        for down in parts(rows.tiles, over_rows):
            for across in parts(columns.tiles, over_columns):
                with (
                    self.writer.loop("tile", down.tiles) as t,
                    self.writer.loop("chunk", across.tiles) as c,
                ):
                    row = (t * down.size + down.start) * rows.size + rows.start
                    column = (c * across.size + across.start) * columns.size + columns.start
                    self.together([
                        Tile(
                            row + i * rows.size, partitions, each, column + k * columns.size,
                            columns.size, batch,
                        )
                        for i in range(down.size)
                        for k in range(across.size)
                    ])  # fmt: skip

    # -- one tile ---------------------------------------------------------------------------------

    def tile(self, at: Tile) -> None:
        """One tile: loaded, worked on, stored."""
        self.together([at])

    def together(self, tiles: list[Tile]) -> None:
        """Tiles that take turns, step by step; each has buffers of its own."""
        every: list[tuple[Tile, dict[str, Buffer]]] = [(at, {}) for at in tiles]
        for at, self.buffers in every:
            for value in self.inputs:
                if value not in self.resident and value not in self.bound:
                    self.load(value, at)
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

    def load(self, value: str, at: Tile) -> None:
        """The value's tile, from its array."""
        self.writer.call("dma_copy", dst=self.on_chip(value, at), src=self.in_hbm(value, at))

    def store(self, value: str, at: Tile) -> None:
        """Every array that holds the value, from its tile."""
        for name in sorted(self.stored):
            if self.fit.made.get(name, name) == value:
                self.store_as(name, value, at)

    def store_as(self, name: str, value: str, at: Tile) -> None:
        """One array, from the tile that holds it."""
        self.writer.call("dma_copy", dst=self.in_hbm(name, at), src=self.on_chip(value, at))

    def step(self, step: Step, at: Tile) -> None:
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
            self.writer.call(step.instruction, step.origin, **self.apart(operands), **attrs)

    def apart(self, operands: dict[str, Any]) -> dict[str, Any]:
        """The operands with all but one of those in PSUM copied to SBUF: an instruction reads PSUM
        once."""
        found, in_psum = dict(operands), 0
        for name, given in operands.items():
            if name in ("dst", "reduce_res") or not isinstance(given, Access):
                continue
            buffer = self.writer.buffers[given.buffer]
            in_psum += buffer.space is Memory.psum
            if buffer.space is Memory.psum and in_psum > 1:
                made = self.writer.allocate("beside", given.shape, buffer.dtype, Memory.sbuf)
                self.writer.call("tensor_copy", dst=whole(made), src=given)
                found[name] = whole(made)
        return found

    def is_narrow(self, step: Step, at: Tile) -> bool:
        """Whether one instruction that repeats each row's number over its columns is faster than
        an instruction for each row."""
        alone = step.instruction == "tensor_scalar" and "op1" not in step.attrs
        return alone and at.columns <= NARROW and isinstance(step.operands["operand0"], str)

    def spread(self, step: Step, at: Tile) -> None:
        """data op number, with each row's number for all its columns."""
        wide = self.repeated(self.on_chip(str(step.operands["operand0"]), at), at, None)
        data = self.operand("data", step.operands["data"], at, None, step)
        one, other = (wide, data) if step.attrs["reverse0"] else (data, wide)
        dst = self.on_chip(str(step.operands["dst"]), at, None, step)
        operands = self.apart({"dst": dst, "data1": one, "data2": other})
        self.writer.call("tensor_tensor", step.origin, **operands, op=step.attrs["op0"])

    def is_by_row(self, step: Step) -> bool:
        if step.instruction == "tensor_tensor_scan":
            return True
        if step.instruction == "tensor_reduce" or not self.makes_tiles(step):
            return False
        taken = (value_of(v) for k, v in step.operands.items() if not step.is_spread(k))
        return not all(self.fit.full[v] for v in taken if v is not None)

    def makes_tiles(self, step: Step) -> bool:
        return self.fit.full[step.writes[0]]

    # -- accesses ---------------------------------------------------------------------------------

    def operand(self, name: str, given: Operand, at: Tile, row: int | None, step: Step) -> Any:
        """A number, or the tile: seen as another dtype, repeated over the columns."""
        value = value_of(given)
        if value is None:
            return given
        access = self.on_chip(value, at, row, step)
        if self.makes_tiles(step) and not self.fit.full[value] and step.is_spread(name):
            access = self.repeated(access, at, row)
        if not isinstance(given, Seen):
            return access
        n = given.every
        strides = tuple(s * n for s in access.strides)
        return replace(access, dtype=given.dtype, offset=access.offset * n, strides=strides)

    def repeated(self, access: Access, at: Tile, row: int | None) -> Access:
        """One value per row in every column."""
        down, along = access.strides[:2]
        if at.rows > 1 and row is None:
            shape, strides = (at.partitions, at.rows, at.columns), (down, along, 0)
        else:
            shape, strides = (at.partitions, at.columns), (down, 0)
        return replace(access, shape=shape, strides=strides)

    def on_chip(
        self, value: str, at: Tile, row: int | None = None, step: Step | None = None
    ) -> Access:
        """The value's tile, or one row of each of its partitions."""
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

    def buffer(self, value: str, at: Tile, width: int, step: Step | None) -> Buffer:
        place = self.places[value]
        if place not in self.buffers:
            full = self.fit.full[value]
            free = (at.rows, width) if full and at.rows > 1 else (width if full else at.rows,)
            name = self.name_of(value, step)
            self.buffers[place] = self.writer.allocate(
                name, (at.partitions, *free), self.fit.dtypes[value], Memory.sbuf,
                step.origin if step else None,
            )  # fmt: skip
        return self.buffers[place]

    def name_of(self, value: str, step: Step | None) -> str:
        """The buffer's name: after the array that it is loaded from, or what is computed."""
        if step is None:
            return f"{self.sources[value].buffer}_tile"
        op = step.attrs.get("op") or step.attrs.get("op1") or step.attrs.get("op0")
        word = str(op or step.instruction)
        return f"{word}_of_rows" if not self.fit.full[value] else f"{word}_tile"

    def in_hbm(self, value: str, at: Tile) -> Access:
        """The tile's elements in HBM."""
        source = self.sources[value]
        column = (self.space.strides(source, value, Role.columns) or (0,))[0]
        row = (self.space.strides(source, value, Role.rows) or (0,))[0]
        if self.frame.length is not None:
            row = self.frame.length * column
        offset = Affine(source.offset + self.frame.start * column) + at.row * row
        batch = self.space.strides(source, value, Role.batch)
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


def parts(size: int, tile: int) -> Iterator[Part]:
    """The axis in tiles, the last one smaller."""
    if size // tile:
        yield Part(0, size // tile, tile)
    if size % tile:
        yield Part(size // tile * tile, 1, size % tile)


def row_parts(size: int, each: int) -> Iterator[tuple[Part, int, int]]:
    """(part, P, K): full tiles of P · K rows, then P · fewer, then fewer than P; P is 128, or what
    as many tiles of one size have."""
    count = -(-size // PARTITIONS)
    partitions = size // count if size % count == 0 else PARTITIONS
    for part in parts(size, partitions * each):
        if part.size == partitions * each:
            yield part, partitions, each
            continue
        left = part.size // partitions
        if left:
            yield Part(part.start, 1, left * partitions), partitions, left
        if part.size % partitions:
            yield (
                Part(part.start + left * partitions, 1, part.size % partitions),
                (part.size % partitions),
                1,
            )
