"""Tiles of arrays that are stored in columns, transposed by TensorE on load and on store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, whole
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.emission.writer import Writer
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
        tile, source = tiles.on_chip(value, at), tiles.in_hbm(value, at)
        row = tiles.writer.buffers[tile.buffer].row
        for first, blocks, columns in _column_blocks(tiles.writer, at):
            natural = _columns_of(tiles, value, at, blocks, columns)
            place = _columns_in_hbm(source, first, natural.shape)
            tiles.writer.call("dma_copy", dst=natural, src=place)
            with tiles.writer.loop("row", at.rows) as k:
                transposed = tiles.writer.allocate(
                    "transposed",
                    (at.partitions, blocks, columns),
                    tiles.fit.dtypes[value],
                    MemorySpace.psum,
                )
                for j in range(blocks):
                    tiles.writer.call(
                        "nc_transpose",
                        dst=Access(transposed.name, Affine(j * columns), (at.partitions, columns),
                                   (transposed.row, 1)),
                        data=Access(natural.buffer, k + j * natural.shape[2],
                                    (columns, at.partitions), (natural.strides[0], at.rows)),
                    )  # fmt: skip
                target = Access(
                    tile.buffer, k * at.columns + first, (at.partitions, blocks * columns), (row, 1)
                )  # fmt: skip
                tiles.writer.call("tensor_copy", dst=target, src=whole(transposed))

    def store(self, tiles: Tiles, name: str, value: str, at: Tile) -> None:
        if name not in self.values:
            DIRECT.store(tiles, name, value, at)
            return
        tile, target = tiles.on_chip(value, at), tiles.in_hbm(name, at)
        row = tiles.writer.buffers[tile.buffer].row
        for first, blocks, columns in _column_blocks(tiles.writer, at):
            natural = _columns_of(tiles, value, at, blocks, columns)
            with tiles.writer.loop("row", at.rows) as k:
                transposed = tiles.writer.allocate(
                    "transposed",
                    (columns, blocks, at.partitions),
                    tiles.fit.dtypes[value],
                    MemorySpace.psum,
                )
                for j in range(blocks):
                    tiles.writer.call(
                        "nc_transpose",
                        dst=Access(transposed.name, Affine(j * at.partitions),
                                   (columns, at.partitions), (transposed.row, 1)),
                        data=Access(tile.buffer, k * at.columns + first + j * columns,
                                    (at.partitions, columns), (row, 1)),
                    )  # fmt: skip
                spread = Access(
                    natural.buffer, Affine() + k, (columns, blocks, at.partitions),
                    (natural.strides[0], natural.strides[1], at.rows),
                )  # fmt: skip
                tiles.writer.call("tensor_copy", dst=spread, src=whole(transposed))
            tiles.writer.call(
                "dma_copy", dst=_columns_in_hbm(target, first, natural.shape), src=natural
            )


def _column_blocks(writer: Writer, at: Tile) -> Iterator[tuple[Affine, int, int]]:
    """(first column, blocks, columns of each) of what one PSUM bank takes."""
    for part in parts(at.columns, BLOCKS * PARTITIONS):
        with writer.loop("bank", part.tiles) as b:
            first = b * part.size + part.start
            for block in parts(part.size, PARTITIONS):
                yield first + block.start, block.tiles, block.size


def _columns_of(tiles: Tiles, value: str, at: Tile, blocks: int, columns: int) -> Access:
    """A new tile of columns on partitions: (columns, blocks, all rows of the tile)."""
    made = tiles.writer.allocate(
        "columns", (columns, blocks, at.partitions * at.rows), tiles.fit.dtypes[value],
        MemorySpace.sbuf,
    )  # fmt: skip
    return whole(made)


def _columns_in_hbm(tile: Access, first: Affine, shape: tuple[int, ...]) -> Access:
    """Columns from `first` on of a tile in HBM, each with all rows."""
    step = tile.strides[-1]
    strides = (step, step * shape[0], 1)
    return replace(tile, offset=tile.offset + first * step, shape=shape, strides=strides)
