"""Tile programs as text: Python's syntax, so that every editor colours it and `ast` reads it.

    def f(A: float32[128, 128], B: float32[128, 256]):
        output = allocate(128, 256)
        t0 = A[0:128, 0:128]
        t1 = B[0:128, 0:256]
        t2 = nc_matmul(stationary=t0, moving=t1)
        output[0:128, 0:256] = t2
        return output

A variable without a subscript is all of it; `repeat(A[0:128, 0:128], copies=2)` loads a part so
many times, side by side. `parse_tiles(print_tiles(p)) == p` for every program.
"""

from __future__ import annotations

from collections.abc import Mapping

from nkigym.tiles.program import (
    ALLOCATE,
    REPEAT,
    STORE,
    Reference,
    Shape,
    Statement,
    TileProgram,
    copies_of,
)

INDENT = "    "


def print_tiles(program: TileProgram) -> str:
    """The program's text."""
    head = ", ".join(
        f"{name}: {program.dtype}[{', '.join(map(str, shape))}]"
        for name, shape in program.parameters
    )
    shapes = {s.output.name: s.output.shape for s in program.statements if s.operator != STORE}
    lines = [f"{INDENT}{_statement(s, shapes)}" for s in program.statements]
    last = f"{INDENT}return {', '.join(program.returns)}"
    return "\n".join([f"def {program.name}({head}):", *lines, last, ""])


def _statement(statement: Statement, shapes: Mapping[str, Shape]) -> str:
    match statement.operator:
        case "allocate":
            extents = ", ".join(map(str, statement.output.shape))
            return f"{statement.output.name} = {ALLOCATE}({extents})"
        case "load":
            part, copies = _part(statement.references[0]), copies_of(statement)
            loaded = f"{REPEAT}({part}, copies={copies})" if copies > 1 else part
            return f"{statement.output.name} = {loaded}"
        case "store":
            read, written = statement.references
            return f"{_part(written)} = {_tile(read, shapes)}"
    given = ", ".join(
        f"{name}={_tile(value, shapes) if isinstance(value, Reference) else repr(value)}"
        for name, value in statement.arguments
    )
    return f"{statement.output.name} = {statement.operator}({given})"


def _tile(reference: Reference, shapes: Mapping[str, Shape]) -> str:
    whole = tuple((0, extent) for extent in shapes.get(reference.name, ()))
    return reference.name if reference.intervals == whole else _part(reference)


def _part(reference: Reference) -> str:
    return f"{reference.name}[{', '.join(f'{a}:{b}' for a, b in reference.intervals)}]"
