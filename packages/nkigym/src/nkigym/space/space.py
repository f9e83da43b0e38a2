"""The space of programs that steps reach from a root."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from nkigym.space.part import Part, Step
from nkigym.space.renaming import Renaming
from nkigym.space.written import written
from nkigym.tiles.program import TileProgram

Node = tuple[Part, ...]
"""A program: its parts, in an order that is the same for all programs of a space."""


@dataclass(frozen=True)
class Space:
    """A root program, its parts, and for each the parts that read its variables."""

    program: TileProgram
    root: Node
    readers: tuple[tuple[int, ...], ...]

    def steps(self, node: Node) -> list[Step]:
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

    def after(self, node: Node, step: Step) -> Node:
        """The program after one opportunity. Raises KeyError where it is none."""
        for at, part in enumerate(node):
            if step in part.steps:
                changed = list(node)
                self.take(changed, at, step)
                return tuple(changed)
        raise KeyError(step)

    def take(self, parts: list[Part], at: int, step: Step) -> list[int]:
        """Do one opportunity of a part in place; gives the parts that have changed."""
        after, renaming = parts[at].after(step)
        return self.put(parts, at, after, renaming)

    def put(self, parts: list[Part], at: int, after: Part, renaming: Renaming | None) -> list[int]:
        """A part in place of another, and its readers renamed; gives those that have changed."""
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

        Neither reads the other, and nobody reads both: a step of one leaves the other and the
        steps that it lists as they are, and what the two rename are different parts. So both orders
        are possible, and give the same parts.
        """
        touched = [{at, *readers} for at, readers in enumerate(self.readers)]
        return tuple(
            sum(1 << other for other, theirs in enumerate(touched) if mine.isdisjoint(theirs))
            for mine in touched
        )

    def tile_program(self, node: Node) -> TileProgram:
        """A node as statements: those of the root that are left, each at its place."""
        return written(node, self.program)
