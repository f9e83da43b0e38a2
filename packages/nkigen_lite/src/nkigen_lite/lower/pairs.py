"""Matrices of two neighbours in a batch axis: one DMA brings both, and where their contracted axes
fit on the partitions together, both are transposed at once."""

from __future__ import annotations

from collections.abc import Callable

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, whole
from nkigen_lite.lower.contraction import LOAD_BYTES, PARTITIONS, Matrix, OnChip, place, turn
from nkigen_lite.lower.tiles import row_parts
from nkigen_lite.lower.writer import Writer

STARTS = (32, 64)
"""Partitions at which the second matrix may begin: engines start at multiples of 32."""

Order = Callable[[int, int], tuple[int, int]]
"""(P, T) → how far row p · T + t of a tile moves in columns with p and with t."""


def load_pair(
    writer: Writer, matrix: Matrix, step: int, name: str, rows: int, order: Order
) -> tuple[OnChip, OnChip] | None:
    """The matrix and the one `step` elements further, with K on partitions; None where two loads
    are better. A tile that is transposed has up to `rows` rows of X in each partition."""
    if step == 0:
        return None
    if matrix.along_k == 1 and matrix.num_k in STARTS:
        return _side_by_side(writer, matrix, step, name, rows, order)
    if matrix.along_x == 1 and not matrix.num_k % PARTITIONS:
        return _behind(writer, matrix, step, name)
    return None


def _side_by_side(
    writer: Writer, matrix: Matrix, step: int, name: str, rows: int, order: Order
) -> tuple[OnChip, OnChip]:
    both, size = 2 * matrix.num_k, matrix.dtype.itemsize
    made = place(writer, name, both, matrix.num_x, matrix.dtype)
    most = max(1, min(rows, LOAD_BYTES // (both * size)))
    for part, partitions, each in row_parts(matrix.num_x, most):
        with writer.loop("x", part.tiles) as x:
            start = x * part.size + part.start
            shape, along = (partitions, each, both), matrix.along_x
            tile = writer.allocate(f"{matrix.buffer}_tile", shape, matrix.dtype, Memory.sbuf)
            source = Access(
                matrix.buffer, matrix.offset + start * along, (partitions, each, 2, matrix.num_k),
                (each * along, along, step, 1),
            )  # fmt: skip
            target = Access(
                tile.name, whole(tile).offset, source.shape, (tile.row, both, matrix.num_k, 1)
            )
            writer.call("dma_copy", dst=target, src=source)
            turn(writer, whole(tile), made, start, order(partitions, each))
    buffer = made.main or made.rest
    return (
        OnChip(None, buffer, 0, matrix.num_k),
        OnChip(None, buffer, 0, matrix.num_k, partition=matrix.num_k),
    )


def _behind(
    writer: Writer, matrix: Matrix, step: int, name: str
) -> tuple[OnChip, OnChip] | None:  # fmt: skip
    chunks, x = matrix.num_k // PARTITIONS, matrix.num_x
    if 2 * chunks * x * matrix.dtype.itemsize > LOAD_BYTES:
        return None
    shape = (PARTITIONS, 2 * chunks, x)
    made = writer.allocate(name, shape, matrix.dtype, Memory.sbuf)
    down = matrix.along_k
    source = Access(
        matrix.buffer, matrix.offset, (PARTITIONS, 2, chunks, x),
        (down, step, PARTITIONS * down, 1),
    )  # fmt: skip
    target = Access(made.name, whole(made).offset, source.shape, (made.row, chunks * x, x, 1))
    writer.call("dma_copy", dst=target, src=source)
    return OnChip(made, None, chunks, 0), OnChip(made, None, chunks, 0, first=chunks)
