"""One row on all partitions: a DMA that reads it 128 times, or once and TensorE copies it."""

from __future__ import annotations

from collections.abc import Mapping

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import Context, column_values
from nkigen_lite.fusion.iteration_domain import IterationDomain, Role
from nkigen_lite.selection.engine_operations import held_as

BANKS = 4
"""PSUM banks that one copy empties; two of these fit, so that copies and products overlap."""

BY_DMA_BYTES = 64 * 1024
"""Up to here a DMA reads the row for every partition; beyond, the traffic costs more than the five
instructions of the other way."""

BY_DMA_ELEMS = 8
"""The same for elements that do not lie together: each is moved on its own."""

_EXACT = (float32, bfloat16, float16)
"""Dtypes that a product with 1.0 in float32 leaves as they are."""


def replicas_of(
    writer: Writer, domain: IterationDomain, context: Context, sources: Mapping[str, ArrayView]
) -> Replicas:
    """Values that are equal for all rows, on every partition; `sources` are the values in HBM."""
    replicas = Replicas(writer)
    for value in column_values(domain, context):
        if value in sources:
            stride = domain.strides(sources[value], value, Role.columns)[0]
            replicas.load(value, sources[value], domain.size(Role.columns), stride)
    return replicas


class Replicas:
    """Rows that are on every partition, each loaded once for all loops that follow."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.buffers: dict[str, Buffer] = {}

    def load(
        self, value: str, source: ArrayView, columns: int, stride: int, start: Affine | None = None
    ) -> None:  # fmt: skip
        """`columns` elements of the source, `stride` apart, onto all partitions: from its first
        element, or element `start` of its buffer, on."""
        writer, dtype = self.writer, held_as(source.dtype)
        made = writer.allocate(
            f"{source.buffer}_rows", (PARTITIONS, columns), dtype, MemorySpace.sbuf
        )
        self.buffers[value] = made

        def row_of(rows: int, step: int) -> Access:
            shape, strides = (rows, columns), (step, stride)
            offset = Affine(source.offset) if start is None else start
            return Access(source.buffer, offset, shape, strides, source.look)

        many = PARTITIONS * columns * dtype.itemsize > BY_DMA_BYTES
        many |= stride != 1 and columns > BY_DMA_ELEMS
        if not many or dtype not in _EXACT:
            writer.call("dma_copy", dst=whole(made), src=row_of(PARTITIONS, 0))
            return
        row = writer.allocate(f"{source.buffer}_row", (1, columns), dtype, MemorySpace.sbuf)
        writer.call("dma_copy", dst=whole(row), src=row_of(1, columns * stride))
        ones = writer.ones(dtype)
        for start, count in writer.tiles("part", columns, BANK_ELEMS * BANKS):
            self.spread(row, made, ones, start, count)

    def spread(self, row: Buffer, made: Buffer, ones: Buffer, start: Affine, columns: int) -> None:
        """onesᵀ · row into PSUM, one bank after the other, and out."""
        writer = self.writer
        copies = writer.allocate("copies", (PARTITIONS, columns), float32, MemorySpace.psum)
        for first in range(0, columns, BANK_ELEMS):
            width = min(BANK_ELEMS, columns - first)
            writer.call(
                "nc_matmul", dst=columns_of(copies, first, width), stationary=whole(ones),
                moving=columns_of(row, start + first, width),
            )  # fmt: skip
        writer.call("tensor_copy", dst=columns_of(made, start, columns), src=whole(copies))
