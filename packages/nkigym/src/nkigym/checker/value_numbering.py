"""Value numbers of a tile program, from its statements alone.

Every tile is cut into atoms, squares as large as all intervals of the program allow. What is loaded
is numbered by its place in its parameter, what is computed by its operator and operands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from nkigym.checker.findings import Finding, NotAllowedError
from nkigym.checker.functions import Corner, Shape, atom
from nkigym.checker.operators import SEMANTICS, Atoms, across
from nkigym.tiles.program import ALLOCATE, LOAD, STORE, Reference, Statement, TileProgram


@dataclass(slots=True)
class Numbers:
    """Gives numbers out; the same description gets the same one."""

    known: dict[Hashable, int] = field(default_factory=dict)

    def __call__(self, description: Hashable) -> int:
        return self.known.setdefault(description, len(self.known))


@dataclass(slots=True)
class Numbered:
    """The values that the statements of a program compute, and its findings.

    `tiles` has the atoms of every variable, `shapes` its extents, `outputs` for each output the
    number of every atom that is stored, by its first row and column.
    """

    program: TileProgram
    expected: Sequence[Shape] | None
    """The shapes of the outputs; None: as they are allocated."""
    size: int
    number: Numbers
    findings: list[Finding] = field(default_factory=list)
    tiles: dict[str, Atoms] = field(default_factory=dict)
    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)
    outputs: dict[str, dict[Corner, int]] = field(default_factory=dict)

    def read(self, reference: Reference) -> Atoms:
        """The atoms of part of a variable. Raises NotAllowedError where it does not exist."""
        if reference.name not in self.tiles:
            raise NotAllowedError(f"{reference.name} is read before anything defines it")
        atoms = self.tiles[reference.name]
        size = self.size
        rows, columns = _inside(reference, self.shapes[reference.name])
        if reference.shape != reference.extents:
            raise NotAllowedError(f"{reference.name} is given the shape {reference.shape} there")
        chosen = atoms[rows[0] // size : -(-rows[1] // size)]  # a row is an atom high,
        start, stop = columns[0] // size, -(-columns[1] // size)  # a column one wide
        return [row[start:stop] for row in chosen]

    def define(self, reference: Reference, values: Atoms, extents: tuple[int, int]) -> None:
        """A new variable. Raises NotAllowedError where there is one, or where sizes differ."""
        if reference.name in (*self.tiles, *self.outputs, *dict(self.program.parameters)):
            raise NotAllowedError(f"{reference.name} is defined again")
        if reference.shape != extents or reference.intervals != tuple((0, n) for n in extents):
            raise NotAllowedError(f"{reference.name} is {reference.shape}, its value {extents}")
        self.tiles[reference.name], self.shapes[reference.name] = values, extents

    def take_all(self) -> None:
        """Reads every statement once."""
        for line, statement in enumerate(self.program.statements):
            take = _TAKE.get(statement.operator, Numbered.call)
            try:
                take(self, statement)
            except NotAllowedError as wrong:
                self.findings.append(Finding(line, str(wrong)))

    # -- statements -------------------------------------------------------------------------------

    def allocate(self, statement: Statement) -> None:
        name, shape = statement.output.name, statement.output.shape
        if name in self.outputs:
            raise NotAllowedError(f"the {name} is allocated again")
        if name in (*self.tiles, *dict(self.program.parameters)):
            raise NotAllowedError(f"{name} is the name of something else")
        if name not in self.program.returns:
            raise NotAllowedError(f"{name} is not the output")
        place, expected = self.program.returns.index(name), self.expected
        if expected is not None and (place >= len(expected) or shape != expected[place]):
            raise NotAllowedError(f"the {name} is {shape}")
        self.outputs[name] = {}

    def load(self, statement: Statement) -> None:
        source, copies = _loaded(statement)
        shapes = dict(self.program.parameters)
        if source.name not in shapes:
            raise NotAllowedError(f"{source.name} is not a parameter")
        if source.shape != shapes[source.name]:
            raise NotAllowedError(f"{source.name} is {shapes[source.name]}, not {source.shape}")
        rows, columns = _inside(source, shapes[source.name])
        values = [
            [self.number(atom(source.name, row, column)) for column in range(*columns, self.size)]
            for row in range(*rows, self.size)
        ]
        if columns[1] - columns[0] == 1 and copies % self.size == 0 and self.size > 1:
            copied = [[self.number(across(one))] * (copies // self.size) for (one,) in values]
        else:
            copied = [row * copies for row in values]
        extents = rows[1] - rows[0], (columns[1] - columns[0]) * copies
        self.define(statement.output, copied, extents)

    def store(self, statement: Statement) -> None:
        if [name for name, _ in statement.arguments] != ["src", "dst"]:
            raise NotAllowedError("a store has src and dst")
        read, written = statement.references
        output = self.outputs.get(written.name)
        if output is None:
            raise NotAllowedError(f"{written.name} is not allocated")
        if written != statement.output:
            raise NotAllowedError("a store says two places")
        rows, columns = _inside(written, written.shape)
        values = self.read(read)
        if read.extents != written.extents:
            raise NotAllowedError(f"stores {read.extents} as {written.extents}")
        for row, numbers in zip(range(*rows, self.size), values, strict=True):
            for column, number in zip(range(*columns, self.size), numbers, strict=True):
                if (row, column) in output:
                    raise NotAllowedError(f"{written.name}[{row}, {column}] is written again")
                output[row, column] = number

    def call(self, statement: Statement) -> None:
        rule = SEMANTICS.get(statement.operator)
        if rule is None:
            raise NotAllowedError(f"{statement.operator} is not an operator")
        given, others = statement.operands, statement.attributes
        odd, names = given.keys() ^ {*rule.operands}, (*rule.operands, *rule.attributes)
        if any(str(value) == "-0.0" for value in others.values()):
            raise NotAllowedError(f"{statement.operator} takes 0.0, not -0.0")
        twice = len(given) + len(others) != len(statement.arguments)
        if twice or not odd <= {*rule.optional} or not others.keys() <= rule.attributes.keys():
            raise NotAllowedError(f"{statement.operator} takes {', '.join(names)}")
        atoms = {name: self.read(reference) for name, reference in given.items()}
        extents = rule.extents({n: (v.extents[0], v.extents[1]) for n, v in given.items()})
        values = rule.values(atoms, self.number, {**rule.attributes, **others})
        self.define(statement.output, values, extents)


_TAKE: dict[str, Callable[[Numbered, Statement], None]] = {
    ALLOCATE: Numbered.allocate,
    LOAD: Numbered.load,
    STORE: Numbered.store,
}


MOST_ATOMS = 1 << 24
"""Pieces of tiles that are numbered, and pairs of them that are multiplied: ten seconds, and a
gigabyte.
"""


def numbered(
    program: TileProgram,
    expected: Sequence[Shape] | None = None,
    size: int | None = None,
    number: Numbers | None = None,
) -> Numbered:
    """Every statement read once, in atoms of that size (None: as large as it allows)."""
    made = Numbered(program, expected, size or atom_size(program), number or Numbers())
    pieces = sum(_pieces(statement, made.size) for statement in program.statements)
    if pieces > MOST_ATOMS:
        what = f"{pieces:,} pieces and products of pieces, more than {MOST_ATOMS:,}"
        why = f"tiles are cut into pieces of {made.size} x {made.size}, of which intervals consist"
        made.findings.append(Finding(None, f"{why}: {what}"))
        return made
    made.take_all()
    if expected is not None and len(program.returns) != len(expected):
        what = f"returns {len(program.returns)} outputs, not {len(expected)}"
        made.findings.append(Finding(None, what))
    missing = [name for name in program.returns if name not in made.outputs]
    made.findings += [Finding(None, f"the {name} is never allocated") for name in missing]
    return made


def wrong_values(made: Numbered, every: Sequence[Mapping[Corner, int]]) -> list[Finding]:
    """Atoms of the outputs that are missing, or not what is expected of `every` output."""
    found = []
    numbered = zip(made.program.returns, every, strict=False)  # another number is a finding already
    for name, expected in numbered:
        output = made.outputs.get(name, {})
        for (row, column), number in expected.items():
            if (row, column) not in output:
                found.append(Finding(None, f"{name}[{row}, {column}] is never written"))
            elif output[row, column] != number:
                found.append(Finding(None, f"{name}[{row}, {column}] has another value"))
    return found


def atom_size(program: TileProgram) -> int:
    """The largest that every interval and every shape is made of; but rows and columns."""
    ends = {extent for _, shape in program.parameters for extent in shape if extent > 1}
    shapes = program.shapes
    for statement in program.statements:
        for reference in (*statement.references, statement.output):
            whole = shapes.get(reference.name, reference.shape)
            for interval, extent in zip(reference.intervals, whole, strict=False):
                ends.update(interval if (*interval, extent) != (0, 1, 1) else ())
    return gcd(*ends) or 1


def _pieces(statement: Statement, size: int) -> int:
    """The atoms of what it makes, and the pairs that these are products of."""
    made = prod(-(-extent // size) for extent in statement.output.extents)
    stationary = dict(statement.arguments).get("stationary")
    rows = stationary.extents[0] if isinstance(stationary, Reference) else 0
    return made * (1 + -(-rows // size))


def _inside(reference: Reference, shape: tuple[int, ...]) -> tuple[Corner, Corner]:
    """The intervals. Raises NotAllowedError where they leave the shape or are empty."""
    for (start, stop), extent in zip(reference.intervals, shape, strict=True):
        if not 0 <= start < stop <= extent:
            raise NotAllowedError(f"{reference.name} has no part [{start}, {stop}) of {extent}")
    rows, columns = reference.intervals
    return rows, columns


def _loaded(statement: Statement) -> tuple[Reference, int]:
    """The loaded part, and how often. Raises NotAllowedError where there are other arguments."""
    match statement.arguments:
        case (("src", Reference() as source),):
            return source, 1
        case (("src", Reference() as source), ("copies", int() as copies)) if copies > 1:
            return source, copies
    raise NotAllowedError("a load has src, maybe copies, and nothing else")
