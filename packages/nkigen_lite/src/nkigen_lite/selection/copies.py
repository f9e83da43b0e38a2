"""Copies, rounding included, and choices between two values by a predicate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neuroncore.enums import ReduceCmd
from nki_dtypes import float32
from nkigen_lite.ir import Node
from nkigen_lite.selection.engine_operations import ACTIVATIONS, ALU, REDUCTIONS, TRUTHS
from nkigen_lite.selection.integers import constant_tile
from nkigen_lite.selection.literals import is_by_bits, literal
from nkigen_lite.selection.selector import Selector
from nkigen_lite.selection.tile_instructions import Operand, Tile

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
