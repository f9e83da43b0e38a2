"""Images whose channels come last, as rows of pixels: a DMA moves the pixels of a partition with
all channels, TensorE exchanges pixels and channels.

Each partition has `each` neighbouring pixels of one row of the image; `each` divides its width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS, resolve_target
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.fusion.array_view import ArrayView

EXACT = (float32, bfloat16, float16)
"""Dtypes that TensorE transposes bit for bit."""


def has_channels_last(writer: Writer, view: ArrayView) -> bool:
    """Whether the channels of (N, C, H, W) are neighbours in HBM, pixel after pixel."""
    _, channels, height, width = view.shape
    order = (height * width * channels, 1, width * channels, channels)
    rows = resolve_target(writer.target).generation > 2 and channels > 1 and height <= PARTITIONS
    return rows and view.strides == order and view.dtype in EXACT and view.look is None


@dataclass(frozen=True, slots=True)
class PixelRows:
    """Rows of an image (N, C, H, W) whose channels come last."""

    writer: Writer
    view: ArrayView

    def natural(
        self, image: Affine, channels: tuple[int, int], row: int, rows: int
    ) -> tuple[Buffer, Access]:  # fmt: skip
        """A tile for the pixels of some rows (pixels, each, channels), and their place in HBM."""
        (batch, _, down, along), (first, count) = self.view.strides, channels
        width = self.view.shape[3]
        each = next(n for n in range(1, width + 1) if width % n == 0 and
                    rows * width // n <= PARTITIONS)  # fmt: skip
        shape = (rows * width // each, each, count)
        tile = self.writer.allocate("pixels", shape, self.view.dtype, MemorySpace.sbuf)
        start = image * batch + (self.view.offset + first + row * down)
        return tile, Access(self.view.buffer, start, shape, (each * along, along, 1))

    def banks(
        self, each: int, rows: int, columns: int, data: Callable[[Affine], Access]
    ) -> Iterator[tuple[Affine, int, Buffer]]:  # fmt: skip
        """(first, pixels of a partition, PSUM): as many transposed in a bank as fit."""
        for first, count in self.writer.tiles("bank", each, max(1, BANK_ELEMS // columns)):
            made = self.writer.allocate(
                "transposed", (rows, count * columns), self.view.dtype, MemorySpace.psum
            )
            for n in range(count):
                dst = columns_of(made, n * columns, columns)
                self.writer.call("nc_transpose", dst=dst, data=data(first + n))
            yield first, count, made

    def load(
        self, image: Affine, channels: tuple[int, int], row: int, target: Access
    ) -> None:  # fmt: skip
        """Rows of an image from `row` on as (channels, rows, width) at `target` in SBUF."""
        rows, (_, down, _) = target.shape[1], target.strides
        natural, source = self.natural(image, channels, row, rows)
        self.writer.call("dma_copy", dst=whole(natural), src=source)
        pixels, each, count = natural.shape

        def data(n: Affine) -> Access:
            return Access(natural.name, n * count, (pixels, count), (natural.row, 1))

        for first, several, bank in self.banks(each, count, pixels, data):
            shape = (count, several, rows, pixels // rows)
            dst = Access(target.buffer, target.offset + first, shape,
                         (target.strides[0], 1, down, each))  # fmt: skip
            src = Access(bank.name, Affine(), shape, (bank.row, pixels, pixels // rows, 1))
            self.writer.call("tensor_copy", dst=dst, src=src)

    def store(
        self, image: Affine, channels: tuple[int, int], row: int, rows: int, made: Buffer
    ) -> None:  # fmt: skip
        """Rows of an image from `row` on, from a tile (channels, rows · width)."""
        natural, place = self.natural(image, channels, row, rows)
        pixels, each, count = natural.shape

        def data(n: Affine) -> Access:
            return Access(made.name, n, (count, pixels), (made.row, each))

        for first, several, bank in self.banks(each, pixels, count, data):
            target = columns_of(natural, first * count, several * count)
            self.writer.call("tensor_copy", dst=target, src=whole(bank))
        self.writer.call("dma_copy", dst=place, src=whole(natural))
