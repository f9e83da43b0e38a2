"""Strategies for groups of element-wise operations and row reductions; the fastest is written.

Arrays in another order than the tiles are read element by element, copied into order before and
after, transposed by TensorE, or loaded in windows together with their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.spec import row_major
from neuroncore.targets import PARTITIONS
from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.codegen.emission.axis_tiling import parts
from nkigen_lite.codegen.emission.candidates import Candidate, fastest
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.loop_nests.access_windows import (
    WindowWriter,
    are_neighbours,
    line_axis,
    write_lines,
)
from nkigen_lite.codegen.loop_nests.row_replication import replicas_of
from nkigen_lite.codegen.loop_nests.stored_rows import merged_rows, rows_in_partitions
from nkigen_lite.codegen.loop_nests.tiles import DIRECT, Tile, Tiles, write_loops
from nkigen_lite.codegen.movement.hbm_copy import move
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import (
    PLACES,
    Context,
    Fit,
    column_values,
    fit,
    has_reduction,
    is_line,
    resident_bytes,
)
from nkigen_lite.fusion.groups import Group
from nkigen_lite.fusion.iteration_domain import Axis, IterationDomain, Role, solve, spread_out
from nkigen_lite.selection.unsupported import unsupported

BLOCKS = 4
"""Blocks of 128 columns that fill a PSUM bank of float32."""

DTYPES = (float32, bfloat16, float16)
"""Dtypes that TensorE transposes bit for bit."""


@dataclass(frozen=True, slots=True)
class TransposedTransfers:
    """`values` are stored in columns: neighbours along the rows are neighbours in HBM."""

    values: frozenset[str]

    def load(self, tiles: Tiles, value: str, at: Tile) -> None:
        if value not in self.values:
            DIRECT.load(tiles, value, at)
            return
        writer, source = tiles.writer, tiles.in_hbm(value, at)
        tile = writer.buffers[tiles.on_chip(value, at).buffer]
        for first, blocks, columns in _column_blocks(writer, at):
            natural = _columns_of(tiles, value, at, blocks, columns)
            place = _columns_in_hbm(source, first, natural.shape)
            writer.call("dma_copy", dst=whole(natural), src=place)
            with writer.loop("row", at.rows) as k:
                shape, steps = (at.partitions, blocks, columns), (natural.shape[2], at.rows)
                transposed = _transposed(tiles, value, shape, natural, k, steps)
                target = columns_of(tile, k * at.columns + first, blocks * columns)
                writer.call("tensor_copy", dst=target, src=transposed)

    def store(self, tiles: Tiles, name: str, value: str, at: Tile) -> None:
        if name not in self.values:
            DIRECT.store(tiles, name, value, at)
            return
        writer, target = tiles.writer, tiles.in_hbm(name, at)
        tile = writer.buffers[tiles.on_chip(value, at).buffer]
        for first, blocks, columns in _column_blocks(writer, at):
            natural = _columns_of(tiles, value, at, blocks, columns)
            with writer.loop("row", at.rows) as k:
                shape, start = (columns, blocks, at.partitions), k * at.columns + first
                transposed = _transposed(tiles, value, shape, tile, start, (columns, 1))
                steps = (natural.row, natural.shape[2], at.rows)
                spread = Access(natural.name, Affine() + k, shape, steps)
                writer.call("tensor_copy", dst=spread, src=transposed)
            place = _columns_in_hbm(target, first, natural.shape)
            writer.call("dma_copy", dst=place, src=whole(natural))


def _transposed(
    tiles: Tiles, value: str, shape: tuple[int, int, int], source: Buffer, start: Affine,
    steps: tuple[int, int],
) -> Access:  # fmt: skip
    """Blocks of the source side by side in PSUM, of `shape` (rows, blocks, columns): steps[0]
    elements from one to the next, steps[1] from row to row."""
    rows, blocks, columns = shape
    made = tiles.writer.allocate("transposed", shape, tiles.fit.dtypes[value], MemorySpace.psum)
    for j in range(blocks):
        data = Access(
            source.name, start + j * steps[0], (columns, rows), (source.row, steps[1])
        )  # fmt: skip
        tiles.writer.call("nc_transpose", dst=columns_of(made, j * columns, columns), data=data)
    return whole(made)


def _column_blocks(writer: Writer, at: Tile) -> Iterator[tuple[Affine, int, int]]:
    """(first column, blocks, columns of each) of what one PSUM bank takes."""
    for first, count in writer.tiles("bank", at.columns, BLOCKS * PARTITIONS):
        for block in parts(count, PARTITIONS):
            yield first + block.start, block.tiles, block.size


def _columns_of(tiles: Tiles, value: str, at: Tile, blocks: int, columns: int) -> Buffer:
    """A new tile of columns on partitions: (columns, blocks, all rows of the tile)."""
    shape = (columns, blocks, at.partitions * at.rows)
    return tiles.writer.allocate("columns", shape, tiles.fit.dtypes[value], MemorySpace.sbuf)


def _columns_in_hbm(tile: Access, first: Affine, shape: tuple[int, ...]) -> Access:
    """Columns from `first` on of a tile in HBM, each with all rows."""
    step = tile.strides[-1]
    strides = (step, step * shape[0], 1)
    return replace(tile, offset=tile.offset + first * step, shape=shape, strides=strides)


SMALLER = 4
"""Times that tiles are smaller whose windows are four times as large as one value."""

FEW_ROWS = 64
"""Rows that leave half of the partitions empty."""

_ORDER = (Role.batch, Role.rows, Role.columns)

Views = dict[str, ArrayView]
"""Value → its array in HBM."""

Solution = tuple[IterationDomain, Fit]


class GroupWriter:
    """Writes one group of element-wise operations and row reductions, in several ways."""

    def __init__(
        self, writer: Writer, group: Group, context: Context, stored: frozenset[str], runs: set[int]
    ) -> None:
        self.writer, self.group, self.context, self.stored = writer, group, context, stored
        self.runs = runs

    def solved(self, sources: Views) -> Solution:
        domain = solve(self.group.axes, self.group.anchor, sources)
        if isinstance(domain, str):
            raise unsupported(self.group.nodes[0], domain)
        found = fit(self.group.nodes, domain, self.context, self.stored)
        if found.problem is not None:
            raise unsupported(self.group.nodes[0], found.problem)
        return domain, found

    def spread_out(self, sources: Views) -> Solution:
        """Columns on partitions that rows leave empty."""
        nodes, found = self.group.nodes, spread_out(self.solved(sources)[0])
        if found is None or has_reduction(nodes) or is_line(self.solved(sources)[0]):
            raise unsupported(nodes[0], "its rows fill partitions enough")
        down = next(a.last for a in found.axes if a.role is Role.rows)
        if any(down not in found.of[n.name] for n in nodes):
            raise unsupported(
                nodes[0], "a value that all columns share would be made again and again"
            )
        return found, fit(nodes, found, self.context, self.stored)

    def tiles(
        self, domain: IterationDomain, found: Fit, sources: Views, lines: Axis | None = None
    ) -> Tiles:
        """The emitter of the group's tiles."""
        outside = {v: s for v, s in sources.items() if v not in self.group.names}
        replicas = replicas_of(self.writer, domain, self.context, outside)
        return Tiles(self.writer, domain, found, sources, self.stored, replicas, lines=lines)

    def plain(self, sources: Views) -> None:
        """Arrays in the order in which they are stored."""
        self.group.domain, self.group.fit = domain, found = self.solved(sources)
        write_loops(self.tiles(domain, found, sources))

    def in_order(self, sources: Views) -> None:
        """Arrays in another order copied to new ones, in the order of the tiles."""
        domain, _ = self.solved(sources)
        new = dict(sources)
        late = []
        for value in self.strided(domain, sources):
            slim, new[value] = self.ordered(domain, value, sources[value])
            if value in self.stored:
                late.append(value)
            else:
                move(self.writer, *slim)
        self.plain(new)
        for value in late:
            move(self.writer, sources[value], new[value])

    def ordered(
        self, domain: IterationDomain, value: str, source: ArrayView
    ) -> tuple[tuple[ArrayView, ArrayView], ArrayView]:
        """((a new array, the source), without what is repeated), and the array as the value."""
        ranks = {a.last: _ORDER.index(a.role) for a in domain.axes}
        roles = {p: ranks[a.last] for a in domain.axes for p in a.points}
        dims = [d for d, (n, s) in enumerate(zip(source.shape, source.strides, strict=True))
                if n != 1 and s]  # fmt: skip
        dims.sort(key=lambda d: (roles[domain.of[value][d] or domain.axes[0].last], d))
        shape = tuple(source.shape[d] for d in dims)
        made = self.writer.allocate(
            f"{source.buffer}_in_order", shape, source.dtype, MemorySpace.private_hbm
        )  # fmt: skip
        dense = row_major(shape)
        strides = dict(zip(dims, dense, strict=True))
        new = ArrayView(
            made.name, 0, source.shape,
            tuple(strides.get(d, 0) for d in range(len(source.shape))), source.dtype,
        )  # fmt: skip
        old = tuple(source.strides[d] for d in dims)
        slim = (
            replace(new, shape=shape, strides=dense), replace(source, shape=shape, strides=old)
        )  # fmt: skip
        return slim, new

    def stored_rows(self, sources: Views) -> None:
        """Rows on the partitions from which the arrays were stored."""
        domain, _ = self.solved(sources)
        each = rows_in_partitions(self.runs, domain.size(Role.columns))
        made = merged_rows(self.writer, self.group, sources, self.context, self.stored, each)
        tiles = self.tiles(made.domain, made.fit, made.sources)
        tiles.transfers = made.transfers
        write_loops(tiles)

    def windows(self, sources: Views, solution: Solution) -> None:
        """Neighbours loaded together, arrays in other orders as they are stored; the accesses of
        the engines separate them."""
        domain, found = solution
        tiles = self.tiles(domain, replace(found, interleaved=1), sources)
        write_loops(tiles, WindowWriter(tiles).write)

    def small_windows(self, sources: Views) -> None:
        """The same with fewer rows at a time, for windows much larger than the values in them."""
        domain, found = self.solved(sources)
        if found.rows < 2 * SMALLER:
            raise unsupported(self.group.nodes[0], "its tiles are small")
        self.windows(sources, (domain, replace(found, rows=-(-found.rows // SMALLER))))

    def lines(self, sources: Views, solution: Solution, fewer: int = 1) -> None:
        """Windows with many steps of the innermost loop in each tile; `fewer` times less of them
        for windows that do not fit otherwise."""
        domain, found = solution
        axis = line_axis(domain)
        if axis is None or has_reduction(self.group.nodes):
            raise unsupported(self.group.nodes[0], "it has no lines to combine")
        tiles = self.tiles(domain, replace(found, interleaved=1), sources, lines=axis)
        write_lines(tiles, WindowWriter(tiles).write, axis, fewer)

    def transposed(self, sources: Views) -> None:
        domain, found = self.solved(sources)
        slow = self.strided(domain, sources)
        slow = [v for v in slow if self.is_in_columns(domain, found, v, sources)]
        if not slow or found.is_line or self.context.target.generation < 3:
            raise unsupported(self.group.nodes[0], "no array of it is stored in columns")
        blocks = min(BLOCKS, -(-found.columns // PARTITIONS))
        rows = blocks * PARTITIONS * found.rows * float32.itemsize * len(slow)
        held, usable = resident_bytes(domain, self.context), self.context.target.usable_sbuf_bytes
        if PLACES * (found.bytes_per_partition + rows) + held > usable:
            raise unsupported(self.group.nodes[0], "its columns do not fit beside its rows")
        tiles = self.tiles(domain, found, sources)
        tiles.transfers = TransposedTransfers(frozenset(slow))
        write_loops(tiles)

    def strided(self, domain: IterationDomain, sources: Views) -> list[str]:
        """Values that tiles read or write element by element."""
        resident = column_values(domain, self.context)
        columns = {v: domain.strides(s, v, Role.columns) for v, s in sources.items()}
        return [
            v for v, s in columns.items() if s and s[0] not in (0, 1) and v not in resident
            and domain.size(Role.columns) > 1
        ]  # fmt: skip

    def is_in_columns(
        self, domain: IterationDomain, found: Fit, value: str, sources: Views
    ) -> bool:  # fmt: skip
        rows = domain.strides(sources[value], value, Role.rows)
        right = found.dtypes.get(value) in DTYPES and found.full.get(value, False)
        return right and rows == (1,) and self.context.specs[value].dtype in DTYPES


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """Facts that determine the applicable strategies: some array is read or written with strides
    (`is_strided`), several are neighbours in HBM, few rows leave partitions empty, an array was
    stored from partitions of other rows."""

    is_strided: bool
    has_neighbours: bool
    has_few_rows: bool
    has_other_rows: bool

    @property
    def needs_windows(self) -> bool:
        return self.is_strided or self.has_neighbours

    @property
    def needs_spreading(self) -> bool:
        return self.needs_windows and self.has_few_rows


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to write a group, and whether it is applicable. Its cost is the predicted time of its
    statements (`candidates.fastest`)."""

    name: str
    is_applicable: Callable[[GroupFacts], bool]
    write: Callable[[GroupWriter, Views], None]


STORED_ROWS = Strategy(
    "rows on the partitions that stored them", lambda f: f.has_other_rows, GroupWriter.stored_rows
)

STRATEGIES = (
    Strategy("arrays read and written as they lie", lambda f: True, GroupWriter.plain),
    STORED_ROWS,
    Strategy("arrays put in order in HBM", lambda f: f.is_strided, GroupWriter.in_order),
    Strategy(
        "columns transposed into rows by TensorE", lambda f: f.is_strided, GroupWriter.transposed
    ),
    Strategy(
        "neighbours loaded together", lambda f: f.needs_windows,
        lambda g, v: g.windows(v, g.solved(v)),
    ),
    Strategy(
        "neighbours loaded together in small tiles", lambda f: f.needs_windows,
        GroupWriter.small_windows,
    ),
    Strategy(
        "lines of neighbours loaded together", lambda f: f.needs_windows,
        lambda g, v: g.lines(v, g.solved(v)),
    ),
    Strategy(
        "lines of neighbours loaded together in small tiles", lambda f: f.needs_windows,
        lambda g, v: g.lines(v, g.solved(v), fewer=SMALLER),
    ),
    Strategy(
        "columns on all partitions, neighbours loaded together", lambda f: f.needs_spreading,
        lambda g, v: g.windows(v, g.spread_out(v)),
    ),
    Strategy(
        "columns on all partitions, lines of neighbours loaded together",
        lambda f: f.needs_spreading, lambda g, v: g.lines(v, g.spread_out(v)),
    ),
)  # fmt: skip


def write_group(
    writer: Writer, group: Group, sources: Views, context: Context, stored: frozenset[str],
    runs: set[int],
) -> str | None:  # fmt: skip
    """Write element-wise operations and row reductions, from HBM to HBM; return the description of
    the fastest strategy, None if one only is applicable. `runs`: `stored_rows.stored_runs`."""
    made = GroupWriter(writer, group, context, stored, runs)
    domain, whole_fit = made.solved(sources)
    read = [s for v, s in sources.items() if v not in stored]
    few_rows = domain.size(Role.rows) < FEW_ROWS
    each = rows_in_partitions(runs, domain.size(Role.columns))
    other_rows = each > 0 and (each != whole_fit.rows or domain.size(Role.batch) > 1)
    facts = GroupFacts(
        bool(made.strided(domain, sources)),
        are_neighbours(read) or any(s.buffer in writer.joined for s in read),
        few_rows,
        other_rows,
    )
    found = [s for s in STRATEGIES if s.is_applicable(facts)]
    if len(found) == 1:
        found[0].write(made, sources)
        return None
    candidates = [
        Candidate(s.name, partial(s.write, made, dict(sources)), s is STORED_ROWS) for s in found
    ]
    return fastest(writer, candidates)
