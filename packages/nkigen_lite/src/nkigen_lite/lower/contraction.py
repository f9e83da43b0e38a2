"""Matrices with the contracted axis K on partitions, as TensorE takes both operands."""

from __future__ import annotations

from dataclasses import dataclass

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from nki_dtypes import DType
from nkigen_lite.lower.tiles import parts
from nkigen_lite.lower.writer import Writer

PARTITIONS = 128
BANK_BYTES = 2048
LOAD_BYTES = 8 * 1024
"""Bytes per partition of one DMA: with 128 partitions, 1 MiB."""

BY_DMA_ELEMS = 4096
"""Up to so many elements a DMA that moves them one by one is faster than transposing them."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """(K, X) in HBM: element (k, x) is offset + along_k · k + along_x · x of the buffer."""

    buffer: str
    offset: Affine
    num_k: int
    num_x: int
    along_k: int
    along_x: int
    dtype: DType

    def columns(self, start: Affine, count: int) -> Matrix:
        """`count` of the columns X."""
        offset = self.offset + start * self.along_x
        return Matrix(
            self.buffer, offset, self.num_k, count, self.along_k, self.along_x, self.dtype
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class OnChip:
    """(K, X) in SBUF: chunk c of `main` (128, chunks, X) holds rows 128·c …; `rest` what is left
    of K."""

    main: Buffer | None
    rest: Buffer | None

    @property
    def chunks(self) -> int:
        return self.main.shape[1] if self.main else 0

    def chunk(self, number: Affine, start: Affine, count: int) -> Access:
        """Columns of one chunk of 128 rows of K."""
        assert self.main is not None
        offset = number * self.main.shape[2] + start
        return Access(self.main.name, offset, (PARTITIONS, count), (self.main.row, 1))

    def remainder(self, start: Affine, count: int) -> Access:
        """Columns of the rows of K behind the last full chunk."""
        assert self.rest is not None
        return Access(self.rest.name, start, (self.rest.shape[0], count), (self.rest.row, 1))


def bytes_of(num_k: int, num_x: int, dtype: DType) -> int:
    """Bytes per partition that (K, X) takes on chip."""
    return -(-num_k // PARTITIONS) * num_x * dtype.itemsize


def place(writer: Writer, name: str, num_k: int, num_x: int, dtype: DType) -> OnChip:
    """Room for (K, X)."""
    chunks, left = divmod(num_k, PARTITIONS)
    main = (
        writer.allocate(name, (PARTITIONS, chunks, num_x), dtype, Memory.sbuf) if chunks else None
    )
    rest = writer.allocate(f"{name}_rest", (left, num_x), dtype, Memory.sbuf) if left else None
    return OnChip(main, rest)


def load(writer: Writer, matrix: Matrix, name: str) -> OnChip:
    """The matrix on chip: as it lies where rows of X or few elements are read, else transposed."""
    made = place(writer, name, matrix.num_k, matrix.num_x, matrix.dtype)
    few = matrix.num_k * matrix.num_x <= BY_DMA_ELEMS
    if matrix.along_x == 1 or matrix.along_k != 1 or few:
        _straight(writer, matrix, made)
    else:
        for part in parts(matrix.num_x, PARTITIONS):
            with writer.loop("x", part.tiles) as x:
                start = x * PARTITIONS + part.start
                _transposed(writer, matrix.columns(start, part.size), made, start)
    return made


def _straight(writer: Writer, matrix: Matrix, made: OnChip) -> None:
    x, step = matrix.num_x, matrix.along_k
    each = max(1, min(made.chunks, LOAD_BYTES // (x * matrix.dtype.itemsize)))
    for part in parts(made.chunks, each):
        with writer.loop("k", part.tiles) as k:
            first = k * each + part.start
            assert made.main is not None
            source = Access(
                matrix.buffer, matrix.offset + first * (PARTITIONS * step),
                (PARTITIONS, part.size, x), (step, PARTITIONS * step, matrix.along_x),
            )  # fmt: skip
            shape = (PARTITIONS, part.size, x)
            target = Access(made.main.name, first * x, shape, (made.main.row, x, 1))
            writer.call("dma_copy", dst=target, src=source)
    if made.rest is not None:
        offset = matrix.offset + made.chunks * PARTITIONS * step
        shape = (made.rest.shape[0], x)
        source = Access(matrix.buffer, offset, shape, (step, matrix.along_x))
        writer.call("dma_copy", dst=whole(made.rest), src=source)


def _transposed(writer: Writer, matrix: Matrix, made: OnChip, start: Affine) -> None:
    """X on partitions first, then 128 x 128 at a time over TensorE; one copy empties a bank."""
    rows, count = matrix.num_x, matrix.num_k
    natural = writer.allocate(f"{matrix.buffer}_tile", (rows, count), matrix.dtype, Memory.sbuf)
    source = Access(matrix.buffer, matrix.offset, (rows, count), (matrix.along_x, 1))
    writer.call("dma_copy", dst=whole(natural), src=source)
    each = BANK_BYTES // (PARTITIONS * matrix.dtype.itemsize)
    for part in parts(made.chunks, each):
        with writer.loop("k", part.tiles) as k:
            first = k * each + part.start
            turned = writer.allocate(
                "turned", (PARTITIONS, part.size, rows), matrix.dtype, Memory.psum
            )  # fmt: skip
            for c in range(part.size):
                writer.call(
                    "nc_transpose",
                    dst=Access(turned.name, Affine(c * rows), (PARTITIONS, rows), (turned.row, 1)),
                    data=Access(
                        natural.name, (first + c) * PARTITIONS, (rows, PARTITIONS), (natural.row, 1)
                    ),
                )  # fmt: skip
            assert made.main is not None
            width = made.main.shape[2]
            target = Access(
                made.main.name, first * width + start, (PARTITIONS, part.size, rows),
                (made.main.row, width, 1),
            )  # fmt: skip
            writer.call("tensor_copy", dst=target, src=whole(turned))
    if made.rest is not None:
        left = made.rest.shape[0]
        turned = writer.allocate("turned", (left, rows), matrix.dtype, Memory.psum)
        columns = Affine(made.chunks * PARTITIONS)
        data = Access(natural.name, columns, (rows, left), (natural.row, 1))
        writer.call("nc_transpose", dst=whole(turned), data=data)
        target = Access(made.rest.name, start, (left, rows), (made.rest.row, 1))
        writer.call("tensor_copy", dst=target, src=whole(turned))


def multiply(
    writer: Writer, into: Buffer, stationary: OnChip, rows: tuple[Affine, int], moving: OnChip,
    columns: tuple[Affine, int],
) -> None:  # fmt: skip
    """into (M, N) = Σ over K of stationaryᵀ · moving, in one PSUM bank."""
    if stationary.chunks:
        with writer.loop("k", stationary.chunks) as k:
            writer.call(
                "nc_matmul", dst=whole(into), stationary=stationary.chunk(k, *rows),
                moving=moving.chunk(k, *columns),
            )  # fmt: skip
    if stationary.rest is not None:
        writer.call(
            "nc_matmul", dst=whole(into), stationary=stationary.remainder(*rows),
            moving=moving.remainder(*columns),
        )  # fmt: skip
