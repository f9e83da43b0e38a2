"""nl.tiles, nl.blocks, nl.alloc_tiles, nl.alloc_blocks, and nl.empty_like of tensors and grids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.memory import View
from nki_beta2.grids.arguments import (
    GridOptionError,
    GridTypeError,
    GridValueError,
    Shape,
    check_buffer,
    check_on_chip,
    check_sizes,
    check_tiles,
)
from nki_beta2.grids.axis import Axis, axes_of, num_tiles
from nki_beta2.grids.grid import NkiBlockGrid, NkiGrid, NkiTileGrid
from nki_beta2.grids.layout import InPlace, Layout, TileByTile
from nki_beta2.kernel.configuration import reject_parsed


def tiles(source: Any, *, tile_shape: Shape | None = None) -> NkiTileGrid:
    """`source` seen by tile: a tensor, the tiles of a grid anew, or the tiles of blocks.

    tile_shape: elements of a tile; it applies to the trailing dimensions, and a grid has its own.
    Raises GridTypeError and GridValueError for other sources and shapes.
    """
    layout, axes = _tiled("nl.tiles", source, tile_shape)
    return NkiTileGrid.made(layout, axes)


def blocks(source: Any, *, tile_shape: Shape | None = None, block_shape: Shape) -> NkiBlockGrid:
    """`source` seen by block of tiles; block_shape: tiles of a block."""
    layout, axes = _tiled("nl.blocks", source, tile_shape)
    return NkiBlockGrid.made(layout, _grouped("nl.blocks", axes, block_shape))


def _tiled(function: str, source: Any, tile_shape: Any) -> tuple[Layout, tuple[Axis, ...]]:
    """The layout of a source, and its axes tile by tile."""
    reject_parsed(function)
    if isinstance(source, NkiGrid):
        if tile_shape is None or tile_shape == source.tile_shape:
            return source.layout, _opened(function, source)
        source = source.data
    if not isinstance(source, View):
        raise GridTypeError(
            f"source cannot be a {type(source).__name__}", function, "a tensor or a grid", source,
            operand="source", position=0,
        )  # fmt: skip
    if tile_shape is None:
        raise GridValueError(
            "a tensor is given, and the shape of its tiles is not", function, "tile_shape=(…)",
            source,
        )  # fmt: skip
    check_tiles(function, tile_shape, source.shape)
    if source.spec.space.on_chip:
        check_on_chip(function, tile_shape, source.shape)
    return InPlace(source, len(tile_shape)), axes_of(source.shape, tile_shape)


def _opened(function: str, grid: NkiGrid) -> tuple[Axis, ...]:
    axes = tuple(axis.grouped(1) for axis in grid.axes)
    if all(axis.tile_step is not None for axis in axes):
        return axes
    raise GridValueError(
        "the selected blocks are not next to each other", function, "one block, or a row of them",
        grid, hint="index one block and open that",
    )  # fmt: skip


def _grouped(function: str, axes: tuple[Axis, ...], block_shape: Any) -> list[Axis]:
    check_sizes(function, "block_shape", block_shape)
    if len(block_shape) != len(axes):
        raise GridValueError(
            f"block_shape has {len(block_shape)} dimensions", function,
            f"{len(axes)}, as tile_shape", block_shape, operand="block_shape",
        )  # fmt: skip
    return [axis.grouped(n) for axis, n in zip(axes, block_shape, strict=True)]


# -- new storage


def grid_functions(ndarray: Callable[..., View]) -> dict[str, Any]:
    """The names of grids in nki.language; `ndarray` makes the tensors behind new ones."""

    def allocated(
        function: str, tile_shape: Shape, element_shape: Shape, buffer: Any, dtype: Any,
        address: Any, name: str,
    ) -> tuple[Layout, tuple[Axis, ...]]:  # fmt: skip
        reject_parsed(function)
        check_tiles(function, tile_shape, element_shape)
        check_buffer(function, buffer)
        axes = axes_of(element_shape, tile_shape)
        if not buffer.on_chip:
            tensor = ndarray(element_shape, dtype, buffer, name, address)
            return InPlace(tensor, len(tile_shape)), axes
        check_on_chip(function, tile_shape, element_shape)
        free = num_tiles(axes) * prod(tile_shape[1:])
        return TileByTile(ndarray((tile_shape[0], free), dtype, buffer, name, address)), axes

    def alloc_tiles(
        *, tile_shape: Shape, element_shape: Shape, buffer: Any, dtype: Any,
        address: Any = None, name: str = "",
    ) -> NkiTileGrid:  # fmt: skip
        """New undefined storage seen by tile.

        In HBM a tensor of shape `element_shape`; on chip tiles one after the other in the free
        dimension, each with room for a whole one. Raises GridTypeError and GridValueError.
        """
        given = (tile_shape, element_shape, buffer, dtype, address, name)
        return NkiTileGrid.made(*allocated("nl.alloc_tiles", *given))

    def alloc_blocks(
        *, tile_shape: Shape, block_shape: Shape, element_shape: Shape, buffer: Any, dtype: Any,
        address: Any = None, name: str = "",
    ) -> NkiBlockGrid:  # fmt: skip
        """The storage of alloc_tiles seen by block; block_shape: tiles of a block."""
        given = (tile_shape, element_shape, buffer, dtype, address, name)
        layout, axes = allocated("nl.alloc_blocks", *given)
        return NkiBlockGrid.made(layout, _grouped("nl.alloc_blocks", axes, block_shape))

    def empty_like(
        x: Any, dtype: Any = None, buffer: Any = None, name: str = "", *,
        transpose_axes: Shape | None = None, address: Any = None,
    ) -> View | NkiGrid:  # fmt: skip
        """New undefined storage with the shape, dtype and memory of a tensor or a grid.

        Of a grid its cells, next to each other. transpose_axes: the order of the tiled dimensions,
        for the destination of a dma_transpose in SBUF.
        """
        if not isinstance(x, (View, NkiGrid)):
            raise GridTypeError(
                f"x cannot be a {type(x).__name__}", "nl.empty_like", "a tensor or a grid", x,
                operand="x", position=0,
            )  # fmt: skip
        dtype, buffer = dtype or x.dtype, buffer or x.buffer
        order = _order(x, buffer, transpose_axes)
        if isinstance(x, View):
            return ndarray([x.shape[d] for d in order], dtype, buffer, name, address)
        axes = [x.axes[d] for d in order]
        layout, new = allocated(
            "nl.empty_like", tuple(axis.tile for axis in axes),
            (*x.layout.untiled, *(axis.elements for axis in axes)), buffer, dtype, address, name,
        )  # fmt: skip
        return type(x).made(layout, [_like(axis, old) for axis, old in zip(new, axes, strict=True)])

    functions = (tiles, blocks, alloc_tiles, alloc_blocks, empty_like)
    classes = (NkiGrid, NkiTileGrid, NkiBlockGrid)
    return {thing.__name__: thing for thing in (*functions, *classes)}


def _like(axis: Axis, old: Axis) -> Axis:
    """All tiles of an axis in the groups of another one, indexed as that is."""
    return replace(axis.grouped(old.group), is_indexed=old.is_indexed)


_ORDERS: tuple[Shape, ...] = ((1, 0), (2, 1, 0), (3, 1, 2, 0))
"""What transpose_axes takes, for two to four tiled dimensions [NKI 0.7: nl.empty_like]."""


def _order(x: Any, buffer: Any, axes: Any) -> Shape:
    """The order of the dimensions of new storage."""
    rank = len(x.axes) if isinstance(x, NkiGrid) else len(x.shape)
    if axes is None:
        return tuple(range(rank))
    if axes in _ORDERS and len(axes) == rank and buffer is MemorySpace.sbuf:
        return axes
    raise GridOptionError(
        f"transpose_axes={axes!r} for {rank} dimensions", "nl.empty_like",
        f"one of {', '.join(map(str, _ORDERS))}, as many as dimensions, with buffer=nl.sbuf", x,
        operand="transpose_axes",
    )  # fmt: skip
