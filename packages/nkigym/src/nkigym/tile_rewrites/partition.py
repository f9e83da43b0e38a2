"""A root program taken apart.

What could ever meet in one step is one part: loads of the same rows of a parameter; calls of one
operator whose operands but the growing one are equal in value, and whose growing ones come from one
part; stores of the results of one part. Values do not change, so neither do the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from neuroncore.errors import LaunchError
from nkigym.tile_rewrites.calls import Calls
from nkigym.tile_rewrites.graph import RewriteGraph
from nkigym.tile_rewrites.interning import InternTable
from nkigym.tile_rewrites.kinds import EXTRA, KNOWN, LOAD_TWICE, TRANSFORMS
from nkigym.tile_rewrites.loads import Loads
from nkigym.tile_rewrites.nodes import Box, Call, Operand, Slice
from nkigym.tile_rewrites.stores import Stores
from nkigym.tile_rewrites.value_numbering import Numbers, atoms
from nkigym.tiles.operators import OPERATORS
from nkigym.tiles.program import (
    ALLOCATE,
    LOAD,
    STORE,
    Interval,
    Reference,
    Shape,
    Statement,
    TileProgram,
    copies_of,
    number_of,
    with_numbers,
)
from nkigym.tiles.roots import TILE


def check_preconditions(program: TileProgram) -> None:
    """Raise LaunchError for a program of which value numbers do not know every atom."""
    stored: dict[str, list[tuple[int, Reference]]] = {}
    shapes = program.shapes
    for line, statement in enumerate(program.statements):
        for reference in (*statement.references, statement.output):
            if not _is_of_atoms(reference, shapes.get(reference.name, reference.shape)):
                raise _wrong(
                    program, line, f"{reference.name} is cut at columns {_columns(reference)}",
                    f"columns in multiples of {TILE}, or up to the last",
                )  # fmt: skip
        if statement.operator != STORE:
            continue
        others = stored.setdefault(statement.output.name, [])
        for before, other in others:
            if _meet(other, statement.output):
                raise _wrong(
                    program, line,
                    f"{statement.output.name} is written where statement {before} has written",
                    "each element of an output stored once",
                )  # fmt: skip
        others.append((line, statement.output))


def _is_of_atoms(reference: Reference, shape: Shape) -> bool:
    """Whether its columns are whole atoms of something of this shape, or up to its last."""
    start, stop = reference.intervals[1]
    return start % TILE == 0 and (stop % TILE == 0 or stop == shape[1])


def _columns(reference: Reference) -> str:
    start, stop = reference.intervals[1]
    return f"{start}:{stop}"


def _meet(one: Reference, other: Reference) -> bool:
    return all(_overlap(a, b) for a, b in zip(one.intervals, other.intervals, strict=True))


def _overlap(one: Interval, other: Interval) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _wrong(program: TileProgram, line: int, what: str, expected: str) -> LaunchError:
    return LaunchError(
        f"tile program {program.name}, statement {line}: {what}", expected=expected,
        hint="no step of a search would know that its values stay",
    )  # fmt: skip


class ComponentKey(NamedTuple):
    """A part to be: its kind, and what its members have in common."""

    kind: type[Loads | Calls | Stores]
    shared: object


def rewrite_graph(
    program: TileProgram, transforms: Iterable[str] = tuple(TRANSFORMS)
) -> RewriteGraph:
    """The space of a root program under some transforms; tiles are numbered (`with_numbers`).

    Raises KeyError where a transform is none, LaunchError for a program that is none, or of which
    value numbers do not know every atom.
    """
    program = with_numbers(program)
    check_preconditions(program)
    kinds = frozenset(kind for name in transforms for kind in KNOWN[name])
    taken = _Partition(InternTable(kinds, LOAD_TWICE in kinds))
    for statement in program.statements:
        _TAKE.get(statement.operator, _Partition.call)(taken, statement)
    order = (Loads, Calls, Stores)
    homes = sorted(taken.members, key=lambda home: order.index(home.kind))
    place = {home: at for at, home in enumerate(homes)}
    return RewriteGraph(
        program,
        tuple(home.kind.of(taken.table, taken.members[home]) for home in homes),
        tuple(tuple(place[reader] for reader in taken.readers[home]) for home in homes),
    )


@dataclass(slots=True)
class _Partition:
    """The statements met so far."""

    table: InternTable
    members: dict[ComponentKey, dict[int, Any]] = field(default_factory=dict)
    readers: dict[ComponentKey, dict[ComponentKey, None]] = field(default_factory=dict)
    slices: dict[int, Slice] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    home: dict[int, ComponentKey] = field(default_factory=dict)  # of a variable
    stored: int = 0

    def load(self, statement: Statement) -> None:
        source = statement.references[0]
        number = number_of(statement.output)
        copies = copies_of(statement)
        self.table.repeats |= copies > 1
        self.slices[number] = self.table.slice(source.name, *source.intervals, copies=copies)
        home = ComponentKey(Loads, (source.name, source.intervals[0]))
        self.home[number] = home
        self._put(home, number, self.slices[number], ())

    def call(self, statement: Statement) -> None:
        number = number_of(statement.output)
        operands = tuple(self._operand(*operand) for operand in statement.operands.items())
        attributes = tuple(statement.attributes.items())
        call = self.calls[number] = self.table.call(statement.operator, operands, attributes)
        home = self.home[number] = self._home_of(number, call)
        self._put(home, number, call, tuple(operand.number for operand in operands))

    def store(self, statement: Statement) -> None:
        read, written = statement.references
        number = number_of(read)
        values = atoms(self._values(number), read.intervals[1])
        store = self.table.store(number, _box(read), written.name, _box(written), values)
        self._put(ComponentKey(Stores, self.home[number]), self.stored, store, (number,))
        self.stored += 1

    def allocate(self, statement: Statement) -> None:
        """Of no part: nothing is done to the allocation of an output."""

    def _put(self, home: ComponentKey, number: int, member: object, read: tuple[int, ...]) -> None:
        self.members.setdefault(home, {})[number] = member
        self.readers.setdefault(home, {})
        for variable in read:
            self.readers[self.home[variable]][home] = None

    def _values(self, number: int) -> Numbers:
        return (self.slices.get(number) or self.calls[number]).values

    def _operand(self, name: str, given: Reference) -> Operand:
        number = number_of(given)
        rows, columns = _box(given)
        values = atoms(self._values(number), columns)
        return Operand(name, number, rows, columns, self.slices.get(number), values)

    def _home_of(self, number: int, call: Call) -> ComponentKey:
        grows = OPERATORS[call.operator].grows
        if not self.table.kinds.isdisjoint(_WIDER):
            return self._wider_home(call)
        if call.bucket is None or grows is None:
            return ComponentKey(Calls, number)
        grown = next(o for o in call.operands if o.name == grows[0])
        others = tuple(o.values for o in call.operands if o is not grown)
        shared = (call.operator, call.attributes, others, self.home[grown.number], grown.rows)
        return ComponentKey(Calls, shared)

    def _wider_home(self, call: Call) -> ComponentKey:
        """Of calls that are equal in value in all operands without the axis that can grow, and
        whose others come from one part: also equal ones, and calls that are adjacent in several."""
        record = OPERATORS[call.operator]
        axis = record.grows[1] if record.grows else record.widens
        shared = tuple(
            (o.name, self.home[o.number], o.rows)
            if axis is not None and record.operands[o.name][1] == axis
            else (o.name, o.values)
            for o in call.operands
        )
        return ComponentKey(Calls, (call.operator, call.attributes, shared))


_WIDER = {kind for kinds in EXTRA.values() for kind in kinds}


_TAKE: dict[str, Callable[[_Partition, Statement], None]] = {
    LOAD: _Partition.load,
    STORE: _Partition.store,
    ALLOCATE: _Partition.allocate,
}


def _box(reference: Reference) -> Box:
    rows, columns = reference.intervals
    return rows, columns
