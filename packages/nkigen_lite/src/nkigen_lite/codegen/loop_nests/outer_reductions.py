"""Reductions that leave axes behind the reduced ones: tile by tile into an accumulator.

The reduced axes are a loop that adds up tiles of the kept ones, or are on partitions, are added up
128 rows at a time and end with one step over partitions: a product with ones for sums, transposes
and a reduction of rows for extremes. Sums are in float32, of n terms within (n - 1) · 2⁻²⁴ of the
sum of their magnitudes, in any order; 1.0 · x is exact. GpSimdE's tensor_partition_reduce is
not used: its cost is not documented.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from neuroncore.program import Affine
from neuroncore.targets import BANK_ELEMS
from nkigen_lite.codegen.emission.axis_tiling import AxisTiles, parts, row_parts
from nkigen_lite.codegen.emission.candidates import Candidate, fastest
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.loop_nests.accumulation import (
    BY_ONES,
    ON_VECTOR_ENGINE,
    Accumulation,
    OuterReduction,
)
from nkigen_lite.codegen.loop_nests.row_replication import replicas_of
from nkigen_lite.codegen.loop_nests.tiles import Tile, Tiles, batch_loops
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import Context, column_values, fit
from nkigen_lite.fusion.groups import Group
from nkigen_lite.fusion.iteration_domain import Role, solve
from nkigen_lite.selection.unsupported import unsupported

BANKS = 4
"""PSUM banks that one result takes; two of these fit."""


def write_in_loop(reduction: OuterReduction) -> None:
    """The reduced axis is a loop: tiles of the kept axes are added up."""
    tiles, writer = reduction.tiles, reduction.writer
    batches = [a for a in tiles.domain.axes if a.role is Role.batch]
    kept = set(tiles.domain.of[reduction.ends[0].node.name])
    reduced = next(a for a in batches if a.last not in kept)
    with ExitStack() as stack:
        outer = [
            None if a is reduced else stack.enter_context(writer.loop("batch", a.size))
            for a in batches
        ]
        for frame in tiles.frames():
            tiles.frame = frame
            for rows, partitions, each in tiles.row_parts():
                for columns in parts(frame.columns, tiles.fit.columns):
                    shape = (partitions, each)
                    _sum_terms(reduction, outer, reduced.size, rows, shape, columns)


def _sum_terms(
    reduction: OuterReduction, outer: list[Affine | None], count: int, rows: AxisTiles,
    shape: tuple[int, int], columns: AxisTiles,
) -> None:  # fmt: skip
    writer, tiles = reduction.writer, reduction.tiles
    with writer.loop("tile", rows.tiles) as t, writer.loop("chunk", columns.tiles) as c:
        row, column = t * rows.size + rows.start, c * columns.size + columns.start
        reduction.accumulation.start(reduction, *shape, columns.size)

        def tile_of(number: Affine) -> Tile:
            batch = tuple(number if v is None else v for v in outer)
            return Tile(row, *shape, column, columns.size, batch)

        tiles.tile(tile_of(Affine()))
        reduction.is_first = False
        with writer.loop("term", count - 1) as k:
            tiles.tile(tile_of(k + 1))
        for end in reduction.ends:
            reduction.store_result(end, reduction.sums[end.node.name], tile_of(Affine()))


def write_on_partitions(reduction: OuterReduction) -> None:
    """The reduced axis is on partitions."""
    tiles, accumulation = reduction.tiles, reduction.accumulation
    tiles.frame = next(tiles.frames())
    accumulation.prepare(reduction)
    width = min(tiles.fit.columns, BANKS * BANK_ELEMS)
    for batch in batch_loops(tiles):
        for column, count in reduction.writer.tiles("chunk", tiles.frame.columns, width):
            _sum_rows(reduction, batch, column, count)
            for end in reduction.ends:
                accumulation.finish(reduction, end, Tile(Affine(), 1, 1, column, count, batch))


def _sum_rows(
    reduction: OuterReduction, batch: tuple[Affine, ...], column: Affine, columns: int
) -> None:
    """Every row of these columns."""
    tiles = reduction.tiles
    whole_rows = columns == tiles.frame.columns
    found = row_parts(tiles.frame.rows, tiles.fit.rows if whole_rows else 1)
    for number, (rows, partitions, each) in enumerate(found):
        if not number:
            reduction.accumulation.start(reduction, partitions, each, columns)
            tiles.tile(Tile(Affine(rows.start), partitions, each, column, columns, batch))
            reduction.is_first = False
            rows = AxisTiles(rows.start + rows.size, rows.tiles - 1, rows.size)
        if rows.tiles:
            with reduction.writer.loop("tile", rows.tiles) as t:
                row = t * rows.size + rows.start
                tiles.tile(Tile(row, partitions, each, column, columns, batch))


@dataclass(frozen=True, slots=True)
class ReductionStrategy:
    """One candidate: the role of the reduced axis, its loops, how tiles are added up."""

    name: str
    role: Role
    write: Callable[[OuterReduction], None]
    accumulation: Accumulation


STRATEGIES = (
    ReductionStrategy(
        "rows on partitions, added on VectorE", Role.rows, write_on_partitions, ON_VECTOR_ENGINE
    ),
    ReductionStrategy(
        "rows on partitions, each tile by ones on TensorE", Role.rows, write_on_partitions, BY_ONES
    ),
    ReductionStrategy(
        "a loop over the reduced axis, added on VectorE", Role.batch, write_in_loop,
        ON_VECTOR_ENGINE,
    ),
)  # fmt: skip


def write_outer_reductions(
    writer: Writer, group: Group, sources: dict[str, ArrayView], context: Context,
    outputs: frozenset[str],
) -> str:  # fmt: skip
    """Write a group that ends in reductions, by the fastest candidate; return its description.

    `outputs` are all values that it stores in HBM, `sources` the arrays that it reads and writes.
    """
    late = group.late

    def write(strategy: ReductionStrategy) -> None:
        domain = solve(group.axes, group.anchor, sources, strategy.role)
        if isinstance(domain, str):
            raise unsupported(group.nodes[0], domain)
        needed = frozenset(e.node.operands[0] for e in group.ends)
        stored = (outputs - late) | needed
        tiles = domain.without(late)
        found = fit(group.steps, tiles, context, stored)
        if found.problem is not None:
            raise unsupported(group.nodes[0], found.problem)
        rows = column_values(tiles, context)
        if found.is_line and rows:
            raise unsupported(group.nodes[0], f"{rows[0]} is not the same for all rows of a line")
        found = replace(found, full={**found.full, **dict.fromkeys(late, True)})
        outside = {v: s for v, s in sources.items() if v not in group.names}
        replicas = replicas_of(writer, tiles, context, outside)
        outer = Tiles(writer, domain, found, sources, stored, replicas)
        made = outputs - late, group.ends, context.numbers
        strategy.write(OuterReduction(outer, *made, strategy.accumulation))

    return fastest(writer, [Candidate(s.name, partial(write, s)) for s in STRATEGIES])
