"""The parts of a program as its statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nkigym.space.calls import Call, Calls
from nkigym.space.loads import Loads
from nkigym.space.part import Part
from nkigym.space.renaming import Slice
from nkigym.space.stores import Store, Stores
from nkigym.tiles.program import (
    ALLOCATE,
    STORE,
    Statement,
    TileProgram,
    load,
    part_of,
    part_of_tile,
    tile,
)


def written(parts: Sequence[Part], root: TileProgram) -> TileProgram:
    """The statements of the root that are left, as the parts have them, each at its place."""
    variables: dict[str, Statement] = {}
    stores: dict[int, Statement] = {}
    for part in parts:
        if isinstance(part, Loads):
            variables |= {f"t{n}": _load(n, at, root) for n, at in part.slices.items()}
        elif isinstance(part, Calls):
            variables |= {f"t{n}": _call(n, call) for n, call in part.calls.items()}
        elif isinstance(part, Stores):
            stores |= {place: _store(store, root) for place, store in part.stores.items()}
    return root._replace(statements=tuple(_left(root, variables, stores)))


def _left(
    root: TileProgram, variables: dict[str, Statement], stores: dict[int, Statement]
) -> Iterator[Statement]:
    place = -1
    for statement in root.statements:
        if statement.operator == ALLOCATE:
            yield statement
        elif statement.operator == STORE:
            place += 1
            if place in stores:
                yield stores[place]
        elif statement.output.name in variables:
            yield variables[statement.output.name]


def _load(number: int, at: Slice, root: TileProgram) -> Statement:
    shape = dict(root.parameters)[at.source]
    return load(f"t{number}", part_of(at.source, shape, at.rows, at.columns), at.copies)


def _call(number: int, call: Call) -> Statement:
    operands = tuple(
        (o.name, part_of_tile(f"t{o.number}", o.rows, o.columns)) for o in call.operands
    )
    arguments = (*operands, *call.attributes)
    return Statement(call.operator, arguments, tile(f"t{number}", *call.extents))


def _store(store: Store, root: TileProgram) -> Statement:
    where = part_of(store.into, root.outputs[store.into], *store.written)
    read = part_of_tile(f"t{store.number}", *store.read)
    return Statement(STORE, (("src", read), ("dst", where)), where)
