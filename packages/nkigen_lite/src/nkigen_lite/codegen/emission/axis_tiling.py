"""An axis as tiles of equal size and a smaller last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from neuroncore.targets import PARTITIONS


@dataclass(frozen=True, slots=True)
class AxisTiles:
    """`tiles` tiles of `size` elements of an axis, from `start` on."""

    start: int
    tiles: int
    size: int


def parts(size: int, tile: int) -> Iterator[AxisTiles]:
    """The axis in tiles, the last one smaller."""
    if size // tile:
        yield AxisTiles(0, size // tile, tile)
    if size % tile:
        yield AxisTiles(size // tile * tile, 1, size % tile)


def row_parts(size: int, each: int) -> Iterator[tuple[AxisTiles, int, int]]:
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
            yield AxisTiles(part.start, 1, left * partitions), partitions, left
        if part.size % partitions:
            yield (
                AxisTiles(part.start + left * partitions, 1, part.size % partitions),
                (part.size % partitions),
                1,
            )
