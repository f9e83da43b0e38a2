"""Value numbers of a tile program, from its statements alone.

Every tile is cut into atoms, squares as large as all intervals of the program allow. What is loaded
is numbered by where it lies in its parameter, what is computed by what it is computed of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import gcd

from nkigym.checker.findings import Finding, NotAllowedError
from nkigym.checker.functions import Corner, Function, atom
from nkigym.checker.operators import RULES, Atoms
from nkigym.tiles.program import ALLOCATE, LOAD, STORE, Reference, Statement, TileProgram


@dataclass(slots=True)
class Numbers:
    """Gives numbers out; the same description gets the same one."""

    known: dict[Hashable, int] = field(default_factory=dict)

    def __call__(self, description: Hashable) -> int:
        return self.known.setdefault(description, len(self.known))


@dataclass(slots=True)
class Numbered:
    """What the statements of a program compute, and what is wrong with them.

    `tiles` has the atoms of every variable, `output` the number of every atom that is stored, by
    its first row and column.
    """

    program: TileProgram
    function: Function
    size: int
    number: Numbers
    findings: list[Finding] = field(default_factory=list)
    tiles: dict[str, Atoms] = field(default_factory=dict)
    output: dict[Corner, int] = field(default_factory=dict)
    allocated: bool = False

    def read(self, reference: Reference) -> Atoms:
        """The atoms of part of a variable. Raises NotAllowedError where there is no such part."""
        if reference.name not in self.tiles:
            raise NotAllowedError(f"{reference.name} is read before anything defines it")
        held = self.tiles[reference.name]
        size = self.size
        rows, columns = _inside(reference, (len(held) * size, len(held[0]) * size))
        if reference.shape != reference.extents:
            raise NotAllowedError(f"{reference.name} is said to be {reference.shape} large there")
        chosen = held[rows[0] // size : rows[1] // size]
        start, stop = columns[0] // size, columns[1] // size
        return [row[start:stop] for row in chosen]

    def define(self, reference: Reference, values: Atoms) -> None:
        """A new variable. Raises NotAllowedError where there is one, or where sizes differ."""
        extents = (len(values) * self.size, len(values[0]) * self.size)
        if reference.name in self.tiles:
            raise NotAllowedError(f"{reference.name} is defined again")
        if reference.shape != extents or reference.intervals != tuple((0, n) for n in extents):
            raise NotAllowedError(f"{reference.name} is {reference.shape}, its value {extents}")
        self.tiles[reference.name] = values

    # -- statements -------------------------------------------------------------------------------

    def allocate(self, statement: Statement) -> None:
        shapes = [shape for _, shape in self.program.parameters]
        if self.allocated:
            raise NotAllowedError("the output is allocated again")
        if statement.output.name != self.program.returns:
            raise NotAllowedError(f"{statement.output.name} is not the output")
        if statement.output.shape != self.function.shape(shapes):
            raise NotAllowedError(f"the output is {statement.output.shape}")
        self.allocated = True

    def load(self, statement: Statement) -> None:
        source = _only(statement, "src")
        shapes = dict(self.program.parameters)
        if source.name not in shapes:
            raise NotAllowedError(f"{source.name} is no parameter")
        if source.shape != shapes[source.name]:
            raise NotAllowedError(f"{source.name} is {shapes[source.name]}, not {source.shape}")
        rows, columns = _inside(source, shapes[source.name])
        across = range(*columns, self.size)
        values = [
            [self.number(atom(source.name, row, column)) for column in across]
            for row in range(*rows, self.size)
        ]
        self.define(statement.output, values)

    def store(self, statement: Statement) -> None:
        if [name for name, _ in statement.arguments] != ["src", "dst"]:
            raise NotAllowedError("a store has src and dst")
        read, written = statement.references
        if not self.allocated or written.name != self.program.returns:
            raise NotAllowedError(f"{written.name} is not allocated")
        if written != statement.output:
            raise NotAllowedError("a store says two places")
        rows, columns = _inside(written, written.shape)
        values = self.read(read)
        if read.extents != written.extents:
            raise NotAllowedError(f"stores {read.extents} as {written.extents}")
        for row, numbers in zip(range(*rows, self.size), values, strict=True):
            for column, number in zip(range(*columns, self.size), numbers, strict=True):
                if (row, column) in self.output:
                    raise NotAllowedError(f"output[{row}, {column}] is written again")
                self.output[row, column] = number

    def call(self, statement: Statement) -> None:
        rule = RULES.get(statement.operator)
        if rule is None:
            raise NotAllowedError(f"{statement.operator} is no operator")
        given = {n: v for n, v in statement.arguments if isinstance(v, Reference)}
        odd = given.keys() ^ {*rule.operands}
        if len(given) != len(statement.arguments) or not odd <= {*rule.optional}:
            raise NotAllowedError(f"{statement.operator} takes {', '.join(rule.operands)}")
        atoms = {name: self.read(reference) for name, reference in given.items()}
        rule.extents({n: (v.extents[0], v.extents[1]) for n, v in given.items()})
        self.define(statement.output, rule.values(atoms, self.number))


_TAKE: dict[str, Callable[[Numbered, Statement], None]] = {
    ALLOCATE: Numbered.allocate,
    LOAD: Numbered.load,
    STORE: Numbered.store,
}


def numbered(program: TileProgram, function: Function) -> Numbered:
    """Every statement read once."""
    made = Numbered(program, function, _atom_size(program), Numbers())
    for line, statement in enumerate(program.statements):
        take = _TAKE.get(statement.operator, Numbered.call)
        try:
            take(made, statement)
        except NotAllowedError as wrong:
            made.findings.append(Finding(line, str(wrong)))
    if not made.allocated:
        made.findings.append(Finding(None, "the output is never allocated"))
    return made


def wrong_values(made: Numbered) -> list[Finding]:
    """Atoms of the output that are missing, too many, or not what the function says."""
    found = []
    wanted = made.function.values(made.program.parameters, made.size, made.number)
    for (row, column), number in wanted.items():
        if (row, column) not in made.output:
            found.append(Finding(None, f"output[{row}, {column}] is never written"))
        elif made.output[row, column] != number:
            found.append(Finding(None, f"output[{row}, {column}] has another value"))
    return found


def _atom_size(program: TileProgram) -> int:
    """The largest that every interval and every shape is made of."""
    ends = {extent for _, shape in program.parameters for extent in shape}
    for statement in program.statements:
        for reference in (*statement.references, statement.output):
            for interval in reference.intervals:
                ends.update(interval)
    return gcd(*ends) or 1


def _inside(reference: Reference, shape: tuple[int, ...]) -> tuple[Corner, Corner]:
    """The intervals. Raises NotAllowedError where they leave the shape or are empty."""
    for (start, stop), extent in zip(reference.intervals, shape, strict=True):
        if not 0 <= start < stop <= extent:
            raise NotAllowedError(f"{reference.name} has no part [{start}, {stop}) of {extent}")
    rows, columns = reference.intervals
    return rows, columns


def _only(statement: Statement, name: str) -> Reference:
    """The one argument. Raises NotAllowedError where there are others."""
    match statement.arguments:
        case ((given, Reference() as reference),) if given == name:
            return reference
    raise NotAllowedError(f"a {statement.operator} has {name} and nothing else")
