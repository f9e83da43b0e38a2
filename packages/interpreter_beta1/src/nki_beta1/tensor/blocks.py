"""Tensors with block dimensions: `nl.ndarray((B, nl.par_dim(P), F))`.

The partition dimension follows the block dimensions. A block is a tile of its own, made when
it is first named: 0.1's compiler gives every block its own address and lets blocks share memory
when they do not live at the same time, so all blocks together may exceed a memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.spec import as_dtype
from nki_beta1.call.assignment import assign
from nki_beta1.execution.tensor import shown_dtype
from nki_beta1.index.axes import expanded
from nki_beta1.index.expression import RULE, Index
from nki_beta1.tensor.tile import Tile
from nki_beta1.values.special_methods import NoAttributeError, NotAnArray
from nki_dtypes import DType


class ParDim(int):
    """`nl.par_dim(n)`: n, marked as the partition dimension of a shape."""

    def __repr__(self) -> str:
        return f"par_dim({int(self)})"


class Blocks(NotAnArray):
    """An on-chip tensor whose first dimensions count blocks; index it to get tiles."""

    __slots__ = ("_make", "_sizes", "_space", "_tiles", "kind", "tile_shape")
    __hash__ = object.__hash__

    def __init__(
        self,
        tiles: np.ndarray,
        make: Callable[[tuple[int, ...]], Tile],
        tile_shape: tuple[int, ...],
        kind: DType,
        space: MemorySpace,
    ) -> None:
        self._tiles, self._sizes = tiles, tiles.shape
        self._make = make
        self.tile_shape = tile_shape
        self.kind = kind
        self._space = space

    @property
    def shape(self) -> tuple[int, ...]:
        """(blocks…, P, F…)"""
        return (*self._tiles.shape, *self.tile_shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def depth(self) -> int:
        """Number of block dimensions."""
        return self._tiles.ndim

    @property
    def dtype(self) -> Any:
        return shown_dtype(self.kind)

    @property
    def buffer(self) -> MemorySpace:
        return self._space

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.kind.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """A tile, or part of one, when every block index is an int; fewer blocks otherwise."""
        given = key if isinstance(key, tuple) else (key,)
        tile = self._named(given)
        if tile is not None:
            return tile[given[self.depth :]]
        items = expanded(given, self.ndim)
        chosen = tuple(
            _block_index(item, size, dim)
            for dim, (item, size) in enumerate(zip(items, self._tiles.shape, strict=False))
        )
        rest = tuple(items[self.depth :])
        whole = all(isinstance(i, slice) and i == slice(None) for i in rest)
        if all(isinstance(i, int) for i in chosen):
            tile = self._tile(chosen)  # type: ignore[arg-type]
            return tile if whole else tile[rest]
        if not whole:
            raise AccessError(
                "part of several blocks at once",
                expected="an int for every block dimension",
                got=f"{self.depth} block dimensions, {len(items)} indices",
                rule=RULE,
            )
        return Blocks(self._tiles[chosen], self._make, self.tile_shape, self.kind, self.buffer)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]
        if not isinstance(target, Blocks):
            assign(target, value)
        elif not isinstance(value, Blocks):  # else: t[…] += value, which is done already
            target.fill(value)

    def view(self, dtype: Any) -> Blocks:
        """The same blocks, their bytes read as another dtype: P stays, the last dimension changes.

        Raises the errors of a tile's `view`.
        """
        kind = as_dtype(dtype)
        sizes = (*self.tile_shape[:-1], self.tile_shape[-1] * self.kind.itemsize // kind.itemsize)
        return make_blocks(
            self._tiles.shape, lambda at: self._tile(at).view(dtype), sizes, kind, self.buffer
        )

    def tiles(self) -> Iterator[Tile]:
        """Every block, in order."""
        return (self._tile(at) for at in np.ndindex(*self._tiles.shape))

    def fill(self, value: Any) -> None:
        """Assign one number to all blocks."""
        if not isinstance(value, (int, float)):
            raise AccessError(
                "several blocks are assigned at once",
                expected="one block at a time: t[b] = tile, or a number",
                got=f"blocks of shape {self.shape}",
                rule=RULE,
            )
        for tile in self.tiles():
            assign(tile, value)

    def _named(self, items: tuple[Any, ...]) -> Tile | None:
        """The tile that plain ints name, where index expressions follow (the usual case)."""
        depth = len(self._sizes)
        if len(items) <= depth or items[depth].__class__ is not Index:
            return None
        for item, size in zip(items, self._sizes):  # noqa: B905 - the items before the rest
            if item.__class__ is not int or not 0 <= item < size:
                return None
        return self._tile(items[:depth])

    def _tile(self, at: tuple[int, ...]) -> Tile:
        held = self._tiles[at]
        if not isinstance(held, Tile):
            held = self._tiles[at] = self._make(held)
        return held

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NoAttributeError(
            f"{name} of a tensor with block dimensions",
            expected="a block first: t[b] is a tile",
            got=f"shape {self.shape} with {self.depth} block dimensions",
            rule=RULE,
        )

    def __repr__(self) -> str:
        return f"<blocks {self.shape}, {self.dtype}, {self.buffer.name.upper()}>"


def _block_index(item: Any, size: int, dim: int) -> int | slice:
    if isinstance(item, slice):
        return item
    if isinstance(item, Index) and item.bounds[0] == item.bounds[1]:
        item = item.bounds[0]
    if not isinstance(item, (int, np.integer)) or isinstance(item, bool):
        raise AccessError(
            f"block dimension {dim} is indexed with a {type(item).__name__}",
            expected="an int, such as a loop variable",
            got=repr(item)[:80],
            hint="blocks are separate tiles; declare the dimension after par_dim to index over it",
            rule=RULE,
        )
    if not 0 <= item < size:
        raise AccessError(
            f"block {item} of dimension {dim} does not exist",
            expected=f"0 <= block < {size}",
            got=str(item),
            rule=RULE,
        )
    return int(item)


def make_blocks(
    blocks: tuple[int, ...],
    make: Callable[[tuple[int, ...]], Tile],
    shape: tuple[int, ...],
    kind: DType,
    space: MemorySpace,
) -> Blocks:
    """A tensor of `blocks` tiles, none of which exists yet: each place holds its own index."""
    tiles = np.empty(blocks, object)
    for at in np.ndindex(*blocks):
        tiles[at] = at
    return Blocks(tiles, make, shape, kind, space)
