"""Iteration domains: axes that the values of a group share, and their places on chip.

Every value of a group is seen as (batch…, rows, columns). Rows go over partitions, columns are
inside a partition, batch axes are loops. Axes of different values are one where NumPy's
broadcasting aligns them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod

from neuroncore.targets import PARTITIONS
from nkigen_lite.fusion.array_view import ArrayView, squeezed
from nkigen_lite.ir import Node
from nkigen_lite.ops import Kind

SHORT = 64
"""Columns below which partitions are better left empty: an instruction takes as long to begin."""

Point = tuple[str, int]
"""(value, axis)."""


class Role(Enum):
    """The place of a domain's axis on chip."""

    batch = "a loop"
    rows = "partitions"
    columns = "inside a partition"


class Axes:
    """Which axes of which values are one: union and find. A copy may be tried and thrown away."""

    def __init__(self) -> None:
        self.parent: dict[Point, Point] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.reduced: set[Point] = set()
        self.scanned: set[Point] = set()

    def copy(self) -> Axes:
        other = Axes()
        other.parent, other.shapes = dict(self.parent), dict(self.shapes)
        other.reduced, other.scanned = set(self.reduced), set(self.scanned)
        return other

    def add(self, value: str, shape: tuple[int, ...]) -> None:
        """A value whose axes are its own so far."""
        if value not in self.shapes:
            self.shapes[value] = shape
            for d in range(len(shape)):
                self.parent[value, d] = (value, d)

    def find(self, point: Point) -> Point:
        parent = self.parent
        while (above := parent[point]) != point:
            parent[point] = parent[above]  # half as far the next time
            point = above
        return point

    def of(self, value: str) -> tuple[Point | None, ...]:
        """The axis of the domain that each axis of the value is; None for one element."""
        shape = self.shapes[value]
        return tuple(self.find((value, d)) if n != 1 else None for d, n in enumerate(shape))

    def lay(self, a: str, b: str) -> None:
        """Axes of `a` and `b` from the last on are one where both have elements."""
        pairs = zip(reversed(range(len(self.shapes[a]))), reversed(range(len(self.shapes[b]))),
                    strict=False)  # fmt: skip
        for d, e in pairs:
            if self.shapes[a][d] != 1 and self.shapes[b][e] != 1:
                self.unite((a, d), (b, e))

    def unite(self, one: Point, other: Point) -> None:
        one, other = self.find(one), self.find(other)
        if one != other:
            self.parent[one] = other
            if one in self.reduced:
                self.reduced.add(other)

    def reductions(self) -> set[Point]:
        """The axes that some operation of the group reduces."""
        return {self.find(p) for p in self.reduced}


def lay_node(axes: Axes, node: Node, skip: Collection[str]) -> str | None:
    """The node's axes laid over its operands' (but for `skip`); or why that is not possible."""
    axes.add(node.name, node.spec.shape)
    if node.record.kind is Kind.reduce:
        return _lay_reduction(axes, node)
    if node.op == "reshape":
        return _lay_reshape(axes, node)
    for operand in node.operands:
        if operand not in skip:
            axes.lay(operand, node.name)
    if node.record.kind is Kind.scan:
        along = (node.name, node.attrs["axis"])
        axes.reduced.add(along)
        axes.scanned.add(along)
    return None


def _lay_reduction(axes: Axes, node: Node) -> str | None:
    (operand,) = node.operands
    gone, shape = set(node.attrs["axes"]), axes.shapes[operand]
    axes.reduced |= {(operand, d) for d in gone if shape[d] != 1}
    kept = [d for d in range(len(shape)) if d not in gone]
    places = kept if node.attrs["keepdims"] else range(len(kept))
    for d, e in zip(kept, places, strict=True):
        if shape[d] != 1:
            axes.unite((operand, d), (node.name, e))
    return None


def _lay_reshape(axes: Axes, node: Node) -> str | None:
    (operand,) = node.operands
    before, after = axes.shapes[operand], node.spec.shape
    if squeezed(before) != squeezed(after):
        return f"a reshape from {before} to {after} on chip"
    old = [d for d, n in enumerate(before) if n != 1]
    new = [d for d, n in enumerate(after) if n != 1]
    for d, e in zip(old, new, strict=True):
        axes.unite((operand, d), (node.name, e))
    return None


def is_across(node: Node, shape: tuple[int, ...]) -> bool:
    """Whether a reduction of an operand of `shape` keeps axes behind the reduced ones."""
    gone = {d for d in node.attrs.get("axes", ()) if shape[d] != 1}
    return bool(gone) and any(
        n != 1 and d not in gone for d, n in enumerate(shape) if d > min(gone)
    )


def clash(axes: Axes, value: str) -> str | None:
    """Why the value cannot be part of the domain; None where it can."""
    mine = [a for a in axes.of(value) if a is not None]
    if len(set(mine)) != len(mine):
        return f"{value} would have one axis of the group twice, as in x + x.T"
    return None


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a domain: neighbours that every value has together are merged. `step` elements of
    the merged axis lie between its turns, where it is cut in two."""

    size: int
    role: Role
    points: frozenset[Point]
    last: Point
    step: int = 1


@dataclass(frozen=True, slots=True)
class IterationDomain:
    """The iteration domain of a group: at most one axis of rows and one of columns."""

    axes: tuple[Axis, ...]
    of: dict[str, tuple[Point | None, ...]] = field(repr=False)

    def size(self, role: Role) -> int:
        return prod(a.size for a in self.axes if a.role is role)

    def has(self, value: str, role: Role) -> bool:
        """Whether the value changes along that role."""
        mine = set(self.of[value])
        return any(a.role is role and a.last in mine for a in self.axes)

    def without(self, values: Collection[str]) -> IterationDomain:
        """The domain as if it had not these values."""
        return IterationDomain(self.axes, {v: p for v, p in self.of.items() if v not in values})

    def strides(self, source: ArrayView, value: str, role: Role) -> tuple[int, ...]:
        """How far one step along each axis of the role moves in HBM."""
        places = self.of[value]
        found = []
        for axis in self.axes:
            if axis.role is role:
                at = [s for p, s in zip(places, source.strides, strict=True) if p == axis.last]
                found.append(at[0] * axis.step if at else 0)
        return tuple(found)

    def __str__(self) -> str:
        shown = ", ".join(f"{a.role.name} {a.size}" for a in self.axes)
        return f"({shown or 'one element'})"


def solve(
    axes: Axes, anchor: str, sources: dict[str, ArrayView], reduced_as: Role = Role.columns
) -> IterationDomain | str:
    """The domain of a group whose `anchor` has all axes; `sources` are what is read or written.

    Reduced axes are the columns (or what `reduced_as` says); without any, the last axis. Of the
    others the longest is the rows: it fills the most partitions. Returns the reason where such a
    domain does not exist.
    """
    order = [p for p in axes.of(anchor) if p is not None]
    sizes = {p: n for p, n in zip(axes.of(anchor), axes.shapes[anchor], strict=True) if p}
    of = {value: axes.of(value) for value in axes.shapes}
    reduced = axes.reductions()
    merged = _merged(order, sizes, axes, of, sources)
    gone = [group for group in merged if group[0] in reduced]
    if len(gone) > 1:
        return "it reduces axes that do not lie together"

    def length(group: list[Point]) -> int:
        return prod(sizes[p] for p in group)

    rows, columns = _rows_and_columns(merged, gone, length, reduced_as)
    parted = _parted(columns, sizes) if rows and columns and not gone else None
    if parted and rows and length(rows) < min(PARTITIONS, length(parted[0])):
        merged[-1:] = rows, columns = parted
    found = []
    for group in merged:
        role = Role.columns if group is columns else Role.rows if group is rows else Role.batch
        found.append(Axis(length(group), role, frozenset(group), group[-1]))
    return IterationDomain(tuple(found), of)


def _rows_and_columns(
    merged: list[list[Point]], gone: list[list[Point]], length: Callable[[list[Point]], int],
    reduced_as: Role,
) -> tuple[list[Point] | None, list[Point] | None]:  # fmt: skip
    """The columns are the reduced axis or the last; the rows, unless they are reduced, the longest
    of the others."""
    kept = [g for g in merged if g not in gone]
    if gone and reduced_as is Role.columns:
        return max(kept, key=length, default=None), gone[0]
    *others, columns = kept or [None]
    if gone and reduced_as is Role.rows:
        return gone[0], columns
    return max((g for g in others if g), key=length, default=None), columns


def _parted(
    columns: list[Point], sizes: dict[Point, int]
) -> tuple[list[Point], list[Point]] | None:
    """Neighbours as rows and columns, where the columns stay long enough."""
    for first in range(len(columns) - 1, 0, -1):
        if prod(sizes[p] for p in columns[first:]) >= SHORT:
            return columns[:first], columns[first:]
    return None


LEAST_CUT = 32
"""Columns that remain in a row after the cut: 128 B of float32."""


def spread_out(domain: IterationDomain) -> IterationDomain | None:
    """The domain with its columns cut into rows for more partitions than its rows fill; the rows
    become a loop. None where that does not fill twice as many."""
    columns = next((a for a in domain.axes if a.role is Role.columns), None)
    if columns is None:
        return None
    most = min(PARTITIONS, columns.size // LEAST_CUT)
    rows = next((n for n in range(most, 0, -1) if columns.size % n == 0), 0)
    if rows < 2 * domain.size(Role.rows):
        return None
    each = columns.size // rows
    down = replace(columns, size=rows, role=Role.rows, step=each)
    others = (
        replace(a, role=Role.batch) if a.role is Role.rows else a
        for a in domain.axes if a is not columns
    )  # fmt: skip
    return IterationDomain((*others, down, replace(columns, size=each)), domain.of)


def _merged(
    order: list[Point], sizes: dict[Point, int], axes: Axes,
    of: dict[str, tuple[Point | None, ...]], sources: dict[str, ArrayView],
) -> list[list[Point]]:  # fmt: skip
    """Neighbours joined where every value has both or neither, and lies so in HBM; not those
    between which running results begin anew."""
    reduced = axes.reductions()
    separate = {axes.find(p) for p in axes.scanned}
    merged: list[list[Point]] = []
    for point in order:
        if (
            merged
            and point not in separate
            and _joins(merged[-1][-1], point, sizes, of, reduced, sources)
        ):
            merged[-1].append(point)
        else:
            merged.append([point])
    return merged


def _joins(
    a: Point, b: Point, sizes: dict[Point, int], of: dict[str, tuple[Point | None, ...]],
    reduced: set[Point], sources: dict[str, ArrayView],
) -> bool:  # fmt: skip
    if (a in reduced) != (b in reduced):
        return False
    for value, places in of.items():
        if (a in places) != (b in places):
            return False
        if a in places and value in sources:
            strides = sources[value].strides
            if strides[places.index(a)] != strides[places.index(b)] * sizes[b]:
                return False
    return True


def matrix_domain(axes: Axes, anchor: str, transposed: bool) -> IterationDomain:
    """The domain of values (M, N): M the rows and N the columns, or the other way round."""
    roles = (Role.columns, Role.rows) if transposed else (Role.rows, Role.columns)
    return _domain_of(axes, anchor, roles)


def _domain_of(axes: Axes, anchor: str, roles: tuple[Role, ...]) -> IterationDomain:
    """The anchor's axes that have several elements, each by itself."""
    found = [
        Axis(n, role, frozenset((p,)), p)
        for p, n, role in zip(axes.of(anchor), axes.shapes[anchor], roles, strict=True)
        if p is not None
    ]
    return IterationDomain(tuple(found), {value: axes.of(value) for value in axes.shapes})


def strip_domain(axes: Axes, anchor: str) -> IterationDomain | str:
    """The domain of values (batch…, M, N) that are worked on some rows M at a time: N the columns.
    Returns why where the group is not of this kind."""
    places, shape = axes.of(anchor), axes.shapes[anchor]
    known = {p for p in places if p is not None}
    if any(p is not None and p not in known for v in axes.shapes for p in axes.of(v)):
        return "it has axes that the rows have not"
    if not axes.reductions() <= {places[-1]}:
        return "it reduces another axis than the columns"
    roles = (*(Role.batch,) * (len(shape) - 2), Role.rows, Role.columns)
    return _domain_of(axes, anchor, roles)
