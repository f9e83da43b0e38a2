"""Reductions that leave axes behind the reduced ones: tile by tile into an accumulator.

The reduced axes are a loop that adds up tiles of the kept ones, or lie on partitions, are added up
128 rows at a time and end with one step over partitions: a product with ones for sums, transposes
and a reduction of rows for extremes. Sums are in float32, of n terms within (n - 1) · 2⁻²⁴ of the
sum of their magnitudes, whatever the order; 1.0 · x is exact. GpSimdE's tensor_partition_reduce is
not used: nobody published what it costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import resolve_target
from nki_dtypes import DType, bfloat16, float16, float32
from nkigen_lite.ir import Node
from nkigen_lite.lower.budget import Fit, column_values, fit
from nkigen_lite.lower.groups import End, Group
from nkigen_lite.lower.refuse import cannot
from nkigen_lite.lower.replicate import Replicas, replicas_of
from nkigen_lite.lower.roads import Road, fastest
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.spaces import Axis, Role, Space, solve
from nkigen_lite.lower.splitting import ROUNDED
from nkigen_lite.lower.table import REDUCTIONS
from nkigen_lite.lower.tiles import Part, Tile, Tiles, parts, row_parts
from nkigen_lite.lower.writer import Writer
from nkigen_lite.spec import Spec

PARTITIONS = 128
BANK_ELEMS = 512
BANKS = 4
"""PSUM banks that one result takes; two of these fit."""


class Accumulated(Tiles):
    """Writes one group that ends in such reductions, `ends`; `outputs` are stored tile by tile."""

    def __init__(
        self, writer: Writer, space: Space, fit: Fit, sources: Mapping[str, Source],
        outputs: frozenset[str], replicas: Replicas, ends: list[End], numbers: Mapping[str, float],
    ) -> None:  # fmt: skip
        needed = frozenset(e.node.operands[0] for e in ends)
        super().__init__(writer, space, fit, sources, outputs | needed, replicas)
        self.outputs, self.ends, self.numbers = outputs, ends, numbers
        self.sums: dict[str, Buffer] = {}
        self.is_first = True

    # -- tiles ------------------------------------------------------------------------------------

    def store_as(self, name: str, value: str, at: Tile) -> None:
        if name in self.outputs:
            super().store_as(name, value, at)
        for end in self.ends:
            if end.node.operands[0] == name:
                self.add(end.node, self.on_chip(value, at), at)

    def add(self, node: Node, tile: Access, at: Tile) -> None:
        """One tile more, element by element on VectorE."""
        total = self.sums[node.name]
        strides = (total.row, at.columns, 1) if at.rows > 1 else (total.row, 1)
        target = Access(total.name, Affine(), tile.shape, strides)
        if self.is_first:
            self.writer.call("tensor_copy", node.origin, dst=target, src=tile)
        else:
            self.writer.call(
                "tensor_tensor", node.origin, dst=target, data1=target, data2=tile,
                op=REDUCTIONS[node.op],
            )  # fmt: skip

    def start(self, partitions: int, rows: int, columns: int) -> None:
        """New accumulators; the first tile fills them."""
        self.is_first = True
        for node in (e.node for e in self.ends):
            shape = (partitions, rows, columns) if rows > 1 else (partitions, columns)
            self.sums[node.name] = self.writer.allocate(
                f"{REDUCTIONS[node.op]}_over_tiles", shape, self.held_as(node), Memory.sbuf,
                node.origin,
            )  # fmt: skip

    def held_as(self, node: Node) -> DType:
        """The accumulator's dtype."""
        return float32 if node.op in ROUNDED else self.fit.dtypes[node.operands[0]]

    def result(self, end: End, total: Buffer) -> Buffer:
        """What leaves the group, of the total: scaled and rounded, in SBUF."""
        node, dtype = end.value, end.value.spec.dtype
        scales = [self.numbers[o] for n in end.after for o in n.operands if o in self.numbers]
        if not scales and total.dtype is dtype and total.space is Memory.sbuf:
            return total
        made = self.writer.allocate(end.node.op, total.shape, dtype, Memory.sbuf, node.origin)
        if scales:
            self.writer.call(
                "tensor_scalar", node.origin, dst=whole(made), data=whole(total),
                operand0=scales[0], op0="multiply",
            )  # fmt: skip
        else:
            self.writer.call("tensor_copy", node.origin, dst=whole(made), src=whole(total))
        return made


class InLoop(Accumulated):
    """The reduced axis is a loop: tiles of the kept axes are added up."""

    def run(self) -> None:
        batches = [a for a in self.space.axes if a.role is Role.batch]
        reduced = self.reduced(batches)
        with ExitStack() as stack:
            outer = [
                None if a is reduced else stack.enter_context(self.writer.loop("batch", a.size))
                for a in batches
            ]
            for frame in self.frames():
                self.frame = frame
                for rows, partitions, each in row_parts(frame.rows, self.fit.rows):
                    for columns in parts(frame.columns, self.fit.columns):
                        self.sum_up(outer, reduced.size, rows, (partitions, each), columns)

    def reduced(self, batches: list[Axis]) -> Axis:
        kept = set(self.space.of[self.ends[0].node.name])
        return next(a for a in batches if a.last not in kept)

    def sum_up(
        self, outer: list[Affine | None], count: int, rows: Part, shape: tuple[int, int],
        columns: Part,
    ) -> None:  # fmt: skip
        writer = self.writer
        with writer.loop("tile", rows.tiles) as t, writer.loop("chunk", columns.tiles) as c:
            row, column = t * rows.size + rows.start, c * columns.size + columns.start
            self.start(*shape, columns.size)

            def tile_of(number: Affine) -> Tile:
                batch = tuple(number if v is None else v for v in outer)
                return Tile(row, *shape, column, columns.size, batch)

            self.tile(tile_of(Affine()))
            self.is_first = False
            with writer.loop("term", count - 1) as k:
                self.tile(tile_of(k + 1))
            for end in self.ends:
                made = self.result(end, self.sums[end.node.name])
                place = self.in_hbm(end.value.name, tile_of(Affine()))
                writer.call("dma_copy", dst=place, src=whole(made))


class OnPartitions(Accumulated):
    """The reduced axis lies on partitions."""

    def run(self) -> None:
        batches = [a for a in self.space.axes if a.role is Role.batch]
        self.frame = next(self.frames())
        self.prepare()
        with ExitStack() as stack:
            batch = tuple(stack.enter_context(self.writer.loop("batch", a.size)) for a in batches)
            width = min(self.fit.columns, BANKS * BANK_ELEMS)
            for columns in parts(self.frame.columns, width):
                with self.writer.loop("chunk", columns.tiles) as c:
                    column = c * columns.size + columns.start
                    self.sum_up(batch, column, columns.size)
                    for end in self.ends:
                        self.finish(end, Tile(Affine(), 1, 1, column, columns.size, batch))

    def prepare(self) -> None:
        """What all tiles need."""
        if any(e.node.op == "sum" for e in self.ends):
            self.ones = self.numbers_one(float32)

    def numbers_one(self, dtype: DType) -> Buffer:
        ones = self.writer.allocate("ones", (PARTITIONS, 1), dtype, Memory.sbuf)
        self.writer.call("memset", dst=whole(ones), value=1.0)
        return ones

    def sum_up(self, batch: tuple[Affine, ...], column: Affine, columns: int) -> None:
        """Every row of these columns."""
        for number, (rows, partitions, each) in enumerate(self.row_tiles(columns)):
            if not number:
                self.start(partitions, each, columns)
                self.tile(Tile(Affine(rows.start), partitions, each, column, columns, batch))
                self.is_first = False
                rows = Part(rows.start + rows.size, rows.tiles - 1, rows.size)
            if rows.tiles:
                with self.writer.loop("tile", rows.tiles) as t:
                    row = t * rows.size + rows.start
                    self.tile(Tile(row, partitions, each, column, columns, batch))

    def row_tiles(self, columns: int) -> Iterator[tuple[Part, int, int]]:
        whole_rows = columns == self.frame.columns
        return row_parts(self.frame.rows, self.fit.rows if whole_rows else 1)

    def finish(self, end: End, at: Tile) -> None:
        node = end.node
        total = self.one_row_each(node, self.sums[node.name])
        if node.op == "sum":
            into = self.writer.allocate(
                "total", (1, at.columns), float32, Memory.psum, node.origin
            )  # fmt: skip
            multiply_by_ones(self.writer, node, into, self.ones, whole(total))
            self.leave(end, into, at)
        else:
            self.by_transposes(end, total, at)

    def one_row_each(self, node: Node, total: Buffer) -> Buffer:
        """The rows of each partition reduced to one."""
        if len(total.shape) == 2:
            return total
        partitions, rows, columns = total.shape
        made = self.writer.allocate(
            f"{REDUCTIONS[node.op]}_of_rows", (partitions, columns), total.dtype, Memory.sbuf,
            node.origin,
        )  # fmt: skip
        turned = Access(
            total.name, Affine(), (partitions, columns, rows), (total.row, 1, columns)
        )  # fmt: skip
        self.writer.call(
            "tensor_reduce", node.origin, dst=whole(made), data=turned, op=REDUCTIONS[node.op],
            axis=(2,),
        )  # fmt: skip
        return made

    def leave(self, end: End, total: Buffer, at: Tile) -> None:
        """From one partition of PSUM to HBM."""
        made = self.result(end, total)
        self.writer.call("dma_copy", dst=self.in_hbm(end.value.name, at), src=whole(made))

    def by_transposes(self, end: End, total: Buffer, at: Tile) -> None:
        """128 columns at a time on partitions, then each reduced to one number."""
        node, columns = end.node, total.shape[1]
        each = BANK_ELEMS * 4 // total.dtype.itemsize // PARTITIONS
        for part in parts(columns, PARTITIONS):
            made = self.writer.allocate(
                f"{REDUCTIONS[node.op]}_of_columns", (part.size, part.tiles), total.dtype,
                Memory.sbuf, node.origin,
            )  # fmt: skip
            for group in parts(part.tiles, each):
                with self.writer.loop("bank", group.tiles) as b:
                    first = b * group.size + group.start
                    self.turned(node, total, made, first, group.size, part)
            made = self.result(end, made)
            place = self.in_hbm(end.value.name, at)
            step = place.strides[-1]
            target = Access(
                place.buffer, place.offset + part.start * step, made.shape,
                (step, PARTITIONS * step),
            )  # fmt: skip
            self.writer.call("dma_copy", dst=target, src=whole(made))

    def turned(
        self, node: Node, total: Buffer, made: Buffer, first: Affine, count: int, part: Part
    ) -> None:
        """`count` blocks of columns through PSUM into as many columns of `made`."""
        partitions = total.shape[0]
        turned = self.writer.allocate(
            "turned", (part.size, count, partitions), total.dtype, Memory.psum, node.origin
        )  # fmt: skip
        for k in range(count):
            start = (first + k) * part.size + part.start
            self.writer.call(
                "nc_transpose", node.origin,
                dst=Access(turned.name, Affine(k * partitions), (part.size, partitions),
                           (turned.row, 1)),
                data=Access(total.name, start, (partitions, part.size), (total.row, 1)),
            )  # fmt: skip
        self.writer.call(
            "tensor_reduce", node.origin, data=whole(turned), op=REDUCTIONS[node.op], axis=(2,),
            dst=Access(made.name, first, (part.size, count), (made.row, 1)),
        )  # fmt: skip


class ByOnes(OnPartitions):
    """Sums whose every tile is multiplied by ones and added up in PSUM."""

    def prepare(self) -> None:
        self.ones_of: dict[DType, Buffer] = {}
        for node in (e.node for e in self.ends):
            dtype = self.fit.dtypes[node.operands[0]]
            if node.op != "sum" or dtype not in (float32, bfloat16, float16):
                raise cannot(node, f"{node.op} of {dtype} is not a product with ones")
            if dtype not in self.ones_of:
                self.ones_of[dtype] = self.numbers_one(dtype)

    def start(self, partitions: int, rows: int, columns: int) -> None:
        for node in (e.node for e in self.ends):
            self.sums[node.name] = self.writer.allocate(
                "total", (1, columns), float32, Memory.psum, node.origin
            )  # fmt: skip

    def add(self, node: Node, tile: Access, at: Tile) -> None:
        ones = self.ones_of[self.fit.dtypes[node.operands[0]]]
        for row in range(at.rows):
            one_row = Access(
                tile.buffer, tile.offset + row * at.columns, (at.partitions, at.columns),
                (tile.strides[0], 1),
            )  # fmt: skip
            multiply_by_ones(self.writer, node, self.sums[node.name], ones, one_row)

    def finish(self, end: End, at: Tile) -> None:
        self.leave(end, self.sums[end.node.name], at)


_ROADS: tuple[tuple[str, type[Accumulated], Role], ...] = (
    ("rows on partitions, added on VectorE", OnPartitions, Role.rows),
    ("rows on partitions, each tile by ones on TensorE", ByOnes, Role.rows),
    ("a loop over the reduced axis, added on VectorE", InLoop, Role.batch),
)


def write_across(
    writer: Writer, group: Group, sources: dict[str, Source], specs: Mapping[str, Spec],
    numbers: Mapping[str, float], outputs: frozenset[str],
) -> str:  # fmt: skip
    """A group that ends in reductions, by the fastest road; says which. `outputs` are all values
    that it leaves in HBM, `sources` where they and what it reads lie."""
    late = group.late
    target = resolve_target(writer.target)

    def write(kind: type[Accumulated], role: Role) -> None:
        space = solve(group.axes, group.anchor, sources, role)
        if isinstance(space, str):
            raise cannot(group.nodes[0], space)
        needed = frozenset(e.node.operands[0] for e in group.ends)
        stored = (outputs - late) | needed
        tiles = space.without(late)
        found = fit(group.steps, tiles, specs, numbers, target, stored)
        if found.problem is not None:
            raise cannot(group.nodes[0], found.problem)
        rows = column_values(tiles, specs, numbers)
        if found.is_line and rows:
            raise cannot(group.nodes[0], f"{rows[0]} is not the same for all rows of a line")
        found = replace(found, full={**found.full, **dict.fromkeys(late, True)})
        outside = {v: s for v, s in sources.items() if v not in group.names}
        replicas = replicas_of(writer, tiles, specs, numbers, outside)
        end = (replicas, group.ends, numbers)
        kind(writer, space, found, sources, outputs - late, *end).run()

    roads = [Road(name, partial(write, kind, role)) for name, kind, role in _ROADS]
    return fastest(writer, roads)


def multiply_by_ones(
    writer: Writer, node: Node, into: Buffer, ones: Buffer, moving: Access
) -> None:
    """into (1, N) += onesᵀ · moving (P, N), one PSUM bank after the other."""
    partitions, columns = moving.shape
    stationary = Access(ones.name, Affine(), (partitions, 1), (1, 1))
    for part in parts(columns, BANK_ELEMS):
        with writer.loop("bank", part.tiles) as b:
            at = b * part.size + part.start
            writer.call(
                "nc_matmul", node.origin, stationary=stationary,
                dst=Access(into.name, at, (1, part.size), (into.row, 1)),
                moving=Access(moving.buffer, moving.offset + at, (partitions, part.size),
                              moving.strides),
            )  # fmt: skip
