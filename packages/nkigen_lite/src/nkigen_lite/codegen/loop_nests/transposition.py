"""Tiles of arrays that are stored in columns, transposed by TensorE on load and on store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.loop_nests.tiles import DIRECT, Tile, Tiles
from nkigen_lite.selection.machine_limits import PARTITIONS

BLOCKS = 4
"""Blocks of 128 columns that fill a PSUM bank of float32."""

DTYPES = (float32, bfloat16, float16)
"""Dtypes that TensorE transposes bit for bit."""


@dataclass(frozen=True, slots=True)
class TransposedTransfers:
    """`values` are stored in columns: neighbours along the rows are neighbours in HBM."""

    values: frozenset[str]

    def load(self, tiles: Tiles, value: str, at: Tile) -> None:
        if value not in self.values:
            DIRECT.load(tiles, value, at)
            return
        writer, source = tiles.writer, tiles.in_hbm(value, at)
        tile = writer.buffers[tiles.on_chip(value, at).buffer]
        for first, blocks, columns in _column_blocks(writer, at):
            natural = _columns_of(tiles, value, at, blocks, columns)
            place = _columns_in_hbm(source, first, natural.shape)
            writer.call("dma_copy", dst=whole(natural), src=place)
            with writer.loop("row", at.rows) as k:
                shape, steps = (at.partitions, blocks, columns), (natural.shape[2], at.rows)
                transposed = _transposed(tiles, value, shape, natural, k, steps)
                target = columns_of(tile, k * at.columns + first, blocks * columns)
                writer.call("tensor_copy", dst=target, src=transposed)

    def store(self, tiles: Tiles, name: str, value: str, at: Tile) -> None:
        if name not in self.values:
            DIRECT.store(tiles, name, value, at)
            return
        writer, target = tiles.writer, tiles.in_hbm(name, at)
        tile = writer.buffers[tiles.on_chip(value, at).buffer]
        for first, blocks, columns in _column_blocks(writer, at):
            natural = _columns_of(tiles, value, at, blocks, columns)
            with writer.loop("row", at.rows) as k:
                shape, start = (columns, blocks, at.partitions), k * at.columns + first
                transposed = _transposed(tiles, value, shape, tile, start, (columns, 1))
                steps = (natural.row, natural.shape[2], at.rows)
                spread = Access(natural.name, Affine() + k, shape, steps)
                writer.call("tensor_copy", dst=spread, src=transposed)
            place = _columns_in_hbm(target, first, natural.shape)
            writer.call("dma_copy", dst=place, src=whole(natural))


def _transposed(
    tiles: Tiles, value: str, shape: tuple[int, int, int], source: Buffer, start: Affine,
    steps: tuple[int, int],
) -> Access:  # fmt: skip
    """Blocks of the source side by side in PSUM, of `shape` (rows, blocks, columns): steps[0]
    elements from one to the next, steps[1] from row to row."""
    rows, blocks, columns = shape
    made = tiles.writer.allocate("transposed", shape, tiles.fit.dtypes[value], MemorySpace.psum)
    for j in range(blocks):
        data = Access(
            source.name, start + j * steps[0], (columns, rows), (source.row, steps[1])
        )  # fmt: skip
        tiles.writer.call("nc_transpose", dst=columns_of(made, j * columns, columns), data=data)
    return whole(made)


def _column_blocks(writer: Writer, at: Tile) -> Iterator[tuple[Affine, int, int]]:
    """(first column, blocks, columns of each) of what one PSUM bank takes."""
    for first, count in writer.tiles("bank", at.columns, BLOCKS * PARTITIONS):
        for block in parts(count, PARTITIONS):
            yield first + block.start, block.tiles, block.size


def _columns_of(tiles: Tiles, value: str, at: Tile, blocks: int, columns: int) -> Buffer:
    """A new tile of columns on partitions: (columns, blocks, all rows of the tile)."""
    shape = (columns, blocks, at.partitions * at.rows)
    return tiles.writer.allocate("columns", shape, tiles.fit.dtypes[value], MemorySpace.sbuf)


def _columns_in_hbm(tile: Access, first: Affine, shape: tuple[int, ...]) -> Access:
    """Columns from `first` on of a tile in HBM, each with all rows."""
    step = tile.strides[-1]
    strides = (step, step * shape[0], 1)
    return replace(tile, offset=tile.offset + first * step, shape=shape, strides=strides)
