"""Convolutions: products over windows of an image in SBUF, never an array of windows in HBM.

Channels are on partitions. TensorE takes a window of the image for each element of the kernel, with
the strides of an access pattern, and adds all of them up in PSUM; where every channel has its own
kernel, VectorE does. Large images come in bands of rows.

Images whose channels come last, as rows of pixels: a DMA moves the pixels of a partition with
all channels, TensorE exchanges pixels and channels.

Each partition has `each` neighbouring pixels of one row of the image; `each` divides its width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS, resolve_target
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.movement.indirect import Rows, dense_rows, into_rows
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.ir import Node

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


BAND_BYTES = 48 * 1024
"""Bytes of a partition for the rows of an image that are on chip at once."""
KERNEL_BYTES = 64 * 1024
"""Bytes of a partition for the kernels that are on chip at once."""


@dataclass(frozen=True, slots=True)
class Band:
    """`rows` rows of the result from `first` on, and what they need of an image."""

    first: int
    rows: int


def _tiles(size: int, most: int = PARTITIONS) -> list[tuple[int, int]]:
    """(first, count) of every tile."""
    return [(p.start + t * p.size, p.size) for p in parts(size, most) for t in range(p.tiles)]


@dataclass(frozen=True)
class Geometry:
    """Sizes of one convolution of images (N, C, H, W), and where its windows are."""

    image: tuple[int, ...]
    kernel: tuple[int, int]
    out: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    itemsize: int

    @cached_property
    def taps(self) -> list[tuple[int, int]]:
        height, width = self.kernel
        return list(product(range(height), range(width)))

    def span(self, axis: int, count: int) -> int:
        """Elements of an axis, padding among them, that `count` places of the kernel read."""
        reach = (self.kernel[axis] - 1) * self.dilation[axis]
        return (count - 1) * self.strides[axis] + reach + 1

    @cached_property
    def width(self) -> int:
        """Elements of a row on chip."""
        return self.span(1, self.out[3])

    def bands(self, channel_tiles: int) -> list[Band]:
        """The rows of the result, as many at a time as fit."""
        most = BAND_BYTES // (self.itemsize * self.width * channel_tiles)
        rows = max(1, (most - self.span(0, 1)) // self.strides[0] + 1)
        return [Band(*tile) for tile in _tiles(self.out[2], rows)]

    def valid(self, axis: int, first: int, count: int) -> tuple[int, int]:
        """(low, high): the elements of a tile that are in the image, not in the padding; the tile
        begins with what place `first` of the kernel reads."""
        start = first * self.strides[axis] - self.padding[2 * axis]
        span = self.span(axis, count)
        return min(max(0, -start), span), max(0, min(span, self.image[2 + axis] - start))

    def blocks(self, writer: Writer, rows: int) -> Iterator[tuple[Affine, int, Affine, int]]:
        """(row, rows, column, columns) of the places whose sums fit into a bank."""
        for column, width in writer.tiles("column", self.out[3], BANK_ELEMS):
            yield from (
                (row, count, column, width)
                for row, count in writer.tiles("row", rows, BANK_ELEMS // width)
            )

    def window(
        self, tile: Buffer, tap: tuple[int, int], block: tuple[Affine, int, Affine, int]
    ) -> Access:  # fmt: skip
        """The factor of one element of the kernel, at a block of places."""
        row, rows, column, columns = block
        (y, x), (down, along) = tap, self.strides
        start = (row * down + y * self.dilation[0]) * self.width
        start += column * along + x * self.dilation[1]
        steps = (tile.row, down * self.width, along)
        return Access(tile.name, start, (tile.shape[0], rows, columns), steps)

    def result(self, tile: Buffer, block: tuple[Affine, int, Affine, int]) -> Access:
        """The same places of the result."""
        row, rows, column, columns = block
        strides = (tile.row, self.out[3], 1)
        shape = (tile.shape[0], rows, columns)
        return Access(tile.name, row * self.out[3] + column, shape, strides)


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution: operands and result as rows of one channel each."""

    writer: Writer
    sizes: Geometry
    x: Rows | PixelRows
    w: Rows
    bias: Rows
    to: Rows | PixelRows

    def sbuf(self, name: str, *shape: int, of: Rows | PixelRows) -> Buffer:
        return self.writer.allocate(name, shape, of.view.dtype, MemorySpace.sbuf)

    def load(self, image: Affine, channels: tuple[int, int], band: Band) -> Buffer:
        """The rows of an image that a band needs, zeros around it."""
        sizes, (first, count) = self.sizes, channels
        height = sizes.span(0, band.rows)
        tile = self.sbuf("image_rows", count, height * sizes.width, of=self.x)
        top, bottom = sizes.valid(0, band.first, band.rows)
        left, right = sizes.valid(1, 0, sizes.out[3])
        if (bottom - top, right - left) != (height, sizes.width):
            self.writer.call("memset", dst=whole(tile), value=0.0)
        if bottom <= top or right <= left:
            return tile
        _, channel_count, _, width = sizes.image
        row = band.first * sizes.strides[0] - sizes.padding[0] + top
        column = left - sizes.padding[2]
        shape = (count, bottom - top, right - left)
        dst = Access(
            tile.name, Affine(top * sizes.width + left), shape, (tile.row, sizes.width, 1)
        )  # fmt: skip
        if isinstance(self.x, PixelRows):
            self.x.load(image, channels, row, dst)
            return tile
        start = (image * channel_count + first) * self.x.width + row * width + column
        view = self.x.view
        src = Access(view.buffer, start + view.offset, shape, (self.x.width, width, 1), view.look)
        self.writer.call("dma_copy", dst=dst, src=src)
        return tile

    def rows_of(self, rows: Rows, channels: tuple[int, int], name: str) -> Buffer:
        """Kernels or biases of some channels."""
        first, count = channels
        tile = self.sbuf(name, count, rows.width, of=rows)
        src = rows.at(first, count, 0, rows.width)
        self.writer.call("dma_copy", dst=whole(tile), src=src)
        return tile

    def store(self, tile: Buffer, image: Affine, channels: tuple[int, int], band: Band) -> None:
        first, count = channels
        columns = self.sizes.out[3]
        if isinstance(self.to, PixelRows):
            self.to.store(image, channels, band.first, band.rows, tile)
            return
        place = image * self.sizes.out[1] + first
        dst = self.to.at(place, count, band.first * columns, band.rows * columns)
        self.writer.call("dma_copy", dst=dst, src=whole(tile))

    # -- channels together ----------------------------------------------------------------

    def write(self) -> None:
        inputs, taps = _tiles(self.sizes.image[1]), len(self.sizes.taps)
        each = self.sizes.itemsize * taps * len(inputs) * PARTITIONS
        at_once = max(1, KERNEL_BYTES // each) * PARTITIONS
        for first, count in _tiles(self.sizes.out[1], at_once):
            outputs = [(first + o, n) for o, n in _tiles(count)]
            kernels = [self.kernels(out, inputs) for out in outputs]
            biases = [self.rows_of(self.bias, out, "bias") for out in outputs]
            with self.writer.loop("image", self.sizes.image[0]) as image:
                for band in self.sizes.bands(len(inputs)):
                    images = [self.load(image, c, band) for c in inputs]
                    for each_of in zip(outputs, kernels, biases, strict=True):
                        self.band(image, band, images, *each_of)

    def kernels(
        self, outputs: tuple[int, int], inputs: list[tuple[int, int]]
    ) -> list[Buffer]:  # fmt: skip
        """For each tile of input channels (C, taps · O): the kernels, input channels on
        partitions."""
        taps, (_, count) = len(self.sizes.taps), outputs
        natural = self.rows_of(self.w, outputs, "kernels")
        made = []
        for first, channels in inputs:
            tile = self.sbuf("kernels_by_input", channels, taps * count, of=self.w)
            for start, several in _tiles(taps, BANK_ELEMS // count):
                bank = self.writer.allocate(
                    "transposed", (channels, several * count), self.w.view.dtype, MemorySpace.psum
                )
                for tap in range(several):
                    data = Access(
                        natural.name, Affine(first * taps + start + tap), (count, channels),
                        (natural.row, taps),
                    )  # fmt: skip
                    dst = columns_of(bank, tap * count, count)
                    self.writer.call("nc_transpose", dst=dst, data=data)
                target = columns_of(tile, start * count, several * count)
                self.writer.call("tensor_copy", dst=target, src=whole(bank))
            made.append(tile)
        return made

    def band(
        self, image: Affine, band: Band, images: list[Buffer], outputs: tuple[int, int],
        kernels: list[Buffer], bias: Buffer,
    ) -> None:  # fmt: skip
        count = outputs[1]
        made = self.sbuf("made", count, band.rows * self.sizes.out[3], of=self.to)
        for block in self.sizes.blocks(self.writer, band.rows):
            _, rows, _, columns = block
            sums = self.writer.allocate("sums", (count, rows, columns), float32, MemorySpace.psum)
            for tile, kernel in zip(images, kernels, strict=True):
                for number, tap in enumerate(self.sizes.taps):
                    self.writer.call(
                        "nc_matmul", dst=whole(sums),
                        stationary=columns_of(kernel, number * count, count),
                        moving=self.sizes.window(tile, tap, block),
                    )  # fmt: skip
            dst = self.sizes.result(made, block)
            self.writer.call(
                "tensor_scalar", dst=dst, data=whole(sums), op0="add", operand0=whole(bias)
            )
        self.store(made, image, outputs, band)

    # -- every channel on its own ---------------------------------------------------------

    def write_depthwise(self) -> None:
        for channels in _tiles(self.sizes.image[1]):
            kernel = self.rows_of(self.w, channels, "kernels")
            bias = self.rows_of(self.bias, channels, "bias")
            with self.writer.loop("image", self.sizes.image[0]) as image:
                for band in self.sizes.bands(2):  # the sums beside the image
                    tile = self.load(image, channels, band)
                    self.store(self.sums(tile, kernel, bias, band), image, channels, band)

    def sums(self, tile: Buffer, kernel: Buffer, bias: Buffer, band: Band) -> Buffer:
        """bias + Σ kernel · window, in float32."""
        size = (tile.shape[0], band.rows * self.sizes.out[3])
        sums = self.writer.allocate("sums", size, float32, MemorySpace.sbuf)
        made = sums if self.to.view.dtype is float32 else self.sbuf("made", *size, of=self.to)
        block = (Affine(), band.rows, Affine(), self.sizes.out[3])
        for number, tap in enumerate(self.sizes.taps):
            last = number + 1 == len(self.sizes.taps)
            fields = {
                "dst": self.sizes.result(made if last else sums, block),
                "data": self.sizes.window(tile, tap, block),
                "operand0": columns_of(kernel, number, 1), "op0": "multiply", "op1": "add",
            }  # fmt: skip
            if number:
                before = self.sizes.result(sums, block)
                self.writer.call("scalar_tensor_tensor", operand1=before, **fields)
            else:
                self.writer.call("tensor_scalar", operand1=whole(bias), **fields)
        return made


def write_convolution(
    writer: Writer, node: Node, places: Mapping[str, ArrayView], sources: Sequence[ArrayView]
) -> None:  # fmt: skip
    """Images by kernels, with what is added to each channel."""
    image, kernel = sources[0].shape, sources[1].shape
    sizes = Geometry(
        image, (kernel[-2], kernel[-1]), node.spec.shape, **node.attrs,
        itemsize=sources[0].dtype.itemsize,
    )  # fmt: skip
    w, bias = (dense_rows(writer, s, 1) for s in sources[1:])
    left, right = sizes.valid(1, 0, sizes.out[3])
    x = _pixel_rows(writer, sources[0]) if right - left == image[3] else None
    x = x or dense_rows(writer, sources[0], 2)

    def write(to: Rows | PixelRows) -> None:
        made = Convolution(writer, sizes, x, w, bias, to)
        if node.op == "depthwise_convolution":
            made.write_depthwise()
        else:
            made.write()

    assert prod(node.spec.shape), "a convolution without elements"
    to = _pixel_rows(writer, places[node.op])
    if to is None:
        into_rows(writer, places[node.op], 2, write)
    else:
        write(to)


def _pixel_rows(writer: Writer, view: ArrayView) -> PixelRows | None:
    return PixelRows(writer, view) if has_channels_last(writer, view) else None
