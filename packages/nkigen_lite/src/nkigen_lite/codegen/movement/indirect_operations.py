"""Which function writes which operation that is a kernel part of its own, from HBM to HBM."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.movement.indirect import (
    Places,
    write_gather,
    write_gather_along,
    write_scatter,
)
from nkigen_lite.codegen.movement.ordering import write_sort, write_topk
from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.ir import Graph, Node

WRITERS: dict[str, Callable[[Writer, Node, Places, Sequence[ArrayView]], None]] = {
    "gather": write_gather,
    "gather_along": write_gather_along,
    "scatter": write_scatter,
    "scatter_add": write_scatter,
    "sort": write_sort,
    "topk_values": write_topk,
    "topk_places": write_topk,
}

_TOGETHER = ({"topk_values", "topk_places"},)
"""Operations that one function writes at once where they have the same operands."""


def written_together(node: Node, graph: Graph) -> list[Node]:
    """The operation and the others that are written with it."""
    ops = next((ops for ops in _TOGETHER if node.op in ops), {node.op})
    same = (node.operands, node.attrs)
    return [n for n in graph.nodes if n.op in ops and (n.operands, n.attrs) == same]
