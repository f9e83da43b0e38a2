"""Float arithmetic: activations, ALU operations, reductions and scans of rows."""

from __future__ import annotations

from typing import Any

from neuroncore.enums import ReduceCmd
from nki_dtypes import float32
from nkigen_lite.ir import Node
from nkigen_lite.selection.engine_operations import ACTIVATIONS, ALU, REDUCTIONS, SCANS
from nkigen_lite.selection.integers import exact
from nkigen_lite.selection.selector import Selector
from nkigen_lite.selection.tile_instructions import AluStage, Operand, Tile


def activation(selector: Selector, node: Node) -> Tile:
    """op(x · scale + bias), with the sum of its results where one is needed."""
    (x,) = node.operands
    base, scale, bias = _scaled(selector, x)
    operands: dict[str, Operand] = {"dst": node.name, "data": selector.read(base), "scale": scale}
    if bias is not None:
        operands["bias"] = bias
    attrs: dict[str, Any] = {"op": ACTIVATIONS[node.op]}
    total = selector.result_of(node, "sum")
    if total is not None:
        operands["reduce_res"] = total
        attrs |= {"reduce_op": "add", "reduce_cmd": ReduceCmd.reset_reduce}
        selector.made[total] = total
    selector.step("activation", node, operands, **attrs)
    return node.name


def _scaled(selector: Selector, x: str) -> tuple[str, Operand, Operand | None]:
    """(base, scale, bias) with x = base · scale + bias."""
    base, found = selector.stages(x, 2)
    while found:
        forms = [s.as_affine for s in found]
        kinds = [f[0] if f else None for f in forms]
        if kinds in (["scale"], ["bias"], ["scale", "bias"]) and _takes(selector, forms):
            break
        base, found = selector.stages(x, len(found) - 1)
    scale: Operand = 1.0
    bias: Operand | None = None
    for stage in found:
        kind, operand, sign = stage.as_affine or ("", 0.0, 1.0)
        if kind == "scale":
            scale = selector.of_rows(operand) if isinstance(operand, str) else operand
        elif isinstance(operand, str):
            bias = negative_of(selector, operand) if sign < 0 else selector.of_rows(operand)
        else:
            bias = sign * operand
    return base, scale, bias


def _takes(selector: Selector, forms: list[Any]) -> bool:
    """A number as bias came with the third generation."""
    numbers = [f for f in forms if f[0] == "bias" and not isinstance(f[1], str)]
    return not numbers or selector.target.generation >= 3


def negative_of(selector: Selector, value: str) -> Tile:
    """-value, one per row: a reduction negates its result at no cost."""
    if value in selector.negated:
        return selector.negated[value]
    node = selector.nodes.get(value)
    if node is not None and node.op == "max":
        selector.make(node.operands[0])  # its instruction may compute the maximum too
    name = selector.fresh(value, False, float32, "_negated")
    alone = node is not None and selector.is_single(value) and node.op in REDUCTIONS
    if alone and node is not None and not selector.full[value]:
        reduction(selector, node, name, negate=True)
    else:
        origin = node or next(iter(selector.nodes.values()))
        base, found = selector.stages(value, 1)
        tensor_scalar(selector, origin, base, [*found, AluStage("multiply", -1.0)], name)
    selector.negated[value] = name
    return name


def elementwise(selector: Selector, node: Node) -> Tile:
    """tensor_scalar with one or two operations, scalar_tensor_tensor or tensor_tensor."""
    if selector.is_of_wide_integers(node):
        return exact(selector, node)
    last = selector.stage(node)
    if last is not None:
        base, before = selector.stages(last[0], 1)
        tensor_scalar(selector, node, base, [*before, last[1]])
        return node.name
    x, y = node.operands
    selector.check_operands(node)
    for one, other, swapped in ((x, y, False), (y, x, True)):
        base, before = selector.stages(one, 1)
        binary = before and before[0].operand is not None
        if binary and selector.full[base] == selector.full[other] == selector.full[node.name]:
            operand0 = selector.placed(before[0])
            assert operand0 is not None
            selector.step(
                "scalar_tensor_tensor", node,
                {"dst": node.name, "data": selector.read(base), "operand0": operand0,
                 "operand1": selector.read(other)},
                op0=before[0].op, reverse0=before[0].reverse, op1=ALU[node.op],
                reverse1=swapped,
            )  # fmt: skip
            return node.name
    selector.tensor_tensor(node, node.name, selector.read(x), selector.read(y), ALU[node.op])
    return node.name


def tensor_scalar(
    selector: Selector, node: Node, base: str, stages: list[AluStage], name: str | None = None
) -> None:
    operands: dict[str, Operand] = {"dst": name or node.name, "data": selector.read(base)}
    attrs: dict[str, Any] = {}
    for number, stage in enumerate(stages):
        attrs |= {f"op{number}": stage.op, f"reverse{number}": stage.reverse}
        operand = selector.placed(stage)
        if operand is not None:
            operands[f"operand{number}"] = operand
    selector.step("tensor_scalar", node, operands, **attrs)


def reciprocal(selector: Selector, node: Node) -> Tile:
    data = selector.read(node.operands[0])
    selector.step("reciprocal", node, {"dst": node.name, "data": data})
    return node.name


def reduced(selector: Selector, node: Node) -> Tile:
    (x,) = node.operands
    if selector.full[node.name] == selector.full[x]:  # axes of one element
        return selector.make(x)
    single = selector.nodes.get(x)
    adds = single is not None and node.op == "sum" and single.op in ACTIVATIONS
    data = selector.make(x) if adds else selector.read(x)
    if node.name in selector.made:  # the instruction that made the operand added it up
        return selector.made[node.name]
    reduction(selector, node, node.name, data=data)
    return node.name


def reduction(
    selector: Selector, node: Node, name: str, negate: bool = False, data: Tile | None = None
) -> None:
    data = data or selector.read(node.operands[0])
    selector.step(
        "tensor_reduce", node, {"dst": name, "data": data}, op=REDUCTIONS[node.op],
        negate=negate,
    )  # fmt: skip


_ONES = "ones_of_rows"


def scanned(selector: Selector, node: Node) -> Tile:
    """1 · what came before, combined with each element."""
    data, (op, first) = selector.read(node.operands[0]), SCANS[node.op]
    if _ONES not in selector.dtypes:
        selector.full[_ONES], selector.dtypes[_ONES] = False, float32
        selector.fill(node, _ONES, 1.0)
    operands: dict[str, Operand] = {"dst": node.name, "data0": _ONES, "data1": data}
    operands["initial"] = first
    selector.step("tensor_tensor_scan", node, operands, op0="multiply", op1=op)
    return node.name
