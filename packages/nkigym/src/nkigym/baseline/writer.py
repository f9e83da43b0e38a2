"""One strip as loops: batches, rows, and in each the segments with loops over columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nki_dtypes import DType, float32
from nkigen_lite.codegen import Arrays, Replicas, Tile, Tiles, Writer
from nkigen_lite.fusion import ArrayView, Plan, in_rows
from nkigen_lite.ir import Node
from nkigen_lite.selection.tile_instructions import TileInstruction
from nkigym.baseline.errors import BaselineError, tile_of
from nkigym.baseline.strips import Segment, Strip

COLUMNS = (BANK_ELEMS, PARTITIONS)


def write_strip(writer: Writer, plan: Plan, strip: Strip, arrays: Arrays) -> None:
    """The strip's loops. Raises BaselineError for sizes that are not a number of tiles."""
    *batches, num_rows = strip.lead
    transposed = any(s.is_transposed for s in strip.segments)
    first = strip.segments[0].nodes[0].origin
    rows = tile_of(num_rows, COLUMNS if transposed else (PARTITIONS,), "rows", first)
    tiles = {id(s): _tiles(writer, plan, strip, s, arrays) for s in strip.segments if s.group}
    with ExitStack() as stack:
        batch = tuple(stack.enter_context(writer.loop("batch", n)) for n in batches)
        row = stack.enter_context(writer.loop("row", num_rows // rows)) * rows
        operands = Operands(writer, arrays, batch, row, rows)
        _Rows(writer, plan, strip, arrays, tiles, operands).write()


def _tiles(
    writer: Writer, plan: Plan, strip: Strip, segment: Segment, arrays: Arrays
) -> Tiles:  # fmt: skip
    """The writer of the instructions of the segment's group on a tile."""
    group, domain = segment.group, segment.domain
    assert group is not None and domain is not None
    mine = (strip.stored | strip.kept) & group.names
    found = in_rows(group.nodes, domain, plan.context, frozenset(mine))
    stored = frozenset(strip.stored & group.names)
    outside = {v: arrays.source(v) for v in group.axes.shapes if v not in strip.made}
    sources = outside | {v: arrays.known[v] for v in stored}
    return Tiles(writer, domain, found, sources, stored, Replicas(writer))


@dataclass(slots=True)
class _Rows:
    """Writes the segments for some rows. `values` are those on chip: (P, N), or (P, 1)."""

    writer: Writer
    plan: Plan
    strip: Strip
    arrays: Arrays
    tiles: dict[int, Tiles]
    operands: Operands
    values: dict[str, Access] = field(default_factory=dict)

    def write(self) -> None:
        for segment in self.strip.segments:
            if segment.is_transposed:
                self.transposed(segment)
                continue
            most = min(self.operands.rows, PARTITIONS)
            with self.writer.loop("part", self.operands.rows // most) as part:
                self.natural(segment, part * most, most)

    # -- rows on partitions -----------------------------------------------------------------------

    def natural(self, segment: Segment, first: Affine, rows: int) -> None:
        """A segment on `rows` rows from `first` of the strip's on."""
        wide = segment.columns
        if segment.by_rows:
            self.group(segment, first, rows, Affine(), wide, {})
            return
        for node in segment.products:
            self.operands.turn(node.operands[0], self.values)
        for value in sorted(self.strip.kept & segment.made):
            self.values[value] = self.room(value, rows, wide)
        width = tile_of(wide, COLUMNS, "columns", segment.nodes[0].origin)
        with self.writer.loop("column", wide // width) as c:
            column = c * width
            made = {n.name: self.product(n, first, rows, column, width) for n in segment.products}
            if segment.group is not None:
                self.group(segment, first, rows, column, width, made)
            for name, product in made.items():
                self.leave(name, product, first, column)

    def room(self, value: str, rows: int, columns: int) -> Access:
        """A place on chip for a value."""
        spec = self.plan.graph.specs[value]
        name = f"{self.plan.graph.by_name[value].op}_rows"
        return whole(self.writer.allocate(name, (rows, columns), spec.dtype, MemorySpace.sbuf))

    def product(self, node: Node, first: Affine, rows: int, column: Affine, width: int) -> Access:
        """rows x columns of a product, in PSUM."""
        into = self.writer.allocate(
            "product", (rows, width), float32, MemorySpace.psum, node.origin
        )
        left, right = node.operands
        with self.operands.terms(node) as (k, size):
            stationary = self.operands.left(left, k, size, first, rows)
            moving = self.operands.right(right, k, size, column, width)
            self.writer.call(
                "nc_matmul", node.origin, dst=whole(into), stationary=stationary, moving=moving
            )
        return self.rounded(whole(into), node.spec.dtype)

    def rounded(self, product: Access, dtype: DType) -> Access:
        """The product as a value of `dtype`."""
        if dtype is float32:
            return product
        made = self.writer.allocate("rounded", product.shape, dtype, MemorySpace.sbuf)
        self.writer.call("tensor_copy", dst=whole(made), src=product)
        return whole(made)

    def leave(self, value: str, product: Access, first: Affine, column: Affine) -> None:
        """A product where it is needed: on chip, in HBM."""
        source = product
        if value in self.strip.kept:
            source = _columns(self.values[value], column, product.shape[1])
            self.writer.call("tensor_copy", dst=source, src=product)
        if value not in self.strip.stored:
            return
        if source is product and self.writer.buffers[product.buffer].space is MemorySpace.psum:
            dtype = self.plan.graph.specs[value].dtype
            made = self.writer.allocate("product_tile", product.shape, dtype, MemorySpace.sbuf)
            self.writer.call("tensor_copy", dst=whole(made), src=product)
            source = whole(made)
        place = self.operands.in_hbm(self.arrays.known[value], first, column, product.shape)
        self.writer.call("dma_copy", dst=place, src=source)

    # -- work on rows -----------------------------------------------------------------------------

    def group(
        self, segment: Segment, first: Affine, rows: int, column: Affine, width: int,
        products: dict[str, Access],
    ) -> None:  # fmt: skip
        """The segment's group on a tile."""
        tiles = self.tiles[id(segment)]
        lead, kept = self.strip.lead[:-1], sorted(self.strip.kept & segment.made - products.keys())
        batch = tuple(v for v, n in zip(self.operands.batch, lead, strict=True) if n != 1)
        here = Tile(self.operands.row + first, rows, 1, column, width, batch)
        made = {w: step for step in tiles.fit.steps for w in step.writes}
        resident = {v: tiles.fit.made.get(v, v) for v in kept}
        for value, place in resident.items():
            if value not in self.values:
                self.values[value] = self.place(tiles, value, made.get(place), (rows, width))
        others = ((v, at) for v, at in self.values.items() if v not in resident)
        known = {v: _columns(at, column, width) for v, at in others}
        into = {v: _columns(self.values[v], column, width) for v in resident}
        tiles.bound = (
            known | products | {place: into[v] for v, place in resident.items() if place in made}
        )
        tiles.tile(here)
        for value, place in resident.items():
            if tiles.on_chip(place, here) != into[value]:
                source = tiles.on_chip(place, here)
                self.writer.call("tensor_copy", dst=into[value], src=source)
        for place in dict.fromkeys(resident.values()):
            if place in made:
                tiles.store(place, here)

    def place(
        self, tiles: Tiles, value: str, step: TileInstruction | None, shape: tuple[int, int]
    ) -> Access:  # fmt: skip
        """A place on chip for what a group makes of whole rows."""
        (rows, width), name = shape, tiles.name_of(value, step) if step else "kept_rows"
        free = width if tiles.fit.full[value] else 1
        dtype = tiles.fit.dtypes[value]
        return whole(self.writer.allocate(name, (rows, free), dtype, MemorySpace.sbuf))

    # -- columns on partitions --------------------------------------------------------------------

    def transposed(self, segment: Segment) -> None:
        """A segment with its columns on partitions, in SBUF as the next product takes it."""
        rows = self.operands.rows
        size = tile_of(segment.columns, (PARTITIONS,), "columns", segment.nodes[0].origin)
        specs = self.plan.graph.specs
        room = {
            v: self.operands.room(f"{self.plan.graph.by_name[v].op}_transposed", segment.columns,
            size,
                                  specs[v].dtype)
            for v in sorted(self.strip.kept & segment.made)
        }  # fmt: skip
        with self.writer.loop("column", segment.columns // size) as c:
            made = {n.name: self.transposed_product(n, c * size, size) for n in segment.products}
            places = {v: transposed.chunk(c, Affine(), rows) for v, transposed in room.items()}
            if segment.group is None:
                for value, place in places.items():
                    self.writer.call("tensor_copy", dst=place, src=made[value])
            else:
                self.transposed_group(self.tiles[id(segment)], made, places, size)
        self.operands.transposed |= room

    def transposed_group(
        self, tiles: Tiles, products: dict[str, Access], places: dict[str, Access], size: int
    ) -> None:
        resident = {v: tiles.fit.made.get(v, v) for v in places}
        tiles.bound = products | {resident[v]: place for v, place in places.items()}
        tiles.tile(Tile(Affine(), size, 1, Affine(), self.operands.rows, ()))

    def transposed_product(self, node: Node, column: Affine, size: int) -> Access:
        rows = self.operands.rows
        into = self.writer.allocate("product", (size, rows), float32, MemorySpace.psum, node.origin)
        left, right = node.operands
        with self.operands.terms(node) as (k, terms):
            stationary = self.operands.right(right, k, terms, column, size)
            moving = self.operands.left(left, k, terms, Affine(), rows)
            self.writer.call(
                "nc_matmul", node.origin, dst=whole(into), stationary=stationary, moving=moving
            )
        return self.rounded(whole(into), node.spec.dtype)


def _columns(access: Access, column: Affine, width: int) -> Access:
    """Some columns of a value, or its one element of each row."""
    if access.shape[1] == 1:
        return access
    return replace(access, offset=access.offset + column, shape=(access.shape[0], width))


# -- operands of TensorE ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transposed:
    """A value (M, K) on chip with K on partitions: (128, K / 128, M)."""

    buffer: Buffer

    def chunk(self, number: Affine, start: Affine, count: int) -> Access:
        """Some rows M of a chunk of K."""
        partitions, _, num_rows = self.buffer.shape
        offset = number * num_rows + start
        return Access(self.buffer.name, offset, (partitions, count), (self.buffer.row, 1))


@dataclass(slots=True)
class Operands:
    """Operands of products at one place: `rows` rows from `row` on, in a batch."""

    writer: Writer
    arrays: Arrays
    batch: tuple[Affine, ...]
    row: Affine
    rows: int
    transposed: dict[str, Transposed] = field(default_factory=dict)
    """Values on chip with their columns on partitions."""

    @contextmanager
    def terms(self, node: Node) -> Iterator[tuple[Affine, int]]:
        """The loop over the contracted axis K: (number of the tile, its size)."""
        num_k = self.arrays.graph.specs[node.operands[0]].shape[-1]
        size = tile_of(num_k, (PARTITIONS,), "contracted elements", node.origin)
        for operand in node.operands:
            if self.is_in_hbm(operand) and self.arrays.source(operand).look is not None:
                why = "a matrix of a product is the bits of another array"
                raise BaselineError(why, place=node.origin)
        with self.writer.loop("k", num_k // size) as k:
            yield k, size

    def is_in_hbm(self, value: str) -> bool:
        return self.arrays.plan.base_of(value) in self.arrays.known

    # -- left: stationary (K, M) ------------------------------------------------------------------

    def left(self, value: str, k: Affine, size: int, first: Affine, rows: int) -> Access:
        """K x M of the left operand (M, K), rows from `first` of the strip's on."""
        if value in self.transposed:
            return self.transposed[value].chunk(k, first, rows)
        source = self.arrays.source(value)
        down, along = source.strides[-2:]
        at = self.offset(source) + (self.row + first) * down + k * size * along
        if along != 1 or down == 1:
            return self.loaded(source, at, (size, rows), (along, down))
        return self.loaded_and_transposed(source, at, (rows, size), (down, along))

    def turn(self, value: str, values: Mapping[str, Access]) -> None:
        """A value that was made on chip, once for all columns of the product."""
        if value not in values or value in self.transposed:
            return
        rows = values[value]
        num_k = rows.shape[1]
        size = tile_of(num_k, (PARTITIONS,), "contracted elements", None)
        dtype = self.writer.buffers[rows.buffer].dtype
        made = self.transposed[value] = self.room("transposed_rows", num_k, size, dtype)
        with self.writer.loop("k", num_k // size) as k:
            part = Access(rows.buffer, rows.offset + k * size, (self.rows, size), rows.strides)
            self.transpose(part, made.chunk(k, Affine(), self.rows))

    def room(self, name: str, columns: int, size: int, dtype: DType) -> Transposed:
        """Room for a value with `size` of its columns on partitions."""
        shape = (size, columns // size, self.rows)
        return Transposed(self.writer.allocate(name, shape, dtype, MemorySpace.sbuf))

    # -- right: moving (K, N) ---------------------------------------------------------------------

    def right(self, value: str, k: Affine, size: int, column: Affine, width: int) -> Access:
        """K x N of the right operand (K, N)."""
        source = self.arrays.source(value)
        down, along = source.strides[-2:]
        at = self.offset(source) + k * size * down + column * along
        if down != 1 or along == 1:
            return self.loaded(source, at, (size, width), (down, along))
        return self.loaded_and_transposed(source, at, (width, size), (along, down))

    # -- tiles ------------------------------------------------------------------------------------

    def offset(self, source: ArrayView) -> Affine:
        """The batch's first element; axes broadcast as NumPy's do."""
        found = Affine(source.offset)
        lead = source.shape[:-2]
        missing = len(self.batch) - len(lead)
        axes = zip(self.batch[missing:], lead, source.strides[:-2], strict=True)
        for variable, size, stride in axes:
            found += variable * (stride if size != 1 else 0)
        return found

    def in_hbm(
        self, source: ArrayView, first: Affine, column: Affine, shape: tuple[int, ...]
    ) -> Access:
        """A tile of an array of the strip's rows."""
        down, along = source.strides[-2:]
        at = self.offset(source) + (self.row + first) * down + column * along
        return Access(source.buffer, at, shape, (down, along), source.look)

    def loaded(
        self, source: ArrayView, at: Affine, shape: tuple[int, int], strides: tuple[int, int]
    ) -> Access:
        """A tile as it lies."""
        name = f"{source.buffer}_tile"
        made = whole(self.writer.allocate(name, shape, source.dtype, MemorySpace.sbuf))
        self.writer.call("dma_copy", dst=made, src=Access(source.buffer, at, shape, strides))
        return made

    def loaded_and_transposed(
        self, source: ArrayView, at: Affine, shape: tuple[int, int], strides: tuple[int, int]
    ) -> Access:
        """A tile (X, K) of rows, 128 of them at a time, as (K, X)."""
        count, size = shape
        name = f"{source.buffer}_transposed"
        made = whole(self.writer.allocate(name, (size, count), source.dtype, MemorySpace.sbuf))
        each = tile_of(count, (PARTITIONS,), "rows", None)
        with self.writer.loop("x", count // each) as x:
            tile = self.loaded(source, at + x * each * strides[0], (each, size), strides)
            part = Access(made.buffer, x * each, (size, each), made.strides)
            self.transpose(tile, part)
        return made

    def transpose(self, tile: Access, into: Access) -> None:
        """TensorE transposes a tile into PSUM; a copy moves it to SBUF."""
        dtype = self.writer.buffers[tile.buffer].dtype
        transposed = self.writer.allocate("transposed", into.shape, dtype, MemorySpace.psum)
        self.writer.call("nc_transpose", dst=whole(transposed), data=tile)
        self.writer.call("tensor_copy", dst=into, src=whole(transposed))
