"""Rows all the way: products, row reductions and functions of some rows at once, all on chip.

A strip is a sequence of stages, each a product of matrices or a group of element-wise operations
and row reductions, that all work on the same rows M (and batch axes) and hand their values to the
next. What a product multiplies from the right is on chip as a whole; the left side, T rows in each
of 128 partitions, is transposed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from nki_dtypes import DType, float32
from nkigen_lite.ir import Node
from nkigen_lite.lower.contraction import (
    PARTITIONS,
    OnChip,
    load,
    matrix_of,
    multiply,
    place,
    turn,
)
from nkigen_lite.lower.groups import Group
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.tiles import Tile, Tiles, parts, row_parts
from nkigen_lite.lower.writer import Writer

BANK_ELEMS = 512
PSUM_BANKS = 4
"""Banks of one stage's products: as many are left for transposes and the next stage."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Which stages, on which rows: `lead` is (batch…, M). `kept` are values that a later stage
    needs, `stored` those that leave the chip."""

    stages: tuple[Node | Group, ...]
    lead: tuple[int, ...]
    kept: frozenset[str]
    stored: frozenset[str]

    @property
    def products(self) -> tuple[Node, ...]:
        return tuple(s for s in self.stages if isinstance(s, Node))

    def in_psum(self, product: Node) -> bool:
        """Whether only groups need the product, and not beyond the strip."""
        by_product = {p.operands[0] for p in self.products}
        return product.name not in by_product | self.stored


@dataclass(slots=True)
class Strips:
    """Writes a strip. `sources` are the values in HBM that it reads or writes, `tiles` the
    emitters of its groups, `rows` the T rows of each partition."""

    writer: Writer
    strip: Strip
    sources: Mapping[str, Source]
    tiles: Mapping[int, Tiles]
    rows: int
    values: dict[str, Access] = field(default_factory=dict)
    """Value → its place on chip: (P, N) or, with T > 1 rows, (P, T, N)."""
    turned: dict[str, OnChip] = field(default_factory=dict)
    rights: dict[str, OnChip] = field(default_factory=dict)

    def write(self) -> None:
        *batches, num_rows = self.strip.lead
        for product in self.strip.products:
            if not self.varies(product):
                self.load_right(product, ())
        with ExitStack() as stack:
            batch = tuple(stack.enter_context(self.writer.loop("batch", n)) for n in batches)
            for product in self.strip.products:
                if self.varies(product):
                    self.load_right(product, batch)
            for part, partitions, each in row_parts(num_rows, self.rows):
                with self.writer.loop("strip", part.tiles) as t:
                    row = t * part.size + part.start
                    self.tile(Tile(row, partitions, each, Affine(), 0, batch))

    def varies(self, product: Node) -> bool:
        """Whether the right matrix is another one for another place of the batch axes."""
        source = self.sources[product.operands[1]]
        return any(n != 1 for n in source.shape[:-2])

    def load_right(self, product: Node, batch: tuple[Affine, ...]) -> None:
        name = product.operands[1]
        if name not in self.rights:
            matrix = matrix_of(self.sources[name], batch, transposed=False)
            self.rights[name] = load(self.writer, matrix, "right")

    # -- one tile ---------------------------------------------------------------------------------

    def tile(self, at: Tile) -> None:
        self.values, self.turned = {}, {}
        for number, stage in enumerate(self.strip.stages):
            if isinstance(stage, Node):
                self.product(stage, at)
            else:
                self.group(self.tiles[number], at)

    def group(self, tiles: Tiles, at: Tile) -> None:
        """The group's steps; what later stages need gets a place of its own."""
        batch = tuple(v for v, n in zip(at.batch, self.strip.lead[:-1], strict=True) if n != 1)
        width = tiles.fit.columns
        here = Tile(at.row, at.partitions, at.rows, Affine(), width, batch)
        made = {w: step for step in tiles.fit.steps for w in step.writes}
        tiles.bound = dict(self.values)
        held = {
            v: tiles.fit.made.get(v, v)
            for v in sorted(self.strip.kept)
            if v in tiles.space.of and v not in self.values
        }
        for value in dict.fromkeys(held.values()):
            if value in made:
                full = tiles.fit.full[value]
                name, dtype = tiles.name_of(value, made[value]), tiles.fit.dtypes[value]
                tiles.bound[value] = self.room(name, at, width if full else 1, dtype, full)
        tiles.tile(here)
        for value in dict.fromkeys(held.values()):
            if value in made:
                tiles.store(value, here)
        self.values |= {v: tiles.on_chip(place, here) for v, place in held.items()}

    def room(self, name: str, at: Tile, columns: int, dtype: DType, full: bool = True) -> Access:
        """A new place in SBUF: (P, T, N) or (P, N), or one element for each row."""
        free = (at.rows, columns) if full and at.rows > 1 else (columns if full else at.rows,)
        shape = (at.partitions, *free)
        return whole(self.writer.allocate(name, shape, dtype, Memory.sbuf))

    # -- products ---------------------------------------------------------------------------------

    def product(self, node: Node, at: Tile) -> None:
        left, right = self.left(node.operands[0], at), self.rights[node.operands[1]]
        columns = node.spec.shape[-1]
        if _banks(at.rows, columns) > PSUM_BANKS:
            made = self.copied_product(node, left, right, at)
        else:
            shorter = _turned_is_shorter(at.rows, columns, right)
            way = self.turned_product if shorter else self.natural_product
            made = way(node, left, right, at)
            if not self.strip.in_psum(node):
                source, made = made, self.room("product_rows", at, columns, node.spec.dtype)
                self.writer.call("tensor_copy", dst=made, src=source)
        self.values[node.name] = made
        if node.name in self.strip.stored:
            self.store(node.name, at)

    def left(self, value: str, at: Tile) -> OnChip:
        """The rows of the tile with K on partitions; row p · T + t is column t · P + p."""
        if value not in self.turned:
            rows = self.values.get(value) or self.loaded(value, at)
            if len(rows.shape) == 2:
                (p, k), (down, along) = rows.shape, rows.strides
                rows = Access(rows.buffer, rows.offset, (p, 1, k), (down, 0, along))
            partitions, each, num_k = rows.shape
            dtype = self.writer.buffers[rows.buffer].dtype
            made = place(self.writer, "turned_rows", num_k, each * partitions, dtype)
            turn(self.writer, rows, made, Affine(), (1, partitions))
            self.turned[value] = made
        return self.turned[value]

    def loaded(self, value: str, at: Tile) -> Access:
        source = self.sources[value]
        made = self.room(f"{source.buffer}_tile", at, source.shape[-1], source.dtype)
        self.writer.call("dma_copy", dst=made, src=_in_hbm(source, at))
        return made

    def store(self, value: str, at: Tile) -> None:
        source = self.sources[value]
        self.writer.call("dma_copy", dst=_in_hbm(source, at), src=self.values[value])

    def natural_product(self, node: Node, left: OnChip, right: OnChip, at: Tile) -> Access:
        """Rows on partitions, each row of a partition from a bank's beginning if it needs one."""
        columns = node.spec.shape[-1]
        made, pitch = self.in_banks(node, at, columns)
        for t in range(at.rows):
            for part in parts(columns, BANK_ELEMS):
                with self.writer.loop("bank", part.tiles) as b:
                    start = b * BANK_ELEMS + part.start
                    into = Access(
                        made.name, start + t * pitch, (at.partitions, part.size), (made.row, 1)
                    )
                    rows = (Affine(t * at.partitions), at.partitions)
                    multiply(self.writer, into, left, rows, right, (start, part.size))
        return _rows_of(made, at, columns, pitch)

    def in_banks(self, node: Node, at: Tile, columns: int) -> tuple[Buffer, int]:
        """PSUM for T rows of `columns` results in each partition, and the distance of rows."""
        pitch = _pitch(at.rows, columns)
        shape = (at.partitions, at.rows * pitch)
        made = self.writer.allocate("product", shape, float32, Memory.psum, node.origin)
        return made, pitch

    def turned_product(self, node: Node, left: OnChip, right: OnChip, at: Tile) -> Access:
        """Results with their columns on partitions, for all rows at once, and transposed back."""
        columns, every = node.spec.shape[-1], at.rows * at.partitions
        product = self.writer.allocate(
            "product", (columns, every), float32, Memory.psum, node.origin
        )  # fmt: skip
        multiply(
            self.writer, whole(product), right, (Affine(), columns), left, (Affine(), every)
        )  # fmt: skip
        across = self.writer.allocate("across", (columns, every), float32, Memory.sbuf)
        self.writer.call("tensor_copy", dst=whole(across), src=whole(product))
        made = self.writer.allocate(
            "turned_product", (at.partitions, at.rows * PARTITIONS), float32, Memory.psum
        )  # fmt: skip
        for t in range(at.rows):
            into = (at.partitions, columns)
            self.writer.call(
                "nc_transpose",
                dst=Access(made.name, Affine(t * PARTITIONS), into, (made.row, 1)),
                data=Access(
                    across.name, Affine(t * at.partitions), (columns, at.partitions),
                    (across.row, 1),
                ),
            )  # fmt: skip
        return _rows_of(made, at, columns, PARTITIONS)

    def copied_product(self, node: Node, left: OnChip, right: OnChip, at: Tile) -> Access:
        """Results in SBUF, bank by bank."""
        columns = node.spec.shape[-1]
        made = self.room("product_rows", at, columns, node.spec.dtype)
        down, step = made.strides[0], made.strides[-2] if at.rows > 1 else 0
        for t in range(at.rows):
            for part in parts(columns, BANK_ELEMS):
                with self.writer.loop("bank", part.tiles) as b:
                    start = b * BANK_ELEMS + part.start
                    shape = (at.partitions, part.size)
                    bank = self.writer.allocate(
                        "product", shape, float32, Memory.psum, node.origin
                    )  # fmt: skip
                    rows = (Affine(t * at.partitions), at.partitions)
                    multiply(self.writer, whole(bank), left, rows, right, (start, part.size))
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


def _turned_is_shorter(rows: int, columns: int, right: OnChip) -> bool:
    """Whether columns on partitions, transposed back, is fewer instructions than rows."""
    chunks = right.chunks + (right.rest is not None)
    if columns > PARTITIONS or rows * PARTITIONS > BANK_ELEMS:
        return False
    return chunks + 1 + rows < rows * chunks


def _rows_of(made: Buffer, at: Tile, columns: int, pitch: int) -> Access:
    if at.rows == 1:
        return Access(made.name, Affine(), (at.partitions, columns), (made.row, 1))
    shape = (at.partitions, at.rows, columns)
    return Access(made.name, Affine(), shape, (made.row, pitch, 1))


def _in_hbm(source: Source, at: Tile) -> Access:
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
    return Access(source.buffer, offset, tuple(n for n, _ in dims), tuple(s for _, s in dims))
