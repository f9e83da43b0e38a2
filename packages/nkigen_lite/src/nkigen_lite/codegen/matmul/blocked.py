"""Blocked products of matrices, accumulated in PSUM, with what is done to the results there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS, resolve_target
from nki_dtypes import DType, float32
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.loop_nests.tiles import Tile, Tiles
from nkigen_lite.codegen.matmul.batched import write_batches
from nkigen_lite.codegen.matmul.operand_tiles import (
    LOAD_BYTES,
    Matrix,
    OnChip,
    bytes_of,
    load,
    matrix_of,
    multiply,
    place,
)
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.ir import Node
from nkigen_lite.selection.unsupported import unsupported

PLACES = 2
"""What is loaded or stored in a loop needs room twice, so that transfers and work overlap."""

LONG_TERMS, LONG_BANKS = 1024, 6
"""Where both matrices come by: terms at a time, and PSUM banks for the sums."""

RESULT_BYTES = 4 * 1024
"""Room for results, per partition: two banks."""


BankOfProducts = Callable[[Affine, int], dict[str, Access]]
"""(first column, columns) → the products there, in PSUM."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """Operations on the products of a tile: `tiles` writes the steps, on `stored` results."""

    tiles: Tiles
    stored: tuple[str, ...]


class Products:
    """Writes products of one left matrix (M, K) with right ones (K, N).

    `left` is in HBM or already on chip with K on partitions. `outputs` are the results in HBM.
    """

    def __init__(
        self, writer: Writer, nodes: tuple[Node, ...], left: ArrayView | OnChip,
        rights: Mapping[str, ArrayView], outputs: Mapping[str, ArrayView],
        epilogue: Epilogue | None, held: int,
    ) -> None:  # fmt: skip
        self.writer, self.nodes, self.left, self.rights = writer, nodes, left, rights
        self.outputs, self.epilogue = outputs, epilogue
        first = nodes[0].spec.shape
        self.m, self.n = first[-2], first[-1]
        self.k = rights[nodes[0].name].shape[-2]
        self.dtype = rights[nodes[0].name].dtype
        self.free = resolve_target(writer.target).usable_sbuf_bytes - held

    # -- natural: M on partitions -----------------------------------------------------------------

    def write(self) -> None:
        """Results (M, N) in HBM, block by block of N, tile by tile of M; small ones of many batches
        together."""
        if self.epilogue is None and isinstance(self.left, ArrayView) and len(self.nodes) == 1:
            (name,) = self.outputs
            place = (self.left, self.rights[name], self.outputs[name])
            write_batches(self.writer, self.nodes[0], *place, self.one_by_one)
        else:
            self.one_by_one()

    def one_by_one(self) -> None:
        """Every batch with transfers of its own."""
        shape = self.nodes[0].spec.shape[:-2]
        with self.writer.loops("batch", shape) as batch:
            block, sums = self.block(), self.best_sums()
            if block is None and isinstance(self.left, OnChip):
                raise unsupported(
                    self.nodes[0], f"its contracted axis of {self.k} is too long for SBUF"
                )
            if block is None or self.traffic_of_sums(*sums) < self.traffic_of_blocks(block):
                self.write_in_terms(batch, *sums)
                return
            stays = self.left_stays(block)
            kept = self.whole_left(batch) if stays else None
            for start, count in self.writer.tiles("block", self.n, block):
                rights = [self.right(n, batch, start, count) for n in self.nodes]
                self.rows(batch, kept, rights, start, count)

    def block(self) -> int | None:
        """Columns of the right matrices that are on chip at once: all, or what fits twice; None
        where not even 128 fit."""
        each = bytes_of(self.k, 1, self.dtype) * len(self.nodes)
        left = 0 if isinstance(self.left, OnChip) else self.left_bytes(min(self.m, PARTITIONS))
        free = self.free - PLACES * (left + RESULT_BYTES)
        if self.n * each <= free:
            return self.n
        most = free // PLACES // each
        if most < min(self.n, PARTITIONS):
            return None
        return min(self.n, 1 << (most.bit_length() - 1))  # whole banks, loads and stores

    def left_bytes(self, rows: int) -> int:
        """Bytes of rows of the left matrix, as stored and transposed."""
        return bytes_of(self.k, rows, self.dtype) + self.k * self.dtype.itemsize

    def left_stays(self, block: int) -> bool:
        """Whether all of the left matrix is on chip before the first block."""
        if isinstance(self.left, OnChip) or block == self.n:
            return isinstance(self.left, OnChip)
        return bytes_of(self.k, self.m, self.dtype) <= self.left_bytes(min(self.m, PARTITIONS))

    def whole_left(self, batch: tuple[Affine, ...]) -> OnChip:
        if isinstance(self.left, OnChip):
            return self.left
        return load(self.writer, self.left_matrix(batch), "left")

    def left_matrix(self, batch: tuple[Affine, ...]) -> Matrix:
        assert isinstance(self.left, ArrayView)
        return matrix_of(self.left, batch, transposed=True)

    def right(self, node: Node, batch: tuple[Affine, ...], start: Affine, count: int) -> OnChip:
        matrix = matrix_of(self.rights[node.name], batch, transposed=False)
        return load(self.writer, matrix.columns(start, count), "right")

    def rows(
        self, batch: tuple[Affine, ...], kept: OnChip | None, rights: list[OnChip], start: Affine,
        columns: int,
    ) -> None:  # fmt: skip
        wide = LOAD_BYTES // float32.itemsize // BANK_ELEMS * BANK_ELEMS  # of one store
        for first, count in self.writer.tiles("row", self.m, PARTITIONS):
            left, at = kept, first
            if left is None:
                matrix = self.left_matrix(batch).columns(first, count)
                left, at = load(self.writer, matrix, "left"), Affine()
            for inner, width in self.writer.tiles("part", columns, min(columns, wide)):
                products = self.products((left, at), rights, count, inner)
                self.results(batch, products, (first, count), (start + inner, width))

    def traffic_of_blocks(self, block: int) -> int:
        """Bytes read where right matrices come in blocks of columns, and the left one for each."""
        if isinstance(self.left, OnChip):
            return 0
        times = 1 if self.left_stays(block) else -(-self.n // block)
        return (self.m * times + self.n * len(self.nodes)) * self.k * self.dtype.itemsize

    def traffic_of_sums(self, rows: int, columns: int) -> int:
        """Bytes read where `rows` x `columns` sums wait in PSUM and both matrices come by."""
        left = self.m * -(-self.n // columns)
        right = self.n * len(self.nodes) * -(-self.m // rows)
        return (left + right) * self.k * self.dtype.itemsize

    def best_sums(self) -> tuple[int, int]:
        """Rows and columns of sums with the least traffic."""
        most = max(1, LONG_BANKS // len(self.nodes))
        shapes = [
            (min(self.m, r * PARTITIONS), min(self.n, most // r * BANK_ELEMS))
            for r in range(1, most + 1)
        ]
        return min(shapes, key=lambda shape: self.traffic_of_sums(*shape))

    def write_in_terms(self, batch: tuple[Affine, ...], rows: int, columns: int) -> None:
        """Blocks of results that stay in PSUM while their terms come by, some of K at a time."""
        for down in self.writer.tiles("row", self.m, rows):
            for across in self.writer.tiles("block", self.n, columns):
                self.terms(batch, down, across)

    def terms(
        self, batch: tuple[Affine, ...], rows: tuple[Affine, int], columns: tuple[Affine, int]
    ) -> None:
        """One block of results: all its terms, then stored."""
        writer, banks = self.writer, -(-columns[1] // BANK_ELEMS)
        tiles = [
            (p.start + t * p.size, p.size)
            for p in parts(rows[1], PARTITIONS)
            for t in range(p.tiles)
        ]
        sums = {
            (node.name, start): writer.allocate(
                "product", (size, banks * BANK_ELEMS), float32, MemorySpace.psum, node.origin
            )
            for node in self.nodes
            for start, size in tiles
        }
        for k in writer.tiles("term", self.k, LONG_TERMS):
            left = load(writer, self.left_matrix(batch).columns(*rows).terms(*k), "left")
            for node in self.nodes:
                matrix = matrix_of(self.rights[node.name], batch, transposed=False)
                right = load(writer, matrix.columns(*columns).terms(*k), "right")
                for start, size in tiles:
                    into, mine = sums[node.name, start], (Affine(start), size)
                    for at, width in writer.tiles("bank", columns[1], BANK_ELEMS):
                        target = columns_of(into, at, width)
                        multiply(writer, target, left, mine, right, (at, width))
        for start, size in tiles:

            def products(at: Affine, width: int, start: int = start) -> dict[str, Access]:
                return {n.name: columns_of(sums[n.name, start], at, width) for n in self.nodes}

            self.results(batch, products, (rows[0] + start, size), columns)

    def results(
        self, batch: tuple[Affine, ...], products: BankOfProducts, rows: tuple[Affine, int],
        columns: tuple[Affine, int],
    ) -> None:  # fmt: skip
        """One row of results: bank by bank into a tile, then stored."""
        writer, (start, width) = self.writer, columns
        names = self.epilogue.stored if self.epilogue else (self.nodes[0].name,)
        made = {
            name: writer.allocate(
                f"{self.outputs[name].buffer}_tile", (rows[1], width), self.outputs[name].dtype,
                MemorySpace.sbuf,
            )
            for name in names
        }  # fmt: skip
        for at, count in writer.tiles("bank", width, BANK_ELEMS):
            targets = {name: columns_of(t, at, count) for name, t in made.items()}
            tile = Tile(rows[0], rows[1], 1, start + at, count, batch)
            self.finish(products(at, count), targets, tile)
        for name, tile_of in made.items():
            output = self.outputs[name]
            offset = Affine(output.offset) + rows[0] * output.strides[-2]
            offset += start * output.strides[-1]
            for variable, stride in zip(batch, output.strides, strict=False):
                offset += variable * stride
            shape = (rows[1], width)
            target = Access(output.buffer, offset, shape, output.strides[-2:])
            writer.call("dma_copy", self.nodes[0].origin, dst=target, src=whole(tile_of))

    def products(
        self, left: tuple[OnChip, Affine], rights: list[OnChip], rows: int, inner: Affine
    ) -> BankOfProducts:
        """The writer of a bank of each product, `inner` columns into the right matrices."""

        def made(at: Affine, width: int) -> dict[str, Access]:
            found: dict[str, Access] = {}
            for node, right in zip(self.nodes, rights, strict=True):
                shape = (rows, width)
                name = self.writer.names.get(node.name, "product")
                into = self.writer.allocate(name, shape, float32, MemorySpace.psum, node.origin)
                columns = (inner + at, width)
                multiply(self.writer, whole(into), left[0], (left[1], rows), right, columns)
                found[node.name] = whole(into)
            return found

        return made

    def finish(self, values: Mapping[str, Access], targets: Mapping[str, Access], at: Tile) -> None:
        """The products of one tile through the epilogue, or only out of PSUM."""
        if self.epilogue is None:
            ((name, source),) = values.items()
            self.writer.call("tensor_copy", dst=targets[name], src=source)
            return
        self.epilogue.tiles.bound = {**values, **targets}
        self.epilogue.tiles.tile(at)

    # -- transposed: N on partitions, kept --------------------------------------------------------

    def keep(self, name: str, dtype: DType) -> OnChip:
        """The epilogue's result with its columns on partitions, in SBUF."""
        writer = self.writer
        made = place(writer, "kept", self.n, self.m, dtype)
        left = self.whole_left(())
        each = bytes_of(self.k, 1, self.dtype)
        block = max(1, LOAD_BYTES // each // PARTITIONS) * PARTITIONS
        full = self.n // PARTITIONS * PARTITIONS
        for part in parts(full, block):
            with writer.loop("block", part.tiles) as b:
                start = b * block + part.start
                rights = [self.right(n, (), start, part.size) for n in self.nodes]
                for c, count in writer.tiles("column", part.size // PARTITIONS, self.at_once()):
                    inner = c * PARTITIONS
                    chunk = b * (block // PARTITIONS) + part.start // PARTITIONS + c
                    target = made.chunks_of(chunk, count)
                    at = Tile(start + inner, PARTITIONS, count, Affine(), self.m, ())
                    self.column(name, left, rights, inner, at, target)
        if made.rest is not None:
            start = Affine(full)
            rights = [self.right(n, (), start, made.left) for n in self.nodes]
            target = made.remainder(Affine(), self.m)
            at = Tile(start, made.left, 1, Affine(), self.m, ())
            self.column(name, left, rights, Affine(), at, target)
        return made

    def at_once(self) -> int:
        """Blocks of 128 columns that are worked on together: all that a bank takes, where the
        epilogue reads products only."""
        assert self.epilogue is not None
        alone = {n.name for n in self.nodes}.issuperset(self.epilogue.tiles.inputs)
        return max(1, BANK_ELEMS // self.m) if alone else 1

    def column(
        self, name: str, left: OnChip, rights: list[OnChip], inner: Affine, at: Tile,
        target: Access,
    ) -> None:  # fmt: skip
        results: dict[str, Access] = {}
        for node, right in zip(self.nodes, rights, strict=True):
            shape = (at.partitions, *(at.rows,) * (at.rows > 1), self.m)
            called = self.writer.names.get(node.name, "product")
            into = self.writer.allocate(called, shape, float32, MemorySpace.psum, node.origin)
            for number in range(at.rows):
                bank = columns_of(into, number * self.m, self.m)
                columns = (inner + number * PARTITIONS, at.partitions)
                multiply(self.writer, bank, right, columns, left, (Affine(), self.m))
            results[node.name] = whole(into)
        self.finish(results, {name: target}, at)
