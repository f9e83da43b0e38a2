"""Accumulators of reductions: on VectorE element by element, or in PSUM by products with ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nki_dtypes import DType, bfloat16, float16, float32
from nkigen_lite.codegen.emission.axis_tiling import AxisTiles, parts
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.loop_nests.tiles import DIRECT, Tile, Tiles
from nkigen_lite.fusion.groups import End
from nkigen_lite.ir import Node
from nkigen_lite.legalization.reduction_splitting import ROUNDED
from nkigen_lite.selection.engine_operations import REDUCTIONS
from nkigen_lite.selection.unsupported import unsupported


class OuterReduction:
    """One group that ends in such reductions, `ends`; `outputs` are stored tile by tile.

    The accumulation decides where the sums of tiles are kept; it is the only part that differs
    between the candidates on partitions.
    """

    def __init__(
        self, tiles: Tiles, outputs: frozenset[str], ends: list[End],
        numbers: Mapping[str, float], accumulation: Accumulation,
    ) -> None:  # fmt: skip
        self.tiles, self.writer, self.fit = tiles, tiles.writer, tiles.fit
        self.outputs, self.ends, self.numbers = outputs, ends, numbers
        self.accumulation = accumulation
        self.sums: dict[str, Buffer] = {}
        self.ones: dict[DType, Buffer] = {}
        self.is_first = True
        tiles.transfers = self

    # -- tiles ------------------------------------------------------------------------------------

    def load(self, tiles: Tiles, value: str, at: Tile) -> None:
        """The value's tile, by one DMA."""
        DIRECT.load(tiles, value, at)

    def store(self, tiles: Tiles, name: str, value: str, at: Tile) -> None:
        """An output to its array, a reduced value to its accumulators."""
        if name in self.outputs:
            DIRECT.store(tiles, name, value, at)
        for end in self.ends:
            if end.node.operands[0] == name:
                self.accumulation.add(self, end.node, tiles.on_chip(value, at), at)

    def ones_of(self, dtype: DType) -> Buffer:
        """A column of ones on all partitions, written once."""
        if dtype not in self.ones:
            self.ones[dtype] = self.writer.allocate(
                "ones", (PARTITIONS, 1), dtype, MemorySpace.sbuf
            )
            self.writer.call("memset", dst=whole(self.ones[dtype]), value=1.0)
        return self.ones[dtype]

    def accumulator_dtype(self, node: Node) -> DType:
        """Sums and products are accumulated in float32."""
        return float32 if node.op in ROUNDED else self.fit.dtypes[node.operands[0]]

    def result(self, end: End, total: Buffer) -> Buffer:
        """The value that leaves the group, of the total: scaled and rounded, in SBUF."""
        node, dtype = end.value, end.value.spec.dtype
        scales = [self.numbers[o] for n in end.after for o in n.operands if o in self.numbers]
        if not scales and total.dtype is dtype and total.space is MemorySpace.sbuf:
            return total
        made = self.writer.allocate(end.node.op, total.shape, dtype, MemorySpace.sbuf, node.origin)
        if scales:
            self.writer.call(
                "tensor_scalar", node.origin, dst=whole(made), data=whole(total),
                operand0=scales[0], op0="multiply",
            )  # fmt: skip
        else:
            self.writer.call("tensor_copy", node.origin, dst=whole(made), src=whole(total))
        return made

    def store_result(self, end: End, total: Buffer, at: Tile) -> None:
        """The result of a total in its array."""
        made = self.result(end, total)
        place = self.tiles.in_hbm(end.value.name, at)
        self.writer.call("dma_copy", dst=place, src=whole(made))


@dataclass(frozen=True, slots=True)
class Accumulation:
    """How the tiles of a reduction are added up.

    `prepare(reduction)` writes what all tiles need, `start(reduction, partitions, rows, columns)`
    allocates accumulators, `add(reduction, node, tile, at)` adds one tile, `finish(reduction, end,
    at)` reduces an accumulator over partitions and stores it.
    """

    prepare: Callable[[OuterReduction], None]
    start: Callable[[OuterReduction, int, int, int], None]
    add: Callable[[OuterReduction, Node, Access, Tile], None]
    finish: Callable[[OuterReduction, End, Tile], None]


# -- element by element on VectorE ----------------------------------------------------------------


def _ones_for_sums(reduction: OuterReduction) -> None:
    if any(e.node.op == "sum" for e in reduction.ends):
        reduction.ones_of(float32)


def _start_in_sbuf(reduction: OuterReduction, partitions: int, rows: int, columns: int) -> None:
    """New accumulators; the first tile fills them."""
    reduction.is_first = True
    for node in (e.node for e in reduction.ends):
        shape = (partitions, rows, columns) if rows > 1 else (partitions, columns)
        reduction.sums[node.name] = reduction.writer.allocate(
            f"{REDUCTIONS[node.op]}_over_tiles", shape, reduction.accumulator_dtype(node),
            MemorySpace.sbuf, node.origin,
        )  # fmt: skip


def _add_elements(reduction: OuterReduction, node: Node, tile: Access, at: Tile) -> None:
    total = reduction.sums[node.name]
    strides = (total.row, at.columns, 1) if at.rows > 1 else (total.row, 1)
    target = Access(total.name, Affine(), tile.shape, strides)
    if reduction.is_first:
        reduction.writer.call("tensor_copy", node.origin, dst=target, src=tile)
    else:
        reduction.writer.call(
            "tensor_tensor", node.origin, dst=target, data1=target, data2=tile,
            op=REDUCTIONS[node.op],
        )  # fmt: skip


def _finish_over_partitions(reduction: OuterReduction, end: End, at: Tile) -> None:
    """A product with ones for sums, transposes and reductions of rows for others."""
    node, writer = end.node, reduction.writer
    total = _one_row_each(reduction, node, reduction.sums[node.name])
    if node.op == "sum":
        into = writer.allocate("total", (1, at.columns), float32, MemorySpace.psum, node.origin)
        multiply_by_ones(writer, node, into, reduction.ones_of(float32), whole(total))
        reduction.store_result(end, into, at)
    else:
        _by_transposes(reduction, end, total, at)


def _one_row_each(reduction: OuterReduction, node: Node, total: Buffer) -> Buffer:
    """The rows of each partition reduced to one."""
    if len(total.shape) == 2:
        return total
    partitions, rows, columns = total.shape
    made = reduction.writer.allocate(
        f"{REDUCTIONS[node.op]}_of_rows", (partitions, columns), total.dtype, MemorySpace.sbuf,
        node.origin,
    )  # fmt: skip
    transposed = Access(
        total.name, Affine(), (partitions, columns, rows), (total.row, 1, columns)
    )  # fmt: skip
    reduction.writer.call(
        "tensor_reduce", node.origin, dst=whole(made), data=transposed, op=REDUCTIONS[node.op],
        axis=(2,),
    )  # fmt: skip
    return made


def _by_transposes(reduction: OuterReduction, end: End, total: Buffer, at: Tile) -> None:
    """128 columns at a time on partitions, then each reduced to one number."""
    node, columns = end.node, total.shape[1]
    each = BANK_ELEMS * 4 // total.dtype.itemsize // PARTITIONS
    for part in parts(columns, PARTITIONS):
        made = reduction.writer.allocate(
            f"{REDUCTIONS[node.op]}_of_columns", (part.size, part.tiles), total.dtype,
            MemorySpace.sbuf, node.origin,
        )  # fmt: skip
        for first, count in reduction.writer.tiles("bank", part.tiles, each):
            _transposed(reduction, node, total, made, first, count, part)
        made = reduction.result(end, made)
        place = reduction.tiles.in_hbm(end.value.name, at)
        step = place.strides[-1]
        target = Access(
            place.buffer, place.offset + part.start * step, made.shape,
            (step, PARTITIONS * step),
        )  # fmt: skip
        reduction.writer.call("dma_copy", dst=target, src=whole(made))


def _transposed(
    reduction: OuterReduction, node: Node, total: Buffer, made: Buffer, first: Affine, count: int,
    part: AxisTiles,
) -> None:  # fmt: skip
    """`count` blocks of columns through PSUM into as many columns of `made`."""
    partitions = total.shape[0]
    transposed = reduction.writer.allocate(
        "transposed", (part.size, count, partitions), total.dtype, MemorySpace.psum, node.origin
    )  # fmt: skip
    for k in range(count):
        start = (first + k) * part.size + part.start
        reduction.writer.call(
            "nc_transpose", node.origin, dst=columns_of(transposed, k * partitions, partitions),
            data=columns_of(total, start, part.size),
        )  # fmt: skip
    reduction.writer.call(
        "tensor_reduce", node.origin, data=whole(transposed), op=REDUCTIONS[node.op], axis=(2,),
        dst=columns_of(made, first, count),
    )  # fmt: skip


# -- each tile by ones on TensorE -----------------------------------------------------------------


def _ones_of_every_dtype(reduction: OuterReduction) -> None:
    for node in (e.node for e in reduction.ends):
        dtype = reduction.fit.dtypes[node.operands[0]]
        if node.op != "sum" or dtype not in (float32, bfloat16, float16):
            raise unsupported(node, f"{node.op} of {dtype} is not a product with ones")
        reduction.ones_of(dtype)


def _start_in_psum(reduction: OuterReduction, partitions: int, rows: int, columns: int) -> None:
    for node in (e.node for e in reduction.ends):
        reduction.sums[node.name] = reduction.writer.allocate(
            "total", (1, columns), float32, MemorySpace.psum, node.origin
        )


def _add_product(reduction: OuterReduction, node: Node, tile: Access, at: Tile) -> None:
    ones = reduction.ones_of(reduction.fit.dtypes[node.operands[0]])
    for row in range(at.rows):
        shape, strides = (at.partitions, at.columns), (tile.strides[0], 1)
        one_row = Access(tile.buffer, tile.offset + row * at.columns, shape, strides)
        multiply_by_ones(reduction.writer, node, reduction.sums[node.name], ones, one_row)


def _finish_in_psum(reduction: OuterReduction, end: End, at: Tile) -> None:
    reduction.store_result(end, reduction.sums[end.node.name], at)


ON_VECTOR_ENGINE = Accumulation(
    _ones_for_sums, _start_in_sbuf, _add_elements, _finish_over_partitions
)
BY_ONES = Accumulation(_ones_of_every_dtype, _start_in_psum, _add_product, _finish_in_psum)


def multiply_by_ones(
    writer: Writer, node: Node, into: Buffer, ones: Buffer, moving: Access
) -> None:
    """into (1, N) += onesᵀ · moving (P, N), one PSUM bank after the other."""
    partitions, columns = moving.shape
    stationary = Access(ones.name, Affine(), (partitions, 1), (1, 1))
    for at, width in writer.tiles("bank", columns, BANK_ELEMS):
        moved = replace(moving, offset=moving.offset + at, shape=(partitions, width))
        writer.call(
            "nc_matmul", node.origin, dst=columns_of(into, at, width), stationary=stationary,
            moving=moved,
        )  # fmt: skip
