"""What cannot be lowered yet, said with the operation and the user's line."""

from __future__ import annotations

from nkigen_lite.errors import TraceError
from nkigen_lite.ir import Graph, Node

HBM_BYTES = {"trn1": 32 * 2**30, "trn2": 96 * 2**30, "trn3": 144 * 2**30}
"""HBM of a chip [NKI Trainium architecture guides]: more than one core can ask for."""


class LoweringError(TraceError):
    """An operation, shape or dtype for which no kernel is written yet."""


def cannot(node: Node, why: str) -> LoweringError:
    """The error for one operation of the graph."""
    return LoweringError(
        f"{node.op} cannot be lowered: {why}",
        got=f"{node.name} = {node.op}({', '.join(node.operands)}): {node.spec}",
        place=node.origin,
    )


def refuse_beyond_hbm(graph: Graph, target: str) -> None:
    """Raises LoweringError where arguments and results alone are more than a chip's HBM."""
    specs = graph.specs
    values = dict.fromkeys((*(v.name for v in graph.inputs), *graph.results))
    need = sum(specs[v].size * specs[v].dtype.itemsize for v in values)
    if need <= HBM_BYTES[target]:
        return
    largest = max(values, key=lambda v: specs[v].size * specs[v].dtype.itemsize)
    node = graph.by_name.get(largest)
    raise LoweringError(
        f"{graph.name} does not fit HBM",
        expected=f"arguments and results of at most {HBM_BYTES[target] >> 30} GiB on {target}",
        got=f"{need / 2**30:,.1f} GiB, most of it {largest}: {specs[largest]}",
        hint="call the kernel on parts of the arrays",
        place=node.origin if node else None,
    )
