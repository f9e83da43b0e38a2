"""The steps of an unrolled loop: where they are in a graph, what they carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nkigen_lite.ir import Graph, Node

Operand = tuple[str, Any]
"""("inside", place in the step), ("carried", place in the step before) or ("outside", value)."""


@dataclass(frozen=True, slots=True)
class Steps:
    """`count` steps of `period` nodes, from node `start` on.

    `operands` are where each node of a step takes its operands from, `initial` the values carried
    into the first step, by their place. `moves` says how far the beginning of a slice or update
    moves along each axis from one step to the next. `before` are the values of a step that was
    found before the first: nodes whose order in the graph is another, by their place.
    """

    graph: Graph
    start: int
    period: int
    count: int
    operands: tuple[tuple[Operand, ...], ...] = ()
    initial: Mapping[int, str] = field(default_factory=dict)
    moves: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    before: Mapping[int, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + self.period * self.count

    def node(self, step: int, place: int) -> Node:
        return self.graph.nodes[self.start + step * self.period + place]

    @property
    def values(self) -> dict[str, tuple[int, int]]:
        """Value → (step, place), the step found before the first as number 0."""
        first = int(bool(self.before))
        found = {name: (0, place) for place, name in self.before.items()}
        for step in range(self.count):
            for place in range(self.period):
                found[self.node(step, place).name] = (step + first, place)
        return found

    @property
    def carried(self) -> list[int]:
        """The places whose values the next step uses."""
        every = {place for of in self.operands for kind, place in of if kind == "carried"}
        return sorted(every)

    def is_collector(self, place: int) -> bool:
        """Whether the place is an array into which each step writes its part."""
        return place in self.moves and self.node(0, place).op == "update"


def key_of(node: Node) -> tuple[Any, ...]:
    """The part of a node that is equal in every step: all but operands and begins of slices."""
    moves = node.op in ("slice", "update")
    attrs = tuple((k, v) for k, v in node.attrs.items() if not (moves and k == "starts"))
    return node.op, node.spec, len(node.operands), attrs
