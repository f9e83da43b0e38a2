"""What TensorE multiplies, tile by tile: loaded where it is used, or made on chip before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from nki_dtypes import DType
from nkigen_lite.codegen import Arrays, Writer
from nkigen_lite.fusion import ArrayView
from nkigen_lite.ir import Node
from nkigym.baseline.errors import BaselineError, tile_of

PARTITIONS = 128


@dataclass(frozen=True, slots=True)
class Transposed:
    """A value (M, K) on chip with K on partitions: (128, K / 128, M)."""

    buffer: Buffer

    def chunk(self, number: Affine, start: Affine, count: int) -> Access:
        """Some rows M of a chunk of K."""
        partitions, _, num_rows = self.buffer.shape
        offset = number * num_rows + start
        return Access(self.buffer.name, offset, (partitions, count), (self.buffer.row, 1))


@dataclass(slots=True)
class Operands:
    """Operands of products at one place: `rows` rows from `row` on, in a batch."""

    writer: Writer
    arrays: Arrays
    batch: tuple[Affine, ...]
    row: Affine
    rows: int
    transposed: dict[str, Transposed] = field(default_factory=dict)
    """Values on chip with their columns on partitions."""

    @contextmanager
    def terms(self, node: Node) -> Iterator[tuple[Affine, int]]:
        """The loop over the contracted axis K: (number of the tile, its size)."""
        num_k = self.arrays.graph.specs[node.operands[0]].shape[-1]
        size = tile_of(num_k, (PARTITIONS,), "contracted elements", node.origin)
        for operand in node.operands:
            if self.is_in_hbm(operand) and self.arrays.source(operand).look is not None:
                why = "a matrix of a product is the bits of another array"
                raise BaselineError(why, place=node.origin)
        with self.writer.loop("k", num_k // size) as k:
            yield k, size

    def is_in_hbm(self, value: str) -> bool:
        return self.arrays.plan.base_of(value) in self.arrays.known

    # -- left: stationary (K, M) ------------------------------------------------------------------

    def left(self, value: str, k: Affine, size: int, first: Affine, rows: int) -> Access:
        """K x M of the left operand (M, K), rows from `first` of the strip's on."""
        if value in self.transposed:
            return self.transposed[value].chunk(k, first, rows)
        source = self.arrays.source(value)
        down, along = source.strides[-2:]
        at = self.offset(source) + (self.row + first) * down + k * size * along
        if along != 1 or down == 1:
            return self.loaded(source, at, (size, rows), (along, down))
        return self.loaded_and_transposed(source, at, (rows, size), (down, along))

    def turn(self, value: str, values: Mapping[str, Access]) -> None:
        """A value that was made on chip, once for all columns of the product."""
        if value not in values or value in self.transposed:
            return
        rows = values[value]
        num_k = rows.shape[1]
        size = tile_of(num_k, (PARTITIONS,), "contracted elements", None)
        dtype = self.writer.buffers[rows.buffer].dtype
        made = self.transposed[value] = self.room("transposed_rows", num_k, size, dtype)
        with self.writer.loop("k", num_k // size) as k:
            part = Access(rows.buffer, rows.offset + k * size, (self.rows, size), rows.strides)
            self.transpose(part, made.chunk(k, Affine(), self.rows))

    def room(self, name: str, columns: int, size: int, dtype: DType) -> Transposed:
        """Room for a value with `size` of its columns on partitions."""
        shape = (size, columns // size, self.rows)
        return Transposed(self.writer.allocate(name, shape, dtype, MemorySpace.sbuf))

    # -- right: moving (K, N) ---------------------------------------------------------------------

    def right(self, value: str, k: Affine, size: int, column: Affine, width: int) -> Access:
        """K x N of the right operand (K, N)."""
        source = self.arrays.source(value)
        down, along = source.strides[-2:]
        at = self.offset(source) + k * size * down + column * along
        if down != 1 or along == 1:
            return self.loaded(source, at, (size, width), (down, along))
        return self.loaded_and_transposed(source, at, (width, size), (along, down))

    # -- tiles ------------------------------------------------------------------------------------

    def offset(self, source: ArrayView) -> Affine:
        """The batch's first element; axes broadcast as NumPy's do."""
        found = Affine(source.offset)
        lead = source.shape[:-2]
        missing = len(self.batch) - len(lead)
        for variable, size, stride in zip(
            self.batch[missing:], lead, source.strides, strict=False
        ):  # fmt: skip
            found += variable * (stride if size != 1 else 0)
        return found

    def in_hbm(
        self, source: ArrayView, first: Affine, column: Affine, shape: tuple[int, ...]
    ) -> Access:
        """A tile of an array of the strip's rows."""
        down, along = source.strides[-2:]
        at = self.offset(source) + (self.row + first) * down + column * along
        return Access(source.buffer, at, shape, (down, along), source.look)

    def loaded(
        self, source: ArrayView, at: Affine, shape: tuple[int, int], strides: tuple[int, int]
    ) -> Access:
        """A tile as it lies."""
        name = f"{source.buffer}_tile"
        made = whole(self.writer.allocate(name, shape, source.dtype, MemorySpace.sbuf))
        self.writer.call("dma_copy", dst=made, src=Access(source.buffer, at, shape, strides))
        return made

    def loaded_and_transposed(
        self, source: ArrayView, at: Affine, shape: tuple[int, int], strides: tuple[int, int]
    ) -> Access:
        """A tile (X, K) of rows, 128 of them at a time, as (K, X)."""
        count, size = shape
        name = f"{source.buffer}_transposed"
        made = whole(self.writer.allocate(name, (size, count), source.dtype, MemorySpace.sbuf))
        each = tile_of(count, (PARTITIONS,), "rows", None)
        with self.writer.loop("x", count // each) as x:
            tile = self.loaded(source, at + x * each * strides[0], (each, size), strides)
            part = Access(made.buffer, x * each, (size, each), made.strides)
            self.transpose(tile, part)
        return made

    def transpose(self, tile: Access, into: Access) -> None:
        """TensorE transposes a tile into PSUM; a copy moves it to SBUF."""
        dtype = self.writer.buffers[tile.buffer].dtype
        transposed = self.writer.allocate("transposed", into.shape, dtype, MemorySpace.psum)
        self.writer.call("nc_transpose", dst=whole(transposed), data=tile)
        self.writer.call("tensor_copy", dst=into, src=whole(transposed))
