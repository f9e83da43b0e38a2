"""One tiled dimension of a grid: the tiles that each of its cells contains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

Cell = tuple[int, ...]
"""The numbers of the tiles in one cell: one number in a tile grid, several in a block grid."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The selected tiles of one dimension, in cells of `group` tiles; the last tile of the
    dimension, and the last cell, may be smaller than the others.
    """

    tile: int
    """Elements of a whole tile."""
    extent: int
    """Elements of the whole dimension, selected or not."""
    cells: tuple[Cell, ...]
    group: int = 1
    is_indexed: bool = False
    """Whether an integer selected the one remaining cell."""

    @classmethod
    def of(cls, extent: int, tile: int) -> Axis:
        """All tiles of a dimension of `extent` elements."""
        return cls(tile, extent, tuple((number,) for number in range(-(-extent // tile))))

    @property
    def tiles(self) -> Cell:
        """The numbers of all selected tiles."""
        return tuple(number for cell in self.cells for number in cell)

    @property
    def elements(self) -> int:
        """How many elements are selected."""
        return sum(min(self.tile, self.extent - number * self.tile) for number in self.tiles)

    @property
    def is_remainder(self) -> bool:
        """Whether the last cell is smaller than the others."""
        return self.elements < len(self.cells) * self.group * self.tile

    @property
    def index_step(self) -> int:
        """Elements from one cell to the next."""
        if len(self.cells) < 2:
            return self.group * self.tile
        return (self.cells[1][0] - self.cells[0][0]) * self.tile

    @property
    def tile_step(self) -> int | None:
        """Tiles from one selected tile to the next; None where it is not the same everywhere."""
        steps = {after - before for before, after in pairwise(self.tiles)}
        return steps.pop() if len(steps) == 1 else (None if steps else 1)

    def at(self, number: int) -> Axis:
        """The cell of that number alone."""
        return replace(self, cells=(self.cells[number],), is_indexed=True)

    def cut(self, part: slice) -> Axis:
        """The cells in a slice."""
        return replace(self, cells=self.cells[part])

    def grouped(self, group: int) -> Axis:
        """The selected tiles in cells of `group`; of 1: each tile is a cell."""
        tiles = self.tiles
        cells = (tiles[i : i + group] for i in range(0, len(tiles), group))
        return replace(self, cells=tuple(cells), group=group, is_indexed=False)

    def stride(self, within: int, between: int) -> int | None:
        """The one stride of the selected elements, or None where there is none.

        Elements of a tile are `within` from each other, and tiles begin `between` from each other.
        """
        if len(self.tiles) == 1:
            return within
        if self.tile_step is None:
            return None
        step = self.tile_step * between
        if self.tile == 1:
            return step
        return within if step == self.tile * within else None


def axes_of(shape: Sequence[int], tile_shape: Sequence[int]) -> tuple[Axis, ...]:
    """Axes of a tensor whose trailing dimensions are tiled."""
    tiled = shape[len(shape) - len(tile_shape) :]
    return tuple(Axis.of(n, tile) for n, tile in zip(tiled, tile_shape, strict=True))


def num_tiles(axes: Sequence[Axis]) -> int:
    """How many tiles the whole dimensions have, each with the other ones."""
    return prod(-(-axis.extent // axis.tile) for axis in axes)
