"""Errors for operations that code generation does not support, at the user's line."""

from __future__ import annotations

from neuroncore.program import Buffer
from nkigen_lite.ir import Graph, Node
from nkigen_lite.tensors.errors import TraceError

HBM_BYTES = {"trn1": 32 * 2**30, "trn2": 96 * 2**30, "trn3": 144 * 2**30}
"""HBM of a chip [NKI Trainium architecture guides]: more than one core can ask for."""


class CodegenError(TraceError):
    """An operation, shape or dtype for which no kernel is written yet."""


def unsupported(node: Node, why: str) -> CodegenError:
    """The error for one operation of the graph."""
    return CodegenError(
        f"{node.op} is not supported: {why}",
        got=f"{node.name} = {node.op}({', '.join(node.operands)}): {node.spec}",
        place=node.origin,
    )


def check_hbm_capacity(graph: Graph, target: str, constants: tuple[Buffer, ...] = ()) -> None:
    """Raises CodegenError where arguments, results and constants alone are more than a chip's
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
    raise CodegenError(
        f"{graph.name} does not fit HBM",
        expected=(
            f"arguments, results and constants of at most {HBM_BYTES[target] >> 30} GiB on {target}"
        ),
        got=f"{need / 2**30:,.1f} GiB, most of it {largest}: {specs[largest]}{beside}",
        hint="call the kernel on parts of the arrays",
        place=node.origin if node else None,
    )
