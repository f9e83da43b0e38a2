"""Matrices with the contracted axis K on partitions, as TensorE takes both operands.

One DMA loads the matrices of two neighbours in a batch axis; where their contracted axes fit on the
partitions together, both are transposed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_BYTES, PARTITIONS, QUADRANT
from nki_dtypes import DType
from nkigen_lite.codegen.emission.writer import Writer, columns_of, dense
from nkigen_lite.fusion.array_view import ArrayView

COPY_BANKS = 2
"""PSUM banks that one copy empties, so that there is room for the next and for products."""

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
        return replace(self, offset=self.offset + start * self.along_x, num_x=count)

    def terms(self, start: Affine, count: int) -> Matrix:
        """`count` of the rows K."""
        return replace(self, offset=self.offset + start * self.along_k, num_k=count)


@dataclass(frozen=True, slots=True)
class OnChip:
    """(K, X) in SBUF: `chunks` chunks of 128 rows of K in `main` (128, chunks…, X), from chunk
    `first` on; the `left` rows behind them in `rest` (rows…, X), from partition `partition` on."""

    main: Buffer | None
    rest: Buffer | None
    chunks: int
    left: int
    first: int = 0
    partition: int = 0

    def chunk(self, number: Affine, start: Affine, count: int) -> Access:
        """Columns of one chunk of 128 rows of K."""
        assert self.main is not None
        return columns_of(self.main, (number + self.first) * self.main.shape[2] + start, count)

    def chunks_of(self, number: Affine, count: int) -> Access:
        """All columns of some chunks."""
        assert self.main is not None
        if count == 1:
            return self.chunk(number, Affine(), self.main.shape[2])
        (_, _, x), row = self.main.shape, self.main.row
        start = (number + self.first) * x
        return Access(self.main.name, start, (PARTITIONS, count, x), (row, x, 1))

    def remainder(self, start: Affine, count: int) -> Access:
        """Columns of the rows of K behind the last full chunk."""
        assert self.rest is not None
        return columns_of(self.rest, start + self.partition * self.rest.row, count, self.left)


def matrix_of(source: ArrayView, batch: tuple[Affine, ...], transposed: bool) -> Matrix:
    """The last two axes at one place of the batch axes, which broadcast as NumPy's do: axes of one
    element need none."""
    offset = Affine(source.offset)
    count = min(len(batch), len(source.shape) - 2)  # further axes have one element each
    first = len(source.shape) - 2 - count
    for variable, size, stride in zip(
        batch[len(batch) - count :], source.shape[first:-2], source.strides[first:-2], strict=True
    ):
        offset += variable * (stride if size != 1 else 0)
    (rows, columns), (down, along) = source.shape[-2:], source.strides[-2:]
    if transposed:
        return Matrix(source.buffer, offset, columns, rows, along, down, source.dtype)
    return Matrix(source.buffer, offset, rows, columns, down, along, source.dtype)


def bytes_of(num_k: int, num_x: int, dtype: DType) -> int:
    """Bytes per partition that (K, X) takes on chip."""
    return -(-num_k // PARTITIONS) * num_x * dtype.itemsize


def place(writer: Writer, name: str, num_k: int, num_x: int, dtype: DType) -> OnChip:
    """Room for (K, X)."""
    chunks, left = divmod(num_k, PARTITIONS)
    main = (
        writer.allocate(name, (PARTITIONS, chunks, num_x), dtype, MemorySpace.sbuf)
        if chunks
        else None
    )
    rest = writer.allocate(f"{name}_rest", (left, num_x), dtype, MemorySpace.sbuf) if left else None
    return OnChip(main, rest, chunks, left)


def load(writer: Writer, matrix: Matrix, name: str) -> OnChip:
    """The matrix on chip: as it lies where rows of X or few elements are read, else transposed."""
    made = place(writer, name, matrix.num_k, matrix.num_x, matrix.dtype)
    given = writer.buffers[matrix.buffer].space is MemorySpace.hbm
    few = given and matrix.num_k * matrix.num_x <= BY_DMA_ELEMS
    if matrix.along_x == 1 or matrix.along_k != 1 or few:
        _straight(writer, matrix, made)
        return made
    most = LOAD_BYTES // (matrix.num_k * matrix.dtype.itemsize)
    for start, partitions, each in writer.row_tiles("x", matrix.num_x, max(1, most)):
        tile = _rows(writer, matrix.columns(start, partitions * each), partitions, each)
        transpose_rows(writer, tile, made, start, (each, 1))
    return made


def _straight(writer: Writer, matrix: Matrix, made: OnChip) -> None:
    x, step = matrix.num_x, matrix.along_k
    each = max(1, min(made.chunks, LOAD_BYTES // (x * matrix.dtype.itemsize)))
    for first, count in writer.tiles("k", made.chunks, each):
        assert made.main is not None
        shape = (PARTITIONS, count, x)
        source = Access(
            matrix.buffer, matrix.offset + first * (PARTITIONS * step), shape,
            (step, PARTITIONS * step, matrix.along_x),
        )  # fmt: skip
        target = Access(made.main.name, first * x, shape, (made.main.row, x, 1))
        writer.call("dma_copy", dst=target, src=source)
    if made.rest is not None:
        offset = matrix.offset + made.chunks * PARTITIONS * step
        shape = (made.left, x)
        source = Access(matrix.buffer, offset, shape, (step, matrix.along_x))
        writer.call("dma_copy", dst=whole(made.rest), src=source)


def _rows(writer: Writer, matrix: Matrix, partitions: int, each: int) -> Access:
    """Columns X of the matrix as rows in SBUF, (P, T, K): `each` neighbours in every partition."""
    shape = (partitions, each, matrix.num_k)
    tile = writer.allocate(f"{matrix.buffer}_tile", shape, matrix.dtype, MemorySpace.sbuf)
    step = matrix.along_x
    source = Access(matrix.buffer, matrix.offset, shape, (each * step, step, 1))
    writer.call("dma_copy", dst=whole(tile), src=source)
    return whole(tile)


def transpose_rows(
    writer: Writer, rows: Access, made: OnChip, start: Affine, steps: tuple[int, int]
) -> None:
    """Rows (P, T, K) in SBUF with K on partitions instead: [p, t, k] becomes column
    start + p · steps[0] + t · steps[1] of row k.

    TensorE transposes 128 x 128 at a time; one copy empties up to two banks.
    """
    each = rows.shape[1]
    dtype = writer.buffers[rows.buffer].dtype
    most = COPY_BANKS * BANK_BYTES // (PARTITIONS * dtype.itemsize)
    at_once = min(each, max(1, most // max(1, made.chunks)))
    for first, count in writer.tiles("t", each, at_once):
        transposer = _Transposer(writer, rows, first, count, start + first * steps[1], steps)
        for chunk, chunks in writer.tiles("k", made.chunks, max(1, most // count)):
            assert made.main is not None
            transposer.transpose(made.main, chunk, chunks, PARTITIONS)
        if made.rest is not None:
            transposer.transpose(made.rest, Affine(made.chunks), 1, made.left)


@dataclass(frozen=True, slots=True)
class _Transposer:
    """Transposes rows `first` … of each partition into columns from `start` on."""

    writer: Writer
    rows: Access
    first: Affine
    count: int
    start: Affine
    steps: tuple[int, int]

    def transpose(self, into: Buffer, chunk: Affine, chunks: int, height: int) -> None:
        """`height` rows of K from each of `chunks` chunks, side by side in PSUM, then out."""
        partitions = self.rows.shape[0]
        down, along, step = self.rows.strides
        shape = (height, chunks * self.count, PARTITIONS)
        dtype = self.writer.buffers[self.rows.buffer].dtype
        transposed = self.writer.allocate("transposed", shape, dtype, MemorySpace.psum)
        for piece in range(chunks * self.count):
            c, t = divmod(piece, self.count)
            start = (self.first + t) * along + (chunk + c) * PARTITIONS * step
            self.writer.call(
                "nc_transpose", dst=columns_of(transposed, piece * PARTITIONS, partitions),
                data=Access(
                    self.rows.buffer, self.rows.offset + start, (partitions, height), (down, step)
                ),
            )  # fmt: skip
        width = into.shape[-1]
        offset = self.start if len(into.shape) == 2 else chunk * width + self.start
        sizes = (height, chunks, self.count, partitions)
        source = (transposed.row, self.count * PARTITIONS, PARTITIONS, 1)
        target = (into.row, width, self.steps[1], self.steps[0])
        dst = Access(into.name, offset, sizes, target)
        src = Access(transposed.name, Affine(), sizes, source)
        self.writer.call("tensor_copy", **dense(dst=dst, src=src))


def multiply(
    writer: Writer, into: Access, stationary: OnChip, rows: tuple[Affine, int], moving: OnChip,
    columns: tuple[Affine, int],
) -> None:  # fmt: skip
    """into (M, N) = Σ over K of stationaryᵀ · moving, in one PSUM bank."""
    if stationary.chunks:
        with writer.loop("k", stationary.chunks) as k:
            writer.call(
                "nc_matmul", dst=into, stationary=stationary.chunk(k, *rows),
                moving=moving.chunk(k, *columns),
            )  # fmt: skip
    if stationary.rest is not None:
        writer.call(
            "nc_matmul", dst=into, stationary=stationary.remainder(*rows),
            moving=moving.remainder(*columns),
        )  # fmt: skip


SECOND_STARTS = (QUADRANT, 2 * QUADRANT)
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
    if matrix.along_k == 1 and matrix.num_k in SECOND_STARTS:
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
    for start, partitions, each in writer.row_tiles("x", matrix.num_x, most):
        shape, along = (partitions, each, both), matrix.along_x
        tile = writer.allocate(f"{matrix.buffer}_tile", shape, matrix.dtype, MemorySpace.sbuf)
        source = Access(
            matrix.buffer, matrix.offset + start * along, (partitions, each, 2, matrix.num_k),
            (each * along, along, step, 1),
        )  # fmt: skip
        target = Access(tile.name, Affine(), source.shape, (tile.row, both, matrix.num_k, 1))
        writer.call("dma_copy", dst=target, src=source)
        transpose_rows(writer, whole(tile), made, start, order(partitions, each))
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
    made = writer.allocate(name, shape, matrix.dtype, MemorySpace.sbuf)
    down = matrix.along_k
    source = Access(
        matrix.buffer, matrix.offset, (PARTITIONS, 2, chunks, x),
        (down, step, PARTITIONS * down, 1),
    )  # fmt: skip
    target = Access(made.name, Affine(), source.shape, (made.row, chunks * x, x, 1))
    writer.call("dma_copy", dst=target, src=source)
    return OnChip(made, None, chunks, 0), OnChip(made, None, chunks, 0, first=chunks)
