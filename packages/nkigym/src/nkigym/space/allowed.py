"""What a root must be for steps to be taken on it: each place stored once, tiles made of atoms."""

from __future__ import annotations

from neuroncore.errors import LaunchError
from nkigym.tiles.program import STORE, Interval, Reference, Shape, TileProgram
from nkigym.tiles.tiling import TILE


def refuse_others(program: TileProgram) -> None:
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
