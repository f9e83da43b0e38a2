"""One of two values for each element: select_reduce, or a copy where a predicate holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neuroncore.enums import ReduceCmd
from nki_dtypes import float32
from nkigen_lite.ir import Node
from nkigen_lite.lower import whole_numbers
from nkigen_lite.lower.literals import is_by_bits, literal
from nkigen_lite.lower.steps import Operand, Tile
from nkigen_lite.lower.table import ACTIVATIONS, ALU

if TYPE_CHECKING:
    from nkigen_lite.lower.select import Selector

_COMPUTES = frozenset({*ALU, *ACTIVATIONS, "negative", "abs", "reciprocal"})


def where(made: Selector, node: Node) -> Tile:
    """A float32 value or a number at once, with the maximum of each row where one is needed; else
    the second choice everywhere, then the first where the condition holds."""
    condition, first, second = node.operands
    if condition in made.numbers:
        chosen = first if made.numbers[condition] else second
        return made.copy(replace(node, operands=(chosen,)))
    value, number = (second, first) if first in made.numbers else (first, second)
    if number in made.numbers and value not in made.numbers and made.dtypes[value] is float32:
        return _selected(made, node, value, made.numbers[number], reverse=first in made.numbers)
    src, predicate = _chosen(made, node, first), made.make(condition)
    if second in made.numbers:
        made.fill(node, node.name, made.numbers[second])
    elif _is_for(made, second, node):
        made.way_of(made.nodes[second])(made, replace(made.nodes[second], name=node.name))
    else:
        made.step("tensor_copy", node, {"dst": node.name, "src": made.make(second)})
    operands = {"dst": node.name, "src": src, "predicate": predicate}
    made.step("tensor_copy_predicated", node, operands)
    return node.name


def _selected(made: Selector, node: Node, value: str, number: float, reverse: bool) -> Tile:
    """The value, or the number where the condition does not hold; with `reverse` where it does."""
    operands: dict[str, Operand] = {
        "dst": node.name, "predicate": made.make(node.operands[0]), "on_true": made.make(value),
        "on_false": literal(number, float32),
    }  # fmt: skip
    attrs: dict[str, Any] = {"reverse_pred": reverse}
    greatest = made.result_of(node, "max") if made.is_wide_enough else None
    if greatest is not None:
        operands["reduce_res"] = greatest
        attrs["reduce_cmd"] = ReduceCmd.reset_reduce
        made.made[greatest] = greatest
    made.step("select_reduce", node, operands, **attrs)
    return node.name


def _is_for(made: Selector, value: str, node: Node) -> bool:
    """Whether what makes the value can write it into the tile of `node`, which alone needs it and
    whose results no instruction adds up."""
    if not made.is_single(value) or made.is_of_wide_integers(made.nodes[value]):
        return False
    alike = made.full[value] == made.full[node.name] and made.result_of(node, "sum") is None
    return alike and made.nodes[value].op in _COMPUTES


def _chosen(made: Selector, node: Node, value: str) -> Operand:
    """A choice as tensor_copy_predicated takes it: a small number, or a tile."""
    if value not in made.numbers:
        return made.make(value)
    dtype = made.dtypes[node.name]
    if not is_by_bits(made.numbers[value], dtype):
        return literal(made.numbers[value], dtype)
    return whole_numbers.constant(made, node, made.numbers[value], dtype)
