"""Graphs as data: every value is made once, by an operation on values made before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from neuroncore.errors import Place
from nkigen_lite.ops import OPS, Op
from nkigen_lite.spec import Spec


@dataclass(frozen=True, slots=True)
class Value:
    """An input of the graph."""

    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: `name` is the value it makes, `operands` are names of values, `spec` follows
    from the record. `origin` is the user's source line."""

    name: str
    op: str
    operands: tuple[str, ...]
    attrs: Mapping[str, Any]
    spec: Spec
    origin: Place | None = field(default=None, compare=False)

    @property
    def record(self) -> Op:
        """What is known of the operation."""
        return OPS[self.op]


@dataclass(frozen=True, slots=True)
class Graph:
    """A function on arrays.

    `nodes` are in an order in which every operand comes before its users. `outputs` are names of
    inputs or nodes. `writes` are (input, value): what the function leaves in an argument that it
    wrote to.
    """

    name: str
    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    writes: tuple[tuple[str, str], ...] = ()

    @property
    def specs(self) -> dict[str, Spec]:
        """Every value's spec by name, inputs first, then in order."""
        found = {v.name: v.spec for v in self.inputs}
        return found | {n.name: n.spec for n in self.nodes}

    @property
    def by_name(self) -> dict[str, Node]:
        """Every node by the value it makes; inputs have none."""
        return {n.name: n for n in self.nodes}

    @property
    def results(self) -> tuple[str, ...]:
        """Every value that leaves the graph: outputs, then what is left in arguments."""
        return (*self.outputs, *(value for _, value in self.writes))

    def run(self, *arrays: Any) -> Any:
        """The outputs for these inputs, computed by NumPy as the machine does: floats in float32,
        each result rounded once. One array, or a tuple of them; written arguments are updated."""
        from nkigen_lite.ir.run import run_in_place

        return run_in_place(self, arrays)

    def __str__(self) -> str:
        from nkigen_lite.ir.text import print_graph

        return print_graph(self)


def users(graph: Graph) -> dict[str, tuple[Node, ...]]:
    """Value → the nodes that use it, in order, each once."""
    found: dict[str, list[Node]] = {name: [] for name in graph.specs}
    for node in graph.nodes:
        for operand in dict.fromkeys(node.operands):
            found[operand].append(node)
    return {name: tuple(nodes) for name, nodes in found.items()}
