"""The space of programs that steps reach from a root."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nkigym.space.part import Part, Step
from nkigym.space.renaming import Renaming
from nkigym.space.written import written
from nkigym.tiles.program import TileProgram

Node = tuple[Part, ...]
"""A program: its parts, in an order that is the same for all programs of a space."""


@dataclass(frozen=True, slots=True)
class Space:
    """A root program, its parts, and for each the parts that read its variables."""

    program: TileProgram
    root: Node
    readers: tuple[tuple[int, ...], ...]

    def steps(self, node: Node) -> list[Step]:
        """Every opportunity, in the order of the public original's list."""
        ranked = [(rank, step) for part in node for step, rank in part.steps.items()]
        return [step for _, step in sorted(ranked)]

    def children(self, node: Node) -> Iterator[Node]:
        """The programs after each opportunity, part by part."""
        for at, part in enumerate(node):
            for after, renaming in part.outcomes:
                yield self._with(node, at, after, renaming)

    def after(self, node: Node, step: Step) -> Node:
        """The program after one opportunity. Raises KeyError where it is none."""
        for at, part in enumerate(node):
            if step in part.steps:
                return self._with(node, at, *part.after(step))
        raise KeyError(step)

    def tile_program(self, node: Node) -> TileProgram:
        """A node as statements: those of the root that are left, each at its place."""
        return written(node, self.program)

    def _with(self, node: Node, at: int, part: Part, renaming: Renaming | None) -> Node:
        changed = list(node)
        changed[at] = part
        if renaming is not None:
            for reader in self.readers[at]:
                changed[reader] = changed[reader].renamed(renaming)
        return tuple(changed)
