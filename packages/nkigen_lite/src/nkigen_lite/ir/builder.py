"""Making graphs, one operation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.errors import Place
from nki_dtypes import DType
from nkigen_lite.ir.graph import Graph
from nkigen_lite.ir.nodes import Node, Value
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.constant import Constant, full
from nkigen_lite.tensors.spec import Spec


class Builder:
    """A graph in the making. Equal operations on equal operands are made once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.specs: dict[str, Spec] = {}
        self.by_name: dict[str, Node] = {}
        self._known: dict[Any, str] = {}

    def input(self, spec: Spec, name: str | None = None) -> str:
        """A new input; its name is x0, x1, … unless given."""
        value = Value(name or f"x{len(self.inputs)}", spec)
        self.inputs.append(value)
        self.specs[value.name] = spec
        return value.name

    def emit(self, op: str, *operands: str, origin: Place | None = None, **attrs: Any) -> str:
        """The value of an operation. Raises GraphError if the operands do not fit."""
        record = OPS[op]
        converted = record.converted(attrs)
        key = (op, operands, tuple(converted.items()))
        if key not in self._known:
            spec = record.result(tuple(self.specs[name] for name in operands), converted)
            node = Node(f"v{len(self.nodes)}", op, operands, converted, spec, origin)
            self.nodes.append(node)
            self.by_name[node.name] = node
            self.specs[node.name] = spec
            self._known[key] = node.name
        return self._known[key]

    def constant(
        self, array: np.ndarray, dtype: DType, origin: Place | None = None, name: str = ""
    ) -> str:
        """An array as a value; `name` is the user's for it."""
        return self.emit("constant", value=Constant(array, dtype, name), origin=origin)

    def fill(
        self, value: Any, dtype: DType, shape: tuple[int, ...] = (), origin: Place | None = None
    ) -> str:
        """One number everywhere; without `shape` a scalar, which broadcasts against anything."""
        return self.emit("constant", value=full(value, Spec(shape, dtype)), origin=origin)

    def finish(self, outputs: tuple[str, ...], writes: tuple[tuple[str, str], ...] = ()) -> Graph:
        """The graph of what these outputs need, its values numbered in order."""
        graph = Graph(self.name, tuple(self.inputs), tuple(self.nodes), outputs, writes)
        return renumbered(graph)


def renumbered(graph: Graph) -> Graph:
    """The graph without nodes that no result needs, its values named v0, v1, … in order."""
    needed = set(graph.results)
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed.update(node.operands)
    kept = [n for n in graph.nodes if n.name in needed]
    names = {v.name: v.name for v in graph.inputs}
    names |= {n.name: f"v{number}" for number, n in enumerate(kept)}
    nodes = tuple(
        Node(names[n.name], n.op, tuple(names[o] for o in n.operands), n.attrs, n.spec, n.origin)
        for n in kept
    )
    writes = tuple((names[i], names[v]) for i, v in graph.writes)
    return Graph(graph.name, graph.inputs, nodes, tuple(names[o] for o in graph.outputs), writes)
