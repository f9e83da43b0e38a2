"""Rows on the partitions that an earlier part of the kernel stored them from.

A group chooses its tiles alone. It agrees with the part that made what it reads if all leading axes
are rows, as many in each partition as lie between two partitions of that array: then the array may
stay in SBUF (`codegen.residency`). What does not change along all of these axes is repeated in HBM,
one number for each row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import Call, walk
from neuroncore.targets import PARTITIONS
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.loop_nests.tiles import DIRECT, Tile, Tiles, Transfers
from nkigen_lite.codegen.movement.hbm_copy import in_hbm
from nkigen_lite.fusion.array_view import ArrayView, array_view_of
from nkigen_lite.fusion.budget import Context, Fit, fit, has_reduction
from nkigen_lite.fusion.groups import Group
from nkigen_lite.fusion.iteration_domain import Axes, IterationDomain, Role, lay_node, solve
from nkigen_lite.selection.unsupported import unsupported

Views = dict[str, ArrayView]


def stored_runs(writer: Writer, sources: Views) -> set[int]:
    """How many elements the partitions had from which the arrays were stored."""
    buffers = {s.buffer for s in sources.values()}
    places = (
        call.accesses["dst"]
        for call in walk(writer.statements())
        if isinstance(call, Call) and call.is_dma
    )
    return {p.strides[0] for p in places if p.buffer in buffers and p.shape[0] > 1}


def rows_in_partitions(runs: set[int], columns: int) -> int:
    """How many rows of so many columns such partitions have; 0 where that is not a whole number."""
    return max((run // columns for run in runs if columns and run % columns == 0), default=0)


@dataclass(frozen=True, slots=True)
class RepeatedTransfers:
    """`repeated` values are numbers of all rows, in one tile: a DMA repeats them."""

    repeated: Views

    def load(self, tiles: Tiles, value: str, at: Tile) -> None:
        if value not in self.repeated:
            DIRECT.load(tiles, value, at)
            return
        dst = tiles.on_chip(value, at)
        tiles.writer.call("dma_copy", dst=dst, src=in_hbm(self.repeated[value]))

    def store(self, tiles: Tiles, name: str, value: str, at: Tile) -> None:
        DIRECT.store(tiles, name, value, at)


@dataclass(frozen=True, slots=True)
class MergedRows:
    """A group with all leading axes as rows: its domain, its tiles, its arrays, their transfers."""

    domain: IterationDomain
    fit: Fit
    sources: Views
    transfers: Transfers


def merged_rows(
    writer: Writer, group: Group, sources: Views, context: Context, stored: frozenset[str],
    each: int,
) -> MergedRows:  # fmt: skip
    """The group with all leading axes as rows, `each` of them in a partition. Raises CodegenError
    where it has none such."""
    first, before = group.nodes[0], solve(group.axes, group.anchor, sources)
    assert isinstance(before, IterationDomain)
    if has_reduction(group.nodes) or before.size(Role.columns) == 1:
        raise unsupported(first, "its tiles are whole rows")
    rows = _rows(before, group)
    repeated = {v: _repeated(s, rows) for v, s in sources.items() if _is_of_rows(v, before, group)}
    in_one_tile = prod(rows) <= PARTITIONS * each
    new = sources | {v: _in_order(writer, s, in_one_tile) for v, s in repeated.items()}
    axes = _axes(group, context, dict.fromkeys(repeated, rows))
    if not {p for v in axes.shapes for p in axes.of(v)} - {None} <= set(axes.of(group.anchor)):
        raise unsupported(first, "its operations work on arrays of unrelated axes")
    domain = solve(axes, group.anchor, new)
    if isinstance(domain, str) or domain.size(Role.batch) > 1:
        raise unsupported(first, "its leading axes are not one")
    found = _with_rows(fit(group.nodes, domain, context, stored), domain, each)
    if found is None:
        raise unsupported(first, "its rows do not fit")
    loads = repeated if in_one_tile else {}
    return MergedRows(domain, found, new, RepeatedTransfers(loads))


def _with_rows(found: Fit, domain: IterationDomain, each: int) -> Fit | None:
    """The fit with so many rows in a partition, of fewer columns; None where none fit."""
    elems = found.rows * found.columns // each
    if found.is_line or not elems:
        return None
    return replace(found, rows=each, columns=min(domain.size(Role.columns), elems))


def _is_of_rows(value: str, domain: IterationDomain, group: Group) -> bool:
    """Whether an array has one number for some rows."""
    outside = value not in group.names
    return outside and domain.has(value, Role.rows) and not domain.has(value, Role.columns)


def _rows(domain: IterationDomain, group: Group) -> tuple[int, ...]:
    """The shape of the anchor with one column."""
    mine = {p for a in domain.axes if a.role is not Role.columns for p in a.points}
    places = zip(group.axes.shapes[group.anchor], group.axes.of(group.anchor), strict=True)
    return tuple(n if p in mine else 1 for n, p in places)


def _repeated(source: ArrayView, rows: tuple[int, ...]) -> ArrayView:
    """One number for each row."""
    lead = len(rows) - len(source.shape)
    strides = tuple(
        s if n != 1 else 0
        for n, s in zip((1,) * lead + source.shape, (0,) * lead + source.strides, strict=True)
    )
    return replace(source, shape=rows, strides=strides)


def _in_order(writer: Writer, source: ArrayView, in_one_tile: bool) -> ArrayView:
    """The view in an array of its own: a copy, or none where it is a tile that a DMA loads."""
    if in_one_tile:
        return array_view_of("", source.shape, source.dtype)
    made = writer.allocate(
        f"{source.buffer}_of_rows", (prod(source.shape),), source.dtype, MemorySpace.private_hbm
    )
    new = array_view_of(made.name, source.shape, source.dtype)
    writer.call("dma_copy", dst=in_hbm(new), src=in_hbm(source))
    return new


def _axes(group: Group, context: Context, shapes: dict[str, tuple[int, ...]]) -> Axes:
    """The axes of the group where these values have other shapes."""
    axes = Axes()
    for node in group.nodes:
        for operand in node.operands:
            if operand not in context.numbers:
                axes.add(operand, shapes.get(operand, context.specs[operand].shape))
        why = lay_node(axes, node, skip=context.numbers.keys())
        if why is not None:
            raise unsupported(node, why)
    return axes
