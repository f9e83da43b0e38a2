"""A root program taken apart.

What could ever meet in one step is one part: loads of the same rows of a parameter; calls of one
operator whose operands but the growing one are equal in value, and whose growing ones come from one
part; stores of the results of one part. Values do not change, so neither do the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nkigym.space.allowed import refuse_others
from nkigym.space.calls import Call, Calls, Operand
from nkigym.space.kinds import EXTRA, KNOWN, LOAD_TWICE, TRANSFORMS
from nkigym.space.loads import Loads
from nkigym.space.renaming import Slice
from nkigym.space.space import Space
from nkigym.space.stores import Box, Stores
from nkigym.space.table import Table
from nkigym.space.values import Numbers, atoms
from nkigym.tiles.naming import number_of, with_numbers
from nkigym.tiles.operators import OPERATORS
from nkigym.tiles.program import (
    ALLOCATE,
    LOAD,
    STORE,
    Reference,
    Statement,
    TileProgram,
    copies_of,
)


class Home(NamedTuple):
    """A part to be: its kind, and what its members have in common."""

    kind: type[Loads | Calls | Stores]
    shared: object


def space_of(program: TileProgram, transforms: Iterable[str] = tuple(TRANSFORMS)) -> Space:
    """The space of a root program under some transforms; tiles are numbered (`with_numbers`).

    Raises KeyError where a transform is none, LaunchError for a program that is none, or of which
    value numbers do not know every atom.
    """
    program = with_numbers(program)
    refuse_others(program)
    kinds = frozenset(kind for name in transforms for kind in KNOWN[name])
    taken = _Apart(Table(kinds, LOAD_TWICE in kinds))
    for statement in program.statements:
        _TAKE.get(statement.operator, _Apart.call)(taken, statement)
    order = (Loads, Calls, Stores)
    homes = sorted(taken.members, key=lambda home: order.index(home.kind))
    place = {home: at for at, home in enumerate(homes)}
    return Space(
        program,
        tuple(home.kind.of(taken.table, taken.members[home]) for home in homes),
        tuple(tuple(place[reader] for reader in taken.readers[home]) for home in homes),
    )


@dataclass(slots=True)
class _Apart:
    """The statements met so far."""

    table: Table
    members: dict[Home, dict[int, Any]] = field(default_factory=dict)
    readers: dict[Home, dict[Home, None]] = field(default_factory=dict)
    slices: dict[int, Slice] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    home: dict[int, Home] = field(default_factory=dict)  # of a variable
    stored: int = 0

    def load(self, statement: Statement) -> None:
        source = statement.references[0]
        number = number_of(statement.output)
        copies = copies_of(statement)
        self.table.repeats |= copies > 1
        self.slices[number] = self.table.slice(source.name, *source.intervals, copies=copies)
        home = Home(Loads, (source.name, source.intervals[0]))
        self.home[number] = home
        self._put(home, number, self.slices[number], ())

    def call(self, statement: Statement) -> None:
        number = number_of(statement.output)
        operands = tuple(
            self._operand(name, given)
            for name, given in statement.arguments
            if isinstance(given, Reference)
        )
        attributes = tuple(
            (name, given) for name, given in statement.arguments if not isinstance(given, Reference)
        )
        call = self.calls[number] = self.table.call(statement.operator, operands, attributes)
        home = self.home[number] = self._home_of(number, call)
        self._put(home, number, call, tuple(operand.number for operand in operands))

    def store(self, statement: Statement) -> None:
        read, written = statement.references
        number = number_of(read)
        values = atoms(self._values(number), read.intervals[1])
        store = self.table.store(number, _box(read), written.name, _box(written), values)
        self._put(Home(Stores, self.home[number]), self.stored, store, (number,))
        self.stored += 1

    def allocate(self, statement: Statement) -> None:
        """Of no part: nothing is done to the allocation of an output."""

    def _put(self, home: Home, number: int, member: object, read: tuple[int, ...]) -> None:
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

    def _home_of(self, number: int, call: Call) -> Home:
        grows = OPERATORS[call.operator].grows
        if not self.table.kinds.isdisjoint(_WIDER):
            return self._wider_home(call)
        if call.bucket is None or grows is None:
            return Home(Calls, number)
        grown = next(o for o in call.operands if o.name == grows[0])
        others = tuple(o.values for o in call.operands if o is not grown)
        shared = (call.operator, call.attributes, others, self.home[grown.number], grown.rows)
        return Home(Calls, shared)

    def _wider_home(self, call: Call) -> Home:
        """Of calls that are equal in value in all operands without the axis that can grow, and
        whose others come from one part: also equal ones, and those that touch in several."""
        record = OPERATORS[call.operator]
        axis = record.grows[1] if record.grows else record.widens
        shared = tuple(
            (o.name, self.home[o.number], o.rows)
            if axis is not None and record.operands[o.name][1] == axis
            else (o.name, o.values)
            for o in call.operands
        )
        return Home(Calls, (call.operator, call.attributes, shared))


_WIDER = {kind for kinds in EXTRA.values() for kind in kinds}


_TAKE: dict[str, Callable[[_Apart, Statement], None]] = {
    LOAD: _Apart.load,
    STORE: _Apart.store,
    ALLOCATE: _Apart.allocate,
}


def _box(reference: Reference) -> Box:
    rows, columns = reference.intervals
    return rows, columns
