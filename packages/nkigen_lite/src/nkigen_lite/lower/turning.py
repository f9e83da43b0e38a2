"""Groups of tiles whose arrays lie in another order: element by element, put in order before and
after, or in columns that TensorE turns into rows on the way in and out. The fastest counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from neuroncore.core import NeuronCore
from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, whole
from neuroncore.spec import row_major
from neuroncore.targets import resolve_target
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.lower.budget import PLACES, Fit, column_values, fit, has_reduction, is_line
from nkigen_lite.lower.groups import Group
from nkigen_lite.lower.moving import move
from nkigen_lite.lower.refuse import cannot
from nkigen_lite.lower.replicate import Replicas, replicas_of
from nkigen_lite.lower.roads import Road, fastest
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.spaces import Role, Space, solve, spread_out
from nkigen_lite.lower.tiles import Tile, Tiles, parts
from nkigen_lite.lower.windows import Lines, WindowTiles, are_neighbours, line_axis
from nkigen_lite.lower.writer import Writer
from nkigen_lite.spec import Spec

PARTITIONS = 128
BLOCKS = 4
"""Blocks of 128 columns that fill a PSUM bank of float32."""

SMALLER = 4
"""Times that tiles are smaller whose windows hold four times what one value has."""

FEW_ROWS = 64
"""Rows that leave half of the partitions empty."""

TURNED_DTYPES = (float32, bfloat16, float16)
_ORDER = (Role.batch, Role.rows, Role.columns)


class TurnedTiles(Tiles):
    """Tiles of which `turned` values lie in columns: neighbours along the rows are neighbours in
    HBM."""

    def __init__(
        self, writer: Writer, space: Space, fit: Fit, sources: Mapping[str, Source],
        stored: frozenset[str], replicas: Replicas, turned: frozenset[str],
    ) -> None:  # fmt: skip
        super().__init__(writer, space, fit, sources, stored, replicas)
        self.turned = turned

    def load(self, value: str, at: Tile) -> None:
        if value not in self.turned:
            super().load(value, at)
            return
        tile, source = self.on_chip(value, at), self.in_hbm(value, at)
        row = self.writer.buffers[tile.buffer].row
        for first, blocks, columns in self.column_blocks(at):
            natural = self.columns_of(value, at, blocks, columns)
            place = self.place(source, first, natural.shape)
            self.writer.call("dma_copy", dst=natural, src=place)
            with self.writer.loop("row", at.rows) as k:
                turned = self.writer.allocate(
                    "turned", (at.partitions, blocks, columns), self.fit.dtypes[value], Memory.psum
                )  # fmt: skip
                for j in range(blocks):
                    self.writer.call(
                        "nc_transpose",
                        dst=Access(turned.name, Affine(j * columns), (at.partitions, columns),
                                   (turned.row, 1)),
                        data=Access(natural.buffer, k + j * natural.shape[2],
                                    (columns, at.partitions), (natural.strides[0], at.rows)),
                    )  # fmt: skip
                target = Access(
                    tile.buffer, k * at.columns + first, (at.partitions, blocks * columns), (row, 1)
                )  # fmt: skip
                self.writer.call("tensor_copy", dst=target, src=whole(turned))

    def store_as(self, name: str, value: str, at: Tile) -> None:
        if name not in self.turned:
            super().store_as(name, value, at)
            return
        tile, target = self.on_chip(value, at), self.in_hbm(name, at)
        row = self.writer.buffers[tile.buffer].row
        for first, blocks, columns in self.column_blocks(at):
            natural = self.columns_of(value, at, blocks, columns)
            with self.writer.loop("row", at.rows) as k:
                turned = self.writer.allocate(
                    "turned", (columns, blocks, at.partitions), self.fit.dtypes[value], Memory.psum
                )  # fmt: skip
                for j in range(blocks):
                    self.writer.call(
                        "nc_transpose",
                        dst=Access(turned.name, Affine(j * at.partitions),
                                   (columns, at.partitions), (turned.row, 1)),
                        data=Access(tile.buffer, k * at.columns + first + j * columns,
                                    (at.partitions, columns), (row, 1)),
                    )  # fmt: skip
                spread = Access(
                    natural.buffer, Affine() + k, (columns, blocks, at.partitions),
                    (natural.strides[0], natural.strides[1], at.rows),
                )  # fmt: skip
                self.writer.call("tensor_copy", dst=spread, src=whole(turned))
            self.writer.call("dma_copy", dst=self.place(target, first, natural.shape), src=natural)

    def column_blocks(self, at: Tile) -> Iterator[tuple[Affine, int, int]]:
        """(first column, blocks, columns of each) of what one PSUM bank takes."""
        for part in parts(at.columns, BLOCKS * PARTITIONS):
            with self.writer.loop("bank", part.tiles) as b:
                first = b * part.size + part.start
                for block in parts(part.size, PARTITIONS):
                    yield first + block.start, block.tiles, block.size

    def columns_of(self, value: str, at: Tile, blocks: int, columns: int) -> Access:
        """Room for columns on partitions: (columns, blocks, all rows of the tile)."""
        made = self.writer.allocate(
            "columns", (columns, blocks, at.partitions * at.rows), self.fit.dtypes[value],
            Memory.sbuf,
        )  # fmt: skip
        return whole(made)

    def place(self, tile: Access, first: Affine, shape: tuple[int, ...]) -> Access:
        """Columns from `first` on of a tile in HBM, each with all rows."""
        step = tile.strides[-1]
        strides = (step, step * shape[0], 1)
        return replace(tile, offset=tile.offset + first * step, shape=shape, strides=strides)


class _Group:
    """One group on the way to its tiles."""

    def __init__(
        self, writer: Writer, group: Group, specs: Mapping[str, Spec], numbers: Mapping[str, float],
        stored: frozenset[str],
    ) -> None:  # fmt: skip
        self.writer, self.group, self.stored = writer, group, stored
        self.specs, self.numbers = specs, numbers
        self.target = resolve_target(writer.target)

    def solved(self, sources: dict[str, Source]) -> tuple[Space, Fit]:
        space = solve(self.group.axes, self.group.anchor, sources)
        if isinstance(space, str):
            raise cannot(self.group.nodes[0], space)
        nodes = self.group.nodes
        found = fit(nodes, space, self.specs, self.numbers, self.target, self.stored)
        if found.problem is not None:
            raise cannot(self.group.nodes[0], found.problem)
        return space, found

    def spread_out(self, sources: dict[str, Source]) -> tuple[Space, Fit]:
        """Columns on partitions that rows leave empty."""
        nodes, found = self.group.nodes, spread_out(self.solved(sources)[0])
        if found is None or has_reduction(nodes) or is_line(self.solved(sources)[0]):
            raise cannot(nodes[0], "its rows fill partitions enough")
        down = next(a.last for a in found.axes if a.role is Role.rows)
        if any(down not in found.of[n.name] for n in nodes):
            raise cannot(nodes[0], "a value that all columns share would be made again and again")
        return found, fit(nodes, found, self.specs, self.numbers, self.target, self.stored)

    def replicas(self, space: Space, sources: dict[str, Source]) -> Replicas:
        outside = {v: s for v, s in sources.items() if v not in self.group.names}
        return replicas_of(self.writer, space, self.specs, self.numbers, outside)

    def plain(self, sources: dict[str, Source]) -> None:
        space, found = self.solved(sources)
        self.group.space, self.group.fit = space, found
        replicas = self.replicas(space, sources)
        Tiles(self.writer, space, found, sources, self.stored, replicas).run()

    def in_order(self, sources: dict[str, Source]) -> None:
        """Arrays of their own for what lies otherwise, as tiles want it."""
        space, _ = self.solved(sources)
        new = dict(sources)
        late = []
        for value in self.slow(space, sources):
            slim, new[value] = self.ordered(space, value, sources[value])
            if value in self.stored:
                late.append(value)
            else:
                move(self.writer, *slim)
        self.plain(new)
        for value in late:
            move(self.writer, sources[value], new[value])

    def ordered(
        self, space: Space, value: str, source: Source
    ) -> tuple[tuple[Source, Source], Source]:
        """((a new array, the source), without what is repeated), and the array as the value."""
        ranks = {a.last: _ORDER.index(a.role) for a in space.axes}
        roles = {p: ranks[a.last] for a in space.axes for p in a.points}
        dims = [d for d, (n, s) in enumerate(zip(source.shape, source.strides, strict=True))
                if n != 1 and s]  # fmt: skip
        dims.sort(key=lambda d: (roles[space.of[value][d] or space.axes[0].last], d))
        shape = tuple(source.shape[d] for d in dims)
        made = self.writer.allocate(
            f"{source.buffer}_in_order", shape, source.dtype, Memory.private_hbm
        )  # fmt: skip
        dense = row_major(shape)
        strides = dict(zip(dims, dense, strict=True))
        new = Source(
            made.name, 0, source.shape,
            tuple(strides.get(d, 0) for d in range(len(source.shape))), source.dtype,
        )  # fmt: skip
        old = tuple(source.strides[d] for d in dims)
        slim = (
            replace(new, shape=shape, strides=dense), replace(source, shape=shape, strides=old)
        )  # fmt: skip
        return slim, new

    def windows(self, sources: dict[str, Source]) -> None:
        """Neighbours loaded together, and what is not in rows as it lies; put apart on chip."""
        self.in_windows(sources, *self.solved(sources))

    def in_windows(self, sources: dict[str, Source], space: Space, found: Fit) -> None:
        WindowTiles(
            self.writer, space, replace(found, turns=1), sources, self.stored,
            self.replicas(space, sources),
        ).run()  # fmt: skip

    def small_windows(self, sources: dict[str, Source]) -> None:
        """The same with fewer rows at a time, for windows much larger than the values in them."""
        space, found = self.solved(sources)
        if found.rows < 2 * SMALLER:
            raise cannot(self.group.nodes[0], "its tiles are small")
        self.in_windows(sources, space, replace(found, rows=-(-found.rows // SMALLER)))

    def lines(self, sources: dict[str, Source]) -> None:
        """The same, with many turns of the innermost loop in each tile."""
        self.in_lines(sources, *self.solved(sources))

    def few_lines(self, sources: dict[str, Source]) -> None:
        """The same with fewer lines at a time, for windows that else do not fit."""
        self.in_lines(sources, *self.solved(sources), fewer=SMALLER)

    def in_lines(
        self, sources: dict[str, Source], space: Space, found: Fit, fewer: int = 1
    ) -> None:  # fmt: skip
        axis = line_axis(space)
        if axis is None or has_reduction(self.group.nodes):
            raise cannot(self.group.nodes[0], "there are no lines to be put together")
        Lines(
            self.writer, space, replace(found, turns=1), sources, self.stored,
            self.replicas(space, sources), axis, fewer,
        ).run()  # fmt: skip

    def turned(self, sources: dict[str, Source]) -> None:
        space, found = self.solved(sources)
        slow = [
            v for v in self.slow(space, sources) if self.lies_in_columns(space, found, v, sources)
        ]
        if not slow or found.is_line or self.target.generation < 3:
            raise cannot(self.group.nodes[0], "no array of it lies in columns")
        blocks = min(BLOCKS, -(-found.columns // PARTITIONS))
        rows = blocks * PARTITIONS * found.rows * float32.itemsize * len(slow)
        held = sum(
            self.specs[v].dtype.itemsize * space.size(Role.columns)
            for v in column_values(space, self.specs, self.numbers)
        )  # fmt: skip
        usable = NeuronCore(self.target.name, watchers=()).free_bytes_of(Memory.sbuf)
        if PLACES * (found.bytes_per_partition + rows) + held > usable:
            raise cannot(self.group.nodes[0], "its columns do not fit beside its rows")
        replicas = self.replicas(space, sources)
        TurnedTiles(
            self.writer, space, found, sources, self.stored, replicas, frozenset(slow)
        ).run()  # fmt: skip

    def slow(self, space: Space, sources: dict[str, Source]) -> list[str]:
        """Values that tiles read or write element by element."""
        resident = column_values(space, self.specs, self.numbers)
        columns = {v: space.strides(s, v, Role.columns) for v, s in sources.items()}
        return [
            v for v, s in columns.items() if s and s[0] not in (0, 1) and v not in resident
            and space.size(Role.columns) > 1
        ]  # fmt: skip

    def lies_in_columns(
        self, space: Space, found: Fit, value: str, sources: dict[str, Source]
    ) -> bool:  # fmt: skip
        rows = space.strides(sources[value], value, Role.rows)
        right = found.dtypes.get(value) in TURNED_DTYPES and found.full.get(value, False)
        return right and rows == (1,) and self.specs[value].dtype in TURNED_DTYPES


def write_tiles(
    writer: Writer, group: Group, sources: dict[str, Source], specs: Mapping[str, Spec],
    numbers: Mapping[str, float], stored: frozenset[str],
) -> str | None:  # fmt: skip
    """Element-wise operations and row reductions, from HBM to HBM; which road was taken, if there
    are several."""
    made = _Group(writer, group, specs, numbers, stored)
    space, _ = made.solved(sources)
    read = {v: s for v, s in sources.items() if v not in stored}
    slow, near = made.slow(space, sources), are_neighbours(read.values())
    roads: list[tuple[str, Callable[[dict[str, Source]], None]]] = [
        ("arrays read and written as they lie", made.plain)
    ]
    if slow:
        roads += [
            ("arrays put in order in HBM", made.in_order),
            ("columns turned into rows by TensorE", made.turned),
        ]
    if slow or near:
        roads += [
            ("neighbours loaded together", made.windows),
            ("neighbours loaded together in small tiles", made.small_windows),
            ("lines of neighbours loaded together", made.lines),
            ("lines of neighbours loaded together in small tiles", made.few_lines),
        ]
        if space.size(Role.rows) < FEW_ROWS:
            roads += [
                ("columns on all partitions, neighbours loaded together",
                 lambda w: made.in_windows(w, *made.spread_out(w))),
                ("columns on all partitions, lines of neighbours loaded together",
                 lambda w: made.in_lines(w, *made.spread_out(w))),
            ]  # fmt: skip
    if len(roads) == 1:
        made.plain(sources)
        return None
    return fastest(writer, [Road(name, lambda w=write: w(dict(sources))) for name, write in roads])
