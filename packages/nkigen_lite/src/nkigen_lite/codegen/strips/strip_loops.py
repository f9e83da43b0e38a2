"""Rows all the way: products, row reductions and functions of some rows at once, all on chip.

A strip is a sequence of stages, each a product of matrices or a group of element-wise operations
and row reductions, that all work on the same rows M (and batch axes) and hand their values to the
next. What a product multiplies from the right is on chip as a whole; the left side, T rows in each
of 128 partitions, is transposed there.

Engines run their instructions in order, so the stages of several tiles are interleaved: TensorE
multiplies for one while the others work on the results of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nki_dtypes import DType, float32
from nkigen_lite.codegen.emission.axis_tiling import row_parts
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.loop_nests.tiles import Tile, Tiles
from nkigen_lite.codegen.matmul.operand_tiles import (
    OnChip,
    load,
    load_pair,
    matrix_of,
    multiply,
    place,
    transpose_rows,
)
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.groups import Group
from nkigen_lite.ir import Node

PSUM_BANKS = 4
"""Banks of one stage's products: as many are left for transposes and the next stage."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Which stages, on which rows: `lead` is (batch…, M). `kept` are values that a later stage
    needs, `stored` values that are written to HBM,
    `shared` values from HBM that several stages need."""

    stages: tuple[Node | Group, ...]
    lead: tuple[int, ...]
    kept: frozenset[str]
    stored: frozenset[str]
    shared: frozenset[str]

    @property
    def products(self) -> tuple[Node, ...]:
        """The products of matrices, in order."""
        return tuple(s for s in self.stages if isinstance(s, Node))

    @property
    def made(self) -> frozenset[str]:
        """The values that its stages make."""
        return frozenset(
            name for s in self.stages for name in ([s.name] if isinstance(s, Node) else s.names)
        )

    def in_psum(self, product: Node) -> bool:
        """Whether only groups need the product, and not beyond the strip."""
        by_product = {p.operands[0] for p in self.products}
        return product.name not in by_product | self.stored


@dataclass(slots=True)
class StripTile:
    """Writes the stages of a strip at one place.

    `sources` are the values in HBM that it reads or writes, `tiles` the emitters of its groups,
    `rights` what products multiply from the right, on chip.
    """

    writer: Writer
    strip: Strip
    sources: Mapping[str, ArrayView]
    tiles: Mapping[int, Tiles]
    at: Tile
    rights: Mapping[str, OnChip]
    values: dict[str, Access] = field(default_factory=dict)
    """Value → its place on chip: (P, N) or, with T > 1 rows, (P, T, N)."""
    transposed: dict[str, OnChip] = field(default_factory=dict)

    def stage(self, number: int) -> None:
        """One stage; stages come in order."""
        stage = self.strip.stages[number]
        if isinstance(stage, Node):
            self.product(stage)
        else:
            self.group(self.tiles[number])

    def group(self, tiles: Tiles) -> None:
        """The group's steps; what later stages need gets a place of its own."""
        batch = tuple(v for v, n in zip(self.at.batch, self.strip.lead[:-1], strict=True) if n != 1)
        width = tiles.fit.columns
        here = Tile(self.at.row, self.at.partitions, self.at.rows, Affine(), width, batch)
        made = {w: step for step in tiles.fit.steps for w in step.writes}
        for value in tiles.inputs:
            if value in self.strip.shared - self.values.keys() - tiles.resident:
                full, dtype = tiles.fit.full[value], tiles.fit.dtypes[value]
                name = f"{self.sources[value].buffer}_tile"
                self.values[value] = self.room(name, width if full else 1, dtype, full)
                source = tiles.in_hbm(value, here)
                self.writer.call("dma_copy", dst=self.values[value], src=source)
        tiles.bound = dict(self.values)
        held = {
            v: tiles.fit.made.get(v, v)
            for v in sorted(self.strip.kept)
            if v in tiles.domain.of and v not in self.values
        }
        for value in dict.fromkeys(held.values()):
            if value in made:
                full = tiles.fit.full[value]
                name, dtype = tiles.name_of(value, made[value]), tiles.fit.dtypes[value]
                tiles.bound[value] = self.room(name, width if full else 1, dtype, full)
        tiles.tile(here)
        for value in dict.fromkeys(held.values()):
            if value in made:
                tiles.store(value, here)
        self.values |= {v: tiles.on_chip(place, here) for v, place in held.items()}

    def room(self, name: str, columns: int, dtype: DType, full: bool = True) -> Access:
        """A new place in SBUF: (P, T, N) or (P, N), or one element for each row."""
        free = (
            (self.at.rows, columns)
            if full and self.at.rows > 1
            else (columns if full else self.at.rows,)
        )
        shape = (self.at.partitions, *free)
        return whole(self.writer.allocate(name, shape, dtype, MemorySpace.sbuf))

    # -- products ---------------------------------------------------------------------------------

    def product(self, node: Node) -> None:
        left, right = self.left(node.operands[0]), self.rights[node.operands[1]]
        columns = node.spec.shape[-1]
        if _banks(self.at.rows, columns) > PSUM_BANKS:
            made = self.copied_product(node, left, right)
        else:
            made = self.natural_product(node, left, right)
            if not self.strip.in_psum(node):
                source, made = made, self.room("product_rows", columns, node.spec.dtype)
                self.writer.call("tensor_copy", dst=made, src=source)
        self.values[node.name] = made
        if node.name in self.strip.stored:
            self.store(node.name)

    def left(self, value: str) -> OnChip:
        """The rows of the tile with K on partitions; row p · T + t is column t · P + p."""
        if value not in self.transposed:
            rows = self.values.get(value) or self.loaded(value)
            if len(rows.shape) == 2:
                (p, k), (down, along) = rows.shape, rows.strides
                rows = Access(rows.buffer, rows.offset, (p, 1, k), (down, 0, along))
            partitions, each, num_k = rows.shape
            dtype = self.writer.buffers[rows.buffer].dtype
            name = self.writer.names.get(value) or self.writer.buffers[rows.buffer].name
            made = place(self.writer, f"{_plain(name)}_transposed", num_k, each * partitions, dtype)
            transpose_rows(self.writer, rows, made, Affine(), (1, partitions))
            self.transposed[value] = made
        return self.transposed[value]

    def loaded(self, value: str) -> Access:
        source = self.sources[value]
        made = self.room(f"{source.buffer}_tile", source.shape[-1], source.dtype)
        self.writer.call("dma_copy", dst=made, src=_in_hbm(source, self.at))
        self.values[value] = made
        return made

    def store(self, value: str) -> None:
        source = self.sources[value]
        self.writer.call("dma_copy", dst=_in_hbm(source, self.at), src=self.values[value])

    def natural_product(self, node: Node, left: OnChip, right: OnChip) -> Access:
        """Rows on partitions, each row of a partition from a bank's beginning if it needs one."""
        columns = node.spec.shape[-1]
        pitch = _pitch(self.at.rows, columns)
        shape = (self.at.partitions, self.at.rows * pitch)
        name = self.writer.names.get(node.name, "product")
        made = self.writer.allocate(name, shape, float32, MemorySpace.psum, node.origin)
        for t in range(self.at.rows):
            for start, count in self.writer.tiles("bank", columns, BANK_ELEMS):
                into = columns_of(made, start + t * pitch, count)
                multiply(self.writer, into, left, self.row_of_each(t), right, (start, count))
        if self.at.rows == 1:
            return columns_of(made, 0, columns)
        shape = (self.at.partitions, self.at.rows, columns)
        return Access(made.name, Affine(), shape, (made.row, pitch, 1))

    def row_of_each(self, t: int) -> tuple[Affine, int]:
        """The columns of the left side that are row t of every partition."""
        return Affine(t * self.at.partitions), self.at.partitions

    def copied_product(self, node: Node, left: OnChip, right: OnChip) -> Access:
        """Results in SBUF, bank by bank."""
        columns = node.spec.shape[-1]
        made = self.room("product_rows", columns, node.spec.dtype)
        down, step = made.strides[0], made.strides[-2] if self.at.rows > 1 else 0
        for t in range(self.at.rows):
            for start, count in self.writer.tiles("bank", columns, BANK_ELEMS):
                shape = (self.at.partitions, count)
                bank = self.writer.allocate(
                    "product", shape, float32, MemorySpace.psum, node.origin
                )  # fmt: skip
                rows = self.row_of_each(t)
                multiply(self.writer, whole(bank), left, rows, right, (start, count))
                into = Access(made.buffer, start + t * step, shape, (down, 1))
                self.writer.call("tensor_copy", dst=into, src=whole(bank))
        return made


def _pitch(rows: int, columns: int) -> int:
    """From one row to the next in PSUM: no product crosses a bank."""
    if rows * columns <= BANK_ELEMS:
        return columns
    return -(-columns // BANK_ELEMS) * BANK_ELEMS


def _banks(rows: int, columns: int) -> int:
    return -(-rows * _pitch(rows, columns) // BANK_ELEMS)


def _in_hbm(source: ArrayView, at: Tile) -> Access:
    """The tile's rows of an array: row p · T + t in partition p."""
    step, along = source.strides[-2:]
    offset = Affine(source.offset) + at.row * step
    missing = len(at.batch) - (len(source.shape) - 2)
    for variable, size, stride in zip(
        at.batch[missing:], source.shape[:-2], source.strides[:-2], strict=True
    ):
        offset += variable * (stride if size != 1 else 0)
    dims = [(at.partitions, at.rows * step), (at.rows, step), (source.shape[-1], along)]
    if at.rows == 1:
        del dims[1]
    shape, strides = tuple(n for n, _ in dims), tuple(s for _, s in dims)
    return Access(source.buffer, offset, shape, strides, source.look)


Batch = tuple[Affine, ...]


@dataclass(slots=True)
class Strips:
    """Writes a strip.

    `sources` are the values in HBM that it reads or writes, `tiles` the emitters of its groups,
    `rows` the T rows of each partition, `interleaved` how many tiles are interleaved.
    """

    writer: Writer
    strip: Strip
    sources: Mapping[str, ArrayView]
    tiles: Mapping[int, Tiles]
    rows: int
    interleaved: int
    shared: dict[str, OnChip] = field(default_factory=dict)
    """Right matrices that are the same for all batches."""

    def write(self) -> None:
        *batches, num_rows = self.strip.lead
        self.shared = self.rights((), varying=False)
        strips = list(row_parts(num_rows, self.rows))
        if sum(part.tiles for part, _, _ in strips) == 1:
            _, partitions, each = strips[0]
            for places in self.batches(tuple(batches), self.interleaved):
                tiles = [Tile(Affine(), partitions, each, Affine(), 0, b) for b in places]
                self.together(self.neighbours(tiles) if len(tiles) == 2 else [
                    self.tile(t, self.rights(t.batch, varying=True)) for t in tiles
                ])  # fmt: skip
            return
        for (batch,) in self.batches(tuple(batches), 1):
            rights = self.rights(batch, varying=True)
            for part, partitions, each in strips:
                for number, count in self.writer.tiles("strip", part.tiles, self.interleaved):
                    first = number * part.size + part.start
                    rows = [first + i * part.size for i in range(count)]
                    tiles = [Tile(r, partitions, each, Affine(), 0, batch) for r in rows]
                    self.together([self.tile(tile, rights) for tile in tiles])

    def batches(self, sizes: tuple[int, ...], interleaved: int) -> Iterator[list[Batch]]:
        """Places in the batch axes, up to `interleaved` of the longest at once, in their loops."""
        longest = _longest(sizes)
        with ExitStack() as stack:
            variables = [
                Affine() if d == longest else stack.enter_context(self.writer.loop("batch", n))
                for d, n in enumerate(sizes)
            ]
            size = sizes[longest] if sizes else 1
            for start, count in self.writer.tiles("batch", size, interleaved):
                yield [
                    tuple(start + i if d == longest else v for d, v in enumerate(variables))
                    for i in range(count)
                ]

    def rights(self, batch: Batch, varying: bool) -> dict[str, OnChip]:
        """Right operands of products, on chip: all that are the same for all batches,
        or all that are not."""
        found: dict[str, OnChip] = {}
        for product in self.strip.products:
            name = product.operands[1]
            source = self.sources[name]
            if name not in found and any(n != 1 for n in source.shape[:-2]) is varying:
                matrix = matrix_of(source, batch if varying else (), transposed=False)
                found[name] = load(self.writer, matrix, _matrix_name(source))
        return found

    def tile(self, at: Tile, rights: dict[str, OnChip]) -> StripTile:
        return StripTile(
            self.writer, self.strip, self.sources, self.tiles, at, self.shared | rights
        )  # fmt: skip

    def neighbours(self, places: list[Tile]) -> list[StripTile]:
        """The tiles of two neighbours in the longest batch axis, with what they read in common
        loads."""
        first, second = (self.tile(at, {}) for at in places)
        rows = first.at.rows * first.at.partitions
        for product in self.strip.products:
            left, right = product.operands
            known = first.transposed.keys() | self.strip.shared | self.strip.made
            if left not in known:
                matrix = matrix_of(self.sources[left], first.at.batch, transposed=True)
                name = f"{_plain(matrix.buffer)}_transposed"
                pair = load_pair(
                    self.writer, matrix.columns(first.at.row, rows), self.step(left),
                    name, first.at.rows, lambda partitions, each: (1, partitions),
                )  # fmt: skip
                if pair is not None:
                    first.transposed[left], second.transposed[left] = pair
            if right not in first.rights:
                pair = self.right_pair(right, first.at.batch, second.at.batch)
                first.rights, second.rights = (
                    {**tile.rights, right: one}
                    for tile, one in zip((first, second), pair, strict=True)
                )  # fmt: skip
        return [first, second]

    def right_pair(self, name: str, first: Batch, second: Batch) -> tuple[OnChip, OnChip]:
        one, other = (matrix_of(self.sources[name], b, transposed=False) for b in (first, second))
        step, new = self.step(name), _matrix_name(self.sources[name])
        both = load_pair(self.writer, one, step, new, PARTITIONS, lambda _, each: (each, 1))
        return both or (load(self.writer, one, new), load(self.writer, other, new))

    def step(self, value: str) -> int:
        """From one place of the longest batch axis to the next, in elements."""
        source, sizes = self.sources[value], self.strip.lead[:-1]
        axis = _longest(sizes) - (len(sizes) - (len(source.shape) - 2))
        return source.strides[axis] if axis >= 0 and source.shape[axis] != 1 else 0

    def together(self, tiles: list[StripTile]) -> None:
        """Interleaved tiles: each up to its next product."""
        for turn in _until_product(self.strip):
            for tile in tiles:
                for number in turn:
                    tile.stage(number)


def _plain(name: str) -> str:
    """The name of a value, of that of one of its buffers."""
    return name.removesuffix("_tile").removesuffix("_in_hbm")


def _matrix_name(source: ArrayView) -> str:
    return f"{_plain(source.buffer)}_matrix"


def _longest(sizes: tuple[int, ...]) -> int:
    return max(range(len(sizes)), key=sizes.__getitem__, default=0)


def _until_product(strip: Strip) -> Iterator[list[int]]:
    """Stages up to a product, and so on."""
    turn: list[int] = []
    for number, stage in enumerate(strip.stages):
        turn.append(number)
        if isinstance(stage, Node):
            yield turn
            turn = []
    if turn:
        yield turn
