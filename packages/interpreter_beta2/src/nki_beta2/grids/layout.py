"""Storage of a grid's elements: in a tensor as it is, or tile by tile on chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from neuroncore.memory import View
from nki_beta2.grids.axis import Axis, num_tiles


class Layout(Protocol):
    """The parts of a grid's storage that the grid reads."""

    @property
    def tensor(self) -> View: ...

    @property
    def untiled(self) -> tuple[int, ...]:
        """Sizes of the dimensions before the tiled ones."""
        ...

    def slab(self, key: tuple[int | slice, ...]) -> Layout:
        """The part that `key` selects of the untiled dimensions."""
        ...

    def is_representable(self, axes: Sequence[Axis]) -> bool:
        """Whether one access pattern with a stride per dimension describes the selection."""
        ...

    def operand(self, axes: Sequence[Axis]) -> View:
        """That view; its shape is the number of selected elements of each dimension."""
        ...


@dataclass(frozen=True, slots=True)
class InPlace:
    """A tensor whose trailing dimensions are tiled: nothing about its storage changes."""

    tensor: View
    num_tiled: int

    @property
    def untiled(self) -> tuple[int, ...]:
        return self.tensor.shape[: -self.num_tiled]

    def slab(self, key: tuple[int | slice, ...]) -> InPlace:
        return InPlace(self.tensor[key], self.num_tiled)

    def is_representable(self, axes: Sequence[Axis]) -> bool:
        steps = [axis.stride(1, axis.tile) for axis in axes]
        return None not in steps and not (self.tensor.buffer.on_chip and steps[0] != 1)

    def operand(self, axes: Sequence[Axis]) -> View:
        return self.tensor[(*(slice(None) for _ in self.untiled), *map(_window, axes))]


def _window(axis: Axis) -> slice:
    start, step = axis.tiles[0] * axis.tile, axis.stride(1, axis.tile)
    assert step is not None
    stop = start + (axis.elements - 1) * step + 1
    return slice(start, stop, None if step == 1 else step)


@dataclass(frozen=True, slots=True)
class TileByTile:
    """Tiles one after the other in the free dimension of a rank-2 tensor, each with room for a
    whole tile, in row-major order of their coordinates.
    """

    tensor: View
    untiled: tuple[int, ...] = ()

    def slab(self, key: tuple[int | slice, ...]) -> TileByTile:
        raise AssertionError("a layout on chip has tiled dimensions alone")

    def is_representable(self, axes: Sequence[Axis]) -> bool:
        return len(axes[0].tiles) == 1 and None not in _strides(axes)

    def operand(self, axes: Sequence[Axis]) -> View:
        (row,) = axes[0].tiles
        offset = row * num_tiles(axes[1:]) * _tile_size(axes)
        pattern = [[self.tensor.shape[1], axes[0].elements]]
        for axis, stride, between in zip(
            axes[1:], _strides(axes), _tile_strides(axes), strict=True
        ):
            assert stride is not None
            offset += axis.tiles[0] * between
            pattern.append([stride, axis.elements])
        return self.tensor.ap(pattern, offset=offset)


def _tile_size(axes: Sequence[Axis]) -> int:
    """Elements of a whole tile in one partition."""
    return prod(axis.tile for axis in axes[1:])


def _tile_strides(axes: Sequence[Axis]) -> list[int]:
    """Elements from a tile to the next one along each free dimension."""
    return [num_tiles(axes[d + 1 :]) * _tile_size(axes) for d in range(1, len(axes))]


def _strides(axes: Sequence[Axis]) -> list[int | None]:
    """The stride of the selected elements along each free dimension."""
    within = [prod(axis.tile for axis in axes[d + 1 :]) for d in range(1, len(axes))]
    steps = zip(axes[1:], within, _tile_strides(axes), strict=True)
    return [axis.stride(inside, between) for axis, inside, between in steps]
