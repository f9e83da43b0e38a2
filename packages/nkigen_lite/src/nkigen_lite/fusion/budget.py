"""SBUF budget of a group: the size of its tiles, and values that share a buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from neuroncore.targets import PARTITIONS, Target
from nki_dtypes import DType
from nkigen_lite.fusion.iteration_domain import IterationDomain, Role
from nkigen_lite.ir import Node
from nkigen_lite.ops import Kind
from nkigen_lite.selection.rules import RULES
from nkigen_lite.selection.selector import Selector
from nkigen_lite.selection.tile_instructions import TileInstruction, value_of
from nkigen_lite.tensors.spec import Spec

TILE_BYTES = 8 * 1024
"""Bytes per partition of the largest value of a tile: beyond, nothing is left to overlap."""

PLACES = 2
"""Every buffer of a loop twice, so that one iteration loads while the other computes."""


NARROW = 128
"""Columns up to which an instruction for all rows beats one for each: what an instruction takes to
begin is as long as 64 elements of a partition."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The layout of a group in SBUF.

    `rows` rows of a tile are in each partition, `columns` of their elements; `is_line`: all is one
    axis that is cut anywhere. `interleaved` tiles are worked on together,
    instruction by instruction, where instructions alternate between engines. `problem` is the
    reason why the group does not fit.
    """

    steps: tuple[TileInstruction, ...]
    made: Mapping[str, str] = field(repr=False)
    full: Mapping[str, bool] = field(repr=False)
    dtypes: Mapping[str, DType] = field(repr=False)
    is_line: bool
    rows: int
    columns: int
    bytes_per_partition: int
    problem: str | None = None
    interleaved: int = 1

    def __str__(self) -> str:
        interleaved = "" if self.interleaved == 1 else ", two tiles interleaved"
        return (
            f"{len(self.steps)} instructions a tile, {self.rows} x {self.columns} elements and "
            f"{self.bytes_per_partition} B a partition, twice{interleaved}"
        )


@dataclass(frozen=True, slots=True)
class Context:
    """Facts about all groups of a graph: the specs of values, the numbers that constants are
    everywhere, the target."""

    specs: Mapping[str, Spec]
    numbers: dict[str, float]
    target: Target


def fit(
    nodes: list[Node], domain: IterationDomain, context: Context,
    stored: frozenset[str] = frozenset(),
) -> Fit:  # fmt: skip
    """Steps of the group and the size of its tiles; `stored` values must be made."""
    selector = _selected(nodes, domain, context, stored)
    columns, rows = domain.size(Role.columns), domain.size(Role.rows)
    wide = max((d.itemsize for v, d in selector.dtypes.items() if selector.full.get(v)), default=4)
    resident = resident_bytes(domain, context)
    usable = context.target.usable_sbuf_bytes - resident
    each, per_row = _bytes_per_element(selector)
    most = usable // PLACES // max(1, each)
    width = columns
    line = is_line(domain) and not has_reduction(nodes)
    if line:
        rows = PARTITIONS
    if not has_reduction(nodes):
        width = min(width, TILE_BYTES // wide, most)
    if width > most:
        need, have = width * each, usable // PLACES
        return Fit(
            (), {}, {}, {}, False, 1, width, need, f"its tiles need {need} of {have} B a partition"
        )
    repeat = 1
    if width == columns and not line:
        repeat = max(1, min(TILE_BYTES // (wide * width), most // width, -(-rows // PARTITIONS)))
        while repeat > 1 and rows % (PARTITIONS * repeat) and rows // (PARTITIONS * repeat) == 0:
            repeat -= 1
    held = repeat * width * each + repeat * per_row
    interleaved = 2 if _goes_to_and_fro(selector.steps) and 2 * PLACES * held <= usable else 1
    return Fit(
        tuple(selector.steps), selector.tiles, selector.full, selector.dtypes, line, repeat, width,
        held, interleaved=interleaved,
    )  # fmt: skip


def _goes_to_and_fro(steps: list[TileInstruction]) -> bool:
    """Whether ScalarE's functions come before and after other engines' steps: in its one order of
    instructions it would stand still."""
    mine = [step.instruction == "activation" for step in steps]
    return sum(a != b for a, b in pairwise(mine)) > 1


MOST_TILES = 3
"""Tiles that one operation takes besides its operands, at most."""


def surely_fits(nodes: list[Node], domain: IterationDomain, context: Context) -> bool:
    """Whether `fit` would find no problem, without choosing instructions."""
    columns, count = domain.size(Role.columns), len(domain.of)
    width = columns if has_reduction(nodes) else 1
    usable = context.target.usable_sbuf_bytes
    return 4 * count * (columns + MOST_TILES * width) <= usable // PLACES


def in_rows(
    nodes: list[Node], domain: IterationDomain, context: Context, stored: frozenset[str],
    most: int | None = None,
) -> Fit:  # fmt: skip
    """Instructions of a group on one row a partition, whole or `most` elements wide; then every
    stored value has a tile of its own."""
    selector = _selected(nodes, domain, context, stored, alone=most is not None)
    each, per_row = _bytes_per_element(selector)
    width = domain.size(Role.columns) if most is None else min(most, domain.size(Role.columns))
    return Fit(
        tuple(selector.steps), selector.tiles, selector.full, selector.dtypes, False, 1, width,
        width * each + per_row,
    )  # fmt: skip


def is_line(domain: IterationDomain) -> bool:
    """Whether all values are one long axis, in loops at most."""
    only = [a for a in domain.axes if a.size > 1 and a.role is not Role.batch]
    return len(only) == 1 and only[0].role is Role.columns and domain.size(Role.rows) == 1


def has_reduction(nodes: list[Node]) -> bool:
    """Whether some operation needs whole rows."""
    return any(n.record.kind in (Kind.reduce, Kind.scan) for n in nodes)


RESIDENT_BYTES = 64 * 1024
"""Bytes per partition for rows that lie on every partition, with the one that they are copied from:
a third of the smallest SBUF. Beyond, a row is read again with every tile."""


def resident_bytes(domain: IterationDomain, context: Context) -> int:
    """Bytes per partition of the rows that every partition has."""
    columns = domain.size(Role.columns)
    return sum(
        context.specs[v].dtype.itemsize * columns for v in column_values(domain, context)
    )  # fmt: skip


def column_values(domain: IterationDomain, context: Context) -> list[str]:
    """Values that are the same for all rows and batches and small enough to be kept on every
    partition."""
    rest = (Role.rows, Role.batch)
    found, left = list[str](), RESIDENT_BYTES
    for value in domain.of:
        same = value not in context.numbers and not any(domain.has(value, r) for r in rest)
        if same and domain.has(value, Role.columns) and prod(domain.size(r) for r in rest) > 1:
            need = 2 * context.specs[value].dtype.itemsize * domain.size(Role.columns)
            if need <= left:
                found.append(value)
                left -= need
    return found


def _selected(
    nodes: list[Node], domain: IterationDomain, context: Context, stored: frozenset[str],
    alone: bool = False,
) -> Selector:  # fmt: skip
    """The selector of the group after selection: instructions, and the tiles of values."""
    needed = dict.fromkeys(stored, 1)
    for node in nodes:
        for operand in node.operands:
            needed[operand] = needed.get(operand, 0) + 1
    full = {v: domain.has(v, Role.columns) for v in domain.of}
    if domain.size(Role.columns) == 1:
        full = dict.fromkeys(full, True)
    numbers = context.numbers
    dtypes = {v: context.specs[v].dtype for v in (*domain.of, *numbers)}
    wide = domain.size(Role.columns) > NARROW
    selector = Selector(nodes, full, needed, numbers, dtypes, context.target, wide, RULES)
    for node in nodes:
        if node.name in stored or not needed.get(node.name):
            selector.keep(node.name, alone)
    return selector


def _bytes_per_element(selector: Selector) -> tuple[int, int]:
    """Bytes that are alive at once for each column, and for each row, values sharing places."""
    places = shared_places(selector.steps, selector.full, selector.dtypes, frozenset())
    sizes = dict[str, tuple[bool, int]]()
    for value, place in places.items():
        sizes[place] = (selector.full[value], selector.dtypes[value].itemsize)
    return (
        sum(size for full, size in sizes.values() if full),
        sum(size for full, size in sizes.values() if not full),
    )


def shared_places(
    steps: Sequence[TileInstruction], full: Mapping[str, bool], dtypes: Mapping[str, DType],
    resident: frozenset[str],
) -> dict[str, str]:  # fmt: skip
    """Value → the value whose buffer it uses: one that nothing needs any more.

    An instruction may write where it reads, element by element; `resident` values keep theirs.
    """
    last = {v: number for number, step in enumerate(steps) for v in (*step.reads, *step.writes)}
    places: dict[str, str] = {}
    free: dict[tuple[bool, DType], list[str]] = {}

    def release(values: tuple[str, ...], number: int) -> None:
        for value in dict.fromkeys(values):
            if last[value] == number and value not in resident:
                free.setdefault((full[value], dtypes[value]), []).append(places[value])

    for number, step in enumerate(steps):
        for value in step.reads:
            places.setdefault(value, value)
        for value in reversed(step.writes):  # reduce_res first: it may not lie where a bias is read
            if value == value_of(step.operands["dst"]):
                release(step.reads, number)
            if value in places:  # written in part
                continue
            key = (full[value], dtypes[value])
            places[value] = free[key].pop() if free.get(key) else value
        release(tuple(w for w in step.writes if w not in step.reads), number)
    return places
