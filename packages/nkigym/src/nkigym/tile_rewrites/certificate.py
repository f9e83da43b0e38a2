"""The certificate of a program of a space: what its steps have proved, for others to check."""

from __future__ import annotations

from nkigym.checker import Certificate
from nkigym.tile_rewrites import Node, RewriteGraph
from nkigym.tile_rewrites.calls import Calls
from nkigym.tile_rewrites.loads import Loads
from nkigym.tile_rewrites.stores import Stores


def certificate(space: RewriteGraph, node: Node, function: str = "matmul") -> Certificate:
    """The program, and the value numbers that every step on the way to it has kept; `function` is
    what it is said to compute, by the checker's name for it."""
    tiles: dict[str, tuple[int, ...]] = {}
    output: dict[tuple[str, int, int], int] = {}
    for part in node:
        if isinstance(part, Loads):
            tiles |= {f"t{n}": place.values for n, place in part.slices.items()}
        elif isinstance(part, Calls):
            tiles |= {f"t{n}": call.values for n, call in part.calls.items()}
        elif isinstance(part, Stores):
            for store in part.stores.values():
                output |= store.outputs
    order = space.program.returns
    found = sorted(output.items(), key=lambda item: (order.index(item[0][0]), *item[0][1:]))
    values = tuple(number for _, number in found)
    return Certificate(space.tile_program(node), tiles, values, function)
