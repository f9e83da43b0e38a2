"""Tile programs: straight lines of loads, computations and stores of whole tiles.

Everything is a value: two programs are the same exactly where they are equal, names, order and all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from neuroncore.errors import LaunchError

Interval = tuple[int, int]
"""Half open: start and stop, in elements."""
Shape = tuple[int, ...]
Attribute = str | int | float | bool

ALLOCATE = "allocate"
LOAD = "load"
STORE = "store"
REPEAT = "repeat"
"""What a load of several copies is called in a text."""

OUTPUT = "output"
"""What the tensor is called that a tile program returns, where it is the only one."""


class Reference(NamedTuple):
    """Part of a variable: an interval for each axis.

    `shape` is that of the whole tensor for a parameter or the output; of a tile it is the extents
    of the intervals.
    """

    name: str
    shape: Shape
    intervals: tuple[Interval, ...]

    @property
    def extents(self) -> Shape:
        return tuple(stop - start for start, stop in self.intervals)


class Statement(NamedTuple):
    """`output = operator(arguments)`; a load, a store and an allocation are operators, too."""

    operator: str
    arguments: tuple[tuple[str, Reference | Attribute], ...]
    output: Reference

    @property
    def references(self) -> list[Reference]:
        """The tensors it reads; of a store also what it writes, which is its second argument."""
        return [value for _, value in self.arguments if isinstance(value, Reference)]

    @property
    def operands(self) -> dict[str, Reference]:
        """The arguments that are tensors, by name."""
        return {n: value for n, value in self.arguments if isinstance(value, Reference)}

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The other arguments, by name."""
        return {n: value for n, value in self.arguments if not isinstance(value, Reference)}


class TileProgram(NamedTuple):
    """A function of tensors as statements over tiles."""

    name: str
    parameters: tuple[tuple[str, Shape], ...]
    statements: tuple[Statement, ...]
    dtype: str
    returns: tuple[str, ...] = (OUTPUT,)

    @property
    def outputs(self) -> dict[str, Shape]:
        """Allocated outputs, in order: name and shape."""
        made = (s.output for s in self.statements if s.operator == ALLOCATE)
        return {output.name: output.shape for output in made}

    @property
    def shapes(self) -> dict[str, Shape]:
        """Everything by name: parameters, outputs, tiles. Parts of a tile do not say its shape."""
        made = (s.output for s in self.statements if s.operator != STORE)
        return dict(self.parameters) | {output.name: output.shape for output in made}


def tile(name: str, *extents: int) -> Reference:
    """All of a tile variable."""
    return Reference(name, extents, tuple((0, extent) for extent in extents))


def part_of_tile(name: str, *intervals: Interval) -> Reference:
    """Part of a tile variable."""
    return Reference(name, tuple(stop - start for start, stop in intervals), intervals)


def part_of(name: str, shape: Shape, *intervals: Interval) -> Reference:
    """Part of a parameter or of the output."""
    return Reference(name, shape, intervals)


def load(name: str, source: Reference, copies: int = 1) -> Statement:
    """A tile of part of a parameter, or of so many copies of it side by side."""
    rows, columns = source.extents
    more = (("copies", copies),) if copies > 1 else ()
    return Statement(LOAD, (("src", source), *more), tile(name, rows, columns * copies))


def copies_of(statement: Statement) -> int:
    """How many copies of its source a load puts side by side."""
    copies = dict(statement.arguments).get("copies", 1)
    assert isinstance(copies, int)
    return copies


# -- numbered names --------------------------------------------------------------------------------


_NUMBERED = re.compile(r"t(0|[1-9][0-9]*)")


def with_numbers(program: TileProgram) -> TileProgram:
    """The same program, whose tiles are t0, t1, … in the order in which they are made.

    One whose tiles have such names already, with numbers that rise, stays as it is. Raises
    LaunchError for a tile that has the name of something else, or is read before it is made.
    """
    taken = {name for name, _ in program.parameters} | program.outputs.keys()
    made = list(_made(program, taken))
    numbers = [int(name[1:]) for name in made if _NUMBERED.fullmatch(name)]
    if len(numbers) == len(made) and numbers == sorted(numbers):
        return program
    free = (name for n in count() if (name := f"t{n}") not in taken)
    names = dict(zip(made, free, strict=False))
    renamed = (_renamed(statement, names) for statement in program.statements)
    return program._replace(statements=tuple(renamed))


def number_of(tile: Reference) -> int:
    """Of a tile with such a name."""
    return int(tile.name[1:])


def _made(program: TileProgram, taken: Collection[str]) -> Iterator[str]:
    """The tiles, each once, in order."""
    known: set[str] = set()
    for statement in program.statements:
        for reference in statement.references:
            if reference.name not in known and reference.name not in taken:
                raise _wrong(program, f"{reference.name} is read before anything makes it")
        if statement.operator in (ALLOCATE, STORE):
            continue
        name = statement.output.name
        if name in known or name in taken:
            raise _wrong(program, f"{name} is defined already")
        known.add(name)
        yield name


def _wrong(program: TileProgram, what: str) -> LaunchError:
    return LaunchError(
        f"tile program {program.name}: {what}", expected="each tile made once, before it is read",
        hint="nkigym.tiles.parse_tiles reads a text and names the line",
    )  # fmt: skip


def _renamed(statement: Statement, names: Mapping[str, str]) -> Statement:
    def new(reference: Reference) -> Reference:
        return reference._replace(name=names.get(reference.name, reference.name))

    arguments = tuple(
        (name, new(given) if isinstance(given, Reference) else given)
        for name, given in statement.arguments
    )
    return statement._replace(arguments=arguments, output=new(statement.output))
