"""What is left to say before instructions are chosen: constants folded, narrow matrices kept so.

`canonicalize` and `decompose` have brought the graph into operations of the engines; these rules
are about what the machine takes beyond them.
"""

from __future__ import annotations

import numpy as np

from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.ir import Builder, Graph, Node
from nkigen_lite.ir.build import renumbered
from nkigen_lite.ir.run import FLOAT32, run_node
from nkigen_lite.ops.record import Kind


def in_machine_terms(graph: Graph) -> Graph:
    """The graph with every rule applied, operands first."""
    nodes, new = graph.by_name, {}
    build = Builder(graph.name)
    for value in graph.inputs:
        new[value.name] = build.input(value.spec, value.name)
    for node in graph.nodes:
        made = _folded(node, new, build) or _narrow_product(node, nodes, new, build)
        if made is None:
            operands = (new[o] for o in node.operands)
            made = build.emit(node.op, *operands, origin=node.origin, **node.attrs)
        new[node.name] = made
    outputs = tuple(new[o] for o in graph.outputs)
    writes = tuple((name, new[v]) for name, v in graph.writes)
    return renumbered(build.finish(outputs, writes))


def _folded(node: Node, new: dict[str, str], build: Builder) -> str | None:
    """An operation on numbers is a number."""
    known = {n.name: n for n in build.nodes if n.op == "constant"}
    given = [known.get(new[o]) for o in node.operands]
    numbers = [n.attrs["value"] for n in given if n is not None]
    if node.record.kind not in (Kind.elementwise, Kind.select) or not numbers:
        return None
    if len(numbers) < len(given) or any(n.uniform is None for n in numbers):
        return None
    value = run_node(node, tuple(np.asarray(n.uniform) for n in numbers), FLOAT32)
    return build.fill(value, node.spec.dtype, node.spec.shape, node.origin)


def _narrow_product(
    node: Node, nodes: dict[str, Node], new: dict[str, str], build: Builder
) -> str | None:
    """A product of matrices that were widened for it: TensorE takes them narrow and sums in
    float32, where products of 16-bit floats are exact."""
    wide = [nodes.get(o) for o in node.operands] if node.op == "matmul" else []
    narrow = [n.operands[0] for n in wide if n is not None and n.op in ("cast", "convert")]
    kinds = {build.specs[new[o]].dtype for o in narrow}
    if len(narrow) != 2 or kinds not in ({bfloat16}, {float16}) or node.spec.dtype is not float32:
        return None
    operands = (new[o] for o in narrow)
    return build.emit("matmul", *operands, dtype=float32, origin=node.origin)
