"""Running sums, products and extremes of rows: one instruction for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nki_dtypes import float32
from nkigen_lite.ir import Node
from nkigen_lite.lower.steps import Operand, Tile
from nkigen_lite.lower.table import SCANS

if TYPE_CHECKING:
    from nkigen_lite.lower.select import Selector

_ONES = "ones_of_rows"


def scanned(made: Selector, node: Node) -> Tile:
    """1 · what came before, combined with each element."""
    data, (op, first) = made.read(node.operands[0]), SCANS[node.op]
    if _ONES not in made.dtypes:
        made.full[_ONES], made.dtypes[_ONES] = False, float32
        made.fill(node, _ONES, 1.0)
    operands: dict[str, Operand] = {"dst": node.name, "data0": _ONES, "data1": data}
    operands["initial"] = first
    made.step("tensor_tensor_scan", node, operands, op0="multiply", op1=op)
    return node.name
