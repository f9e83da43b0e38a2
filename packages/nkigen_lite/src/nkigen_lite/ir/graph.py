"""Graphs: functions on arrays as operations in order, with their text, their rules and their
reference run.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nkigen_lite.ir.interpreter import FLOAT32, as_input, run_node, widened
from nkigen_lite.ir.nodes import Node, Value
from nkigen_lite.ir.printer import INDENT, node_text
from nkigen_lite.ops import OPS, Body
from nkigen_lite.tensors.errors import GraphError, SpecError
from nkigen_lite.tensors.spec import Spec


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
        return _run_in_place(self, arrays)

    def __str__(self) -> str:
        return print_graph(self)


def body_of(graph: Graph) -> Body:
    """The graph as the body of a loop."""
    specs = graph.specs

    def run(arrays: Sequence[np.ndarray], computing: np.dtype) -> list[np.ndarray]:
        values = {v.name: a for v, a in zip(graph.inputs, arrays, strict=True)}
        _compute(graph, values, computing)
        return [values[name] for name in graph.outputs]

    return Body(
        print_graph(graph), tuple(v.spec for v in graph.inputs),
        tuple(specs[name] for name in graph.outputs), graph, run,
    )  # fmt: skip


def _compute(graph: Graph, values: dict[str, np.ndarray], computing: np.dtype) -> None:
    """Every node's value, from the inputs'."""
    for node in graph.nodes:
        values[node.name] = run_node(node, tuple(values[o] for o in node.operands), computing)


def users(graph: Graph) -> dict[str, tuple[Node, ...]]:
    """Value → the nodes that use it, in order, each once."""
    found: dict[str, list[Node]] = {name: [] for name in graph.specs}
    for node in graph.nodes:
        for operand in dict.fromkeys(node.operands):
            found[operand].append(node)
    return {name: tuple(nodes) for name, nodes in found.items()}


def print_graph(graph: Graph) -> str:
    """The graph's text."""
    head = ", ".join(f"{v.name}: {v.spec}" for v in graph.inputs)
    lines = [f"def {graph.name}({head}):"]
    lines += [INDENT + node_text(node) for node in graph.nodes]
    lines += [f"{INDENT}{name}[...] = {value}" for name, value in graph.writes]
    lines.append(f"{INDENT}return {', '.join(graph.outputs)}".rstrip())
    return "\n".join(lines) + "\n"


def run_graph(graph: Graph, arrays: Iterable[Any], computing: np.dtype = FLOAT32) -> list[Any]:
    """The results (`graph.results`) for these inputs, each in its storage dtype.

    `computing` float32: as the machine does, each operation in float32 and rounded once to its
    dtype. float64: each operation in float64, and what is float32 in the graph stays float64, so
    that the result is the meaning of the program up to 2⁻⁵³; narrower types are still rounded to.
    """
    values = values_of(graph, arrays, computing)
    return [values[name] for name in graph.results]


def values_of(
    graph: Graph, arrays: Iterable[Any], computing: np.dtype = FLOAT32
) -> dict[str, np.ndarray]:
    """Every value of the graph by name."""
    given = list(arrays)
    if len(given) != len(graph.inputs):
        raise SpecError(
            f"{graph.name} takes {len(graph.inputs)} arrays",
            expected=", ".join(map(str, (v.spec for v in graph.inputs))), got=f"{len(given)}",
        )  # fmt: skip
    values = {
        v.name: widened(as_input(array, v.spec, v.name), v.spec.dtype, computing)
        for v, array in zip(graph.inputs, given, strict=True)
    }
    _compute(graph, values, computing)
    return values


def _run_in_place(graph: Graph, arrays: tuple[Any, ...]) -> Any:
    """`Graph.run`."""
    results = run_graph(graph, arrays)
    outputs, written = results[: len(graph.outputs)], results[len(graph.outputs) :]
    numbers = {v.name: number for number, v in enumerate(graph.inputs)}
    outputs = [np.array(o) for o in outputs]
    for (name, _), value in zip(graph.writes, written, strict=True):
        arrays[numbers[name]][...] = value
    return outputs[0] if len(outputs) == 1 else tuple(outputs) or None


# -- verification ----------------------------------------------------------------------------------


def verify_graph(graph: Graph) -> Graph:
    """The graph itself. Raises GraphError, placed at the user's line, with all that is wrong."""
    wrong = list(_violations(graph))
    if wrong:
        first, *rest = wrong
        first.hint = "\n    ".join(f"also: {w.what}" for w in rest) or None
        raise first
    return graph


def _violations(graph: Graph) -> Iterator[GraphError]:
    specs: dict[str, Spec] = {}
    for value in graph.inputs:
        if value.name in specs:
            yield GraphError(f"{value.name} is made twice")
        specs[value.name] = value.spec
    inputs = frozenset(specs)
    for node in graph.nodes:
        yield from _of_node(node, specs)
        specs[node.name] = node.spec
    for name in graph.results:
        if name not in specs:
            yield GraphError(f"the graph returns {name}, which nothing makes")
    for name, value in graph.writes:
        if name not in inputs:
            yield GraphError(f"the graph writes to {name}, which is not an input")
        elif value in specs and specs[value] != specs[name]:
            yield GraphError(f"{value} is written to {name}", expected=str(specs[name]))


def _of_node(node: Node, specs: dict[str, Spec]) -> Iterator[GraphError]:
    if node.name in specs:
        yield GraphError(f"{node.name} is made twice", place=node.origin)
    if node.op not in OPS:
        yield GraphError(f"{node.op} is not an operation", place=node.origin)
        return
    missing = [o for o in node.operands if o not in specs]
    if missing:
        yield GraphError(f"{node.name} uses {missing[0]} before it is made", place=node.origin)
        return
    try:
        attrs = node.record.converted(node.attrs)
        spec = node.record.result(tuple(specs[o] for o in node.operands), attrs)
    except GraphError as wrong:
        wrong.place = node.origin
        yield wrong
        return
    if spec != node.spec:
        yield GraphError(
            f"{node.name} is not what {node.op} makes", expected=str(spec), got=str(node.spec),
            place=node.origin,
        )  # fmt: skip


def assigned_names(graph: Graph) -> dict[str, str]:
    """Values that lines of the user's assign to a variable, with its name; products of matrices,
    which are scaled as they are read, too."""
    found: dict[str, str] = {}
    used = users(graph)
    for node in graph.nodes:
        place = _line_of(node)
        name = _assignments(place[0]).get(place[1]) if place else None
        last = place not in map(_line_of, used[node.name])
        if name is not None and (last or node.op == "matmul"):
            found[node.name] = name
    return found


def _line_of(node: Node) -> tuple[str, int] | None:
    return (node.origin.file, node.origin.line) if node.origin else None


@cache
def _assignments(file: str) -> dict[int, str]:
    """Lines of assignments to one variable, with its name."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    return {
        line: target.id
        for statement in ast.walk(tree)
        if isinstance(statement, (ast.Assign, ast.AugAssign))
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        if isinstance(target, ast.Name)
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    }
