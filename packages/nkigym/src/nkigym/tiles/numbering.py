"""Numbered names of tiles: t0, t1, …"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count

from neuroncore.errors import LaunchError
from nkigym.tiles.program import ALLOCATE, STORE, Reference, Statement, TileProgram

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
