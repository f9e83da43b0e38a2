"""Statements that matter."""

from __future__ import annotations

from nkigym.tiles.program import ALLOCATE, STORE, TileProgram


def live(program: TileProgram) -> TileProgram:
    """The program without the statements whose results reach no store.

    Merging calls leaves loads behind that nobody reads; code is not made of them.
    """
    wanted: set[str] = set()
    kept = []
    for statement in reversed(program.statements):
        if statement.operator in (ALLOCATE, STORE) or statement.output.name in wanted:
            wanted.update(reference.name for reference in statement.references)
            kept.append(statement)
    return program._replace(statements=tuple(reversed(kept)))
