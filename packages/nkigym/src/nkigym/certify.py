"""The certificate of a program of a space: what its steps have proved, for others to check."""

from __future__ import annotations

from nkigym.checker import Certificate
from nkigym.space import Node, Space
from nkigym.space.calls import Calls
from nkigym.space.loads import Loads
from nkigym.space.stores import Stores


def certificate(space: Space, node: Node) -> Certificate:
    """The program, and the value numbers that every step on the way to it has kept."""
    tiles: dict[str, tuple[int, ...]] = {}
    output: dict[tuple[int, int], int] = {}
    for part in node:
        if isinstance(part, Loads):
            tiles |= {f"t{n}": place.values for n, place in part.slices.items()}
        elif isinstance(part, Calls):
            tiles |= {f"t{n}": call.values for n, call in part.calls.items()}
        elif isinstance(part, Stores):
            for store in part.stores.values():
                output |= store.outputs
    values = tuple(number for _, number in sorted(output.items()))
    return Certificate(space.tile_program(node), tiles, values)
