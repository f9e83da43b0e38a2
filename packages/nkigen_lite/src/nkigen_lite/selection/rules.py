"""The selection rule of every operation that a group of tiles can contain: float arithmetic,
copies, choices; integers and bits are in `integers`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neuroncore.enums import ReduceCmd
from nki_dtypes import float32
from nkigen_lite.ir import Node
from nkigen_lite.selection import integers
from nkigen_lite.selection.engine_operations import (
    ACTIVATIONS,
    ALU,
    BITS,
    COPIES,
    EXACT,
    REDUCTIONS,
    SCANS,
    TRUTHS,
)
from nkigen_lite.selection.integers import constant_tile, exact
from nkigen_lite.selection.literals import is_by_bits, literal
from nkigen_lite.selection.selector import Rule, Selector
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


# -- copies and choices ---------------------------------------------------------------------------

_COMPUTES = frozenset({*ALU, *ACTIVATIONS, "negative", "abs", "reciprocal"})


def copy(selector: Selector, node: Node) -> Tile:
    """Nothing where the elements are the same, else a copy that rounds or repeats; what is
    computed for it alone is rounded as it is written."""
    (x,) = node.operands
    if x in selector.numbers:
        selector.fill(node, node.name, selector.numbers[x])
        return node.name
    if selector.full[x] == selector.full[node.name]:
        if selector.dtypes[x] is selector.dtypes[node.name]:
            return selector.make(x)
        if _is_written_as(selector, x, node):
            return selector.select(replace(selector.nodes[x], name=node.name))
    selector.step("tensor_copy", node, {"dst": node.name, "src": selector.read(x)})
    return node.name


def _is_written_as(selector: Selector, x: str, node: Node) -> bool:
    """Whether what makes `x` can write it as `node`'s dtype at once."""
    if not selector.is_needed_once(x) or selector.is_of_wide_integers(selector.nodes[x]):
        return False
    if selector.nodes[x].op in TRUTHS:
        return True
    op, value = selector.nodes[x].op, selector.nodes[x].operands[0]
    reduces = op in REDUCTIONS and selector.full[x] != selector.full[value]
    return selector.is_single(x) and (op in _COMPUTES or reduces)


def where(selector: Selector, node: Node) -> Tile:
    """A float32 value or a number at once, with the maximum of each row where one is needed; else
    the second choice everywhere, then the first where the condition holds."""
    condition, first, second = node.operands
    if condition in selector.numbers:
        chosen = first if selector.numbers[condition] else second
        return copy(selector, replace(node, operands=(chosen,)))
    value, number = (second, first) if first in selector.numbers else (first, second)
    numbers = selector.numbers
    if number in numbers and value not in numbers and selector.dtypes[value] is float32:
        return _selected(selector, node, value, numbers[number], reverse=first in numbers)
    src, predicate = _chosen(selector, node, first), selector.make(condition)
    if second in selector.numbers:
        selector.fill(node, node.name, selector.numbers[second])
    elif _is_for(selector, second, node):
        selector.select(replace(selector.nodes[second], name=node.name))
    else:
        selector.step("tensor_copy", node, {"dst": node.name, "src": selector.make(second)})
    operands = {"dst": node.name, "src": src, "predicate": predicate}
    selector.step("tensor_copy_predicated", node, operands)
    return node.name


def _selected(selector: Selector, node: Node, value: str, number: float, reverse: bool) -> Tile:
    """The value, or the number where the condition does not hold; with `reverse` where it does."""
    operands: dict[str, Operand] = {
        "dst": node.name, "predicate": selector.make(node.operands[0]),
        "on_true": selector.make(value), "on_false": literal(number, float32),
    }  # fmt: skip
    attrs: dict[str, Any] = {"reverse_pred": reverse}
    greatest = selector.result_of(node, "max") if selector.is_wide_enough else None
    if greatest is not None:
        operands["reduce_res"] = greatest
        attrs["reduce_cmd"] = ReduceCmd.reset_reduce
        selector.made[greatest] = greatest
    selector.step("select_reduce", node, operands, **attrs)
    return node.name


def _is_for(selector: Selector, value: str, node: Node) -> bool:
    """Whether what makes the value can write it into the tile of `node`, which alone needs it and
    whose results no instruction adds up."""
    if not selector.is_single(value) or selector.is_of_wide_integers(selector.nodes[value]):
        return False
    alike = (
        selector.full[value] == selector.full[node.name] and selector.result_of(node, "sum") is None
    )
    return alike and selector.nodes[value].op in _COMPUTES


def _chosen(selector: Selector, node: Node, value: str) -> Operand:
    """A choice as tensor_copy_predicated takes it: a small number, or a tile."""
    if value not in selector.numbers:
        return selector.make(value)
    dtype = selector.dtypes[node.name]
    if not is_by_bits(selector.numbers[value], dtype):
        return literal(selector.numbers[value], dtype)
    return constant_tile(selector, node, selector.numbers[value], dtype)


RULES: dict[str, Rule] = {
    **dict.fromkeys(ACTIVATIONS, activation),
    **dict.fromkeys([*ALU, "negative", "abs"], elementwise),
    "reciprocal": reciprocal,
    **dict.fromkeys(REDUCTIONS, reduced),
    **dict.fromkeys(SCANS, scanned),
    "where": where,
    **dict.fromkeys(COPIES, copy),
    **dict.fromkeys([*BITS, "invert"], integers.bitwise),
    **dict.fromkeys(EXACT, integers.exact),
    "bitcast": integers.reinterpreted,
    "low_bits": integers.low_bits,
}
