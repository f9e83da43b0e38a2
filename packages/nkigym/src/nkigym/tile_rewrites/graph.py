"""The space of programs that steps reach from a root."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nkigym.checker import Certificate
from nkigym.tile_rewrites.calls import Calls
from nkigym.tile_rewrites.component import Component, TileRewrite
from nkigym.tile_rewrites.loads import Loads
from nkigym.tile_rewrites.nodes import Call, Renaming, Slice, Store
from nkigym.tile_rewrites.stores import Stores
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


def written(parts: Sequence[Component], root: TileProgram) -> TileProgram:
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


Node = tuple[Component, ...]
"""A program: its parts, in an order that is the same for all programs of a space."""


@dataclass(frozen=True)
class RewriteGraph:
    """A root program, its parts, and for each the parts that read its variables."""

    program: TileProgram
    root: Node
    readers: tuple[tuple[int, ...], ...]

    def steps(self, node: Node) -> list[TileRewrite]:
        """Every opportunity, in the order of the public original's list."""
        ranked = [(rank, step) for part in node for step, rank in part.steps.items()]
        return [step for _, step in sorted(ranked)]

    def children(self, node: Node, among: Iterable[int] | None = None) -> Iterator[Node]:
        """The programs after each opportunity, part by part; of these parts alone, if given."""
        for at in range(len(node)) if among is None else among:
            for after, renaming in node[at].outcomes:
                changed = list(node)
                self.put(changed, at, after, renaming)
                yield tuple(changed)

    def after(self, node: Node, step: TileRewrite) -> Node:
        """The program after one opportunity. Raises KeyError where it is none."""
        for at, part in enumerate(node):
            if step in part.steps:
                changed = list(node)
                self.take(changed, at, step)
                return tuple(changed)
        raise KeyError(step)

    def take(self, parts: list[Component], at: int, step: TileRewrite) -> list[int]:
        """Do one opportunity of a part in place; gives the parts that have changed."""
        after, renaming = parts[at].after(step)
        return self.put(parts, at, after, renaming)

    def put(
        self, parts: list[Component], at: int, after: Component, renaming: Renaming | None
    ) -> list[int]:
        """A part in place of another, and its readers renamed; gives the components that have
        changed."""
        parts[at] = after
        if renaming is None:
            return [at]
        gone, readers = renaming.moved, self.readers[at]
        if len(gone) == 1:
            (number,) = gone
            touched = [reader for reader in readers if number in parts[reader].reads]
        else:
            touched = [reader for reader in readers if not parts[reader].reads.isdisjoint(gone)]
        for reader in touched:
            parts[reader] = parts[reader].renamed(renaming)
        return [at, *touched]

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """For each part, as bits, the parts whose steps commute with all of its own.

        Neither reads the other, and no component reads both: a step of one leaves the other and the
        steps that it lists as they are, and what the two rename are different parts. So both orders
        are possible, and give the same parts.
        """
        touched = [{at, *readers} for at, readers in enumerate(self.readers)]
        return tuple(
            sum(1 << other for other, theirs in enumerate(touched) if mine.isdisjoint(theirs))
            for mine in touched
        )

    def tile_program(self, node: Node) -> TileProgram:
        """A node as statements: the remaining statements of the root, each at its place."""
        return written(node, self.program)


# -- certificates ----------------------------------------------------------------------------------


def certificate(space: RewriteGraph, node: Node, function: str = "matmul") -> Certificate:
    """The program, and the value numbers that every step on the way to it has kept; `function` is
    what it is claimed to compute, by the checker's name for it."""
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
