"""What cannot be lowered yet, said with the operation and the user's line."""

from __future__ import annotations

from neuroncore.program import Buffer
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


def refuse_beyond_hbm(graph: Graph, target: str, constants: tuple[Buffer, ...] = ()) -> None:
    """Raises LoweringError where arguments, results and constants alone are more than a chip's
    HBM."""
    specs = graph.specs
    values = dict.fromkeys((*(v.name for v in graph.inputs), *graph.results))
    need = sum(specs[v].size * specs[v].dtype.itemsize for v in values)
    need += sum(b.num_bytes for b in constants)
    if need <= HBM_BYTES[target]:
        return
    beside = f" and {sum(b.num_bytes for b in constants):,} B of constants" if constants else ""
    largest = max(values, key=lambda v: specs[v].size * specs[v].dtype.itemsize)
    node = graph.by_name.get(largest)
    raise LoweringError(
        f"{graph.name} does not fit HBM",
        expected=(
            f"arguments, results and constants of at most {HBM_BYTES[target] >> 30} GiB on {target}"
        ),
        got=f"{need / 2**30:,.1f} GiB, most of it {largest}: {specs[largest]}{beside}",
        hint="call the kernel on parts of the arrays",
        place=node.origin if node else None,
    )
