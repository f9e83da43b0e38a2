"""Integers and bits on tiles: bit operations, exact 32-bit arithmetic, other looks at a tile.

VectorE computes in float32, which holds integers up to 2²⁴; its bit operations never convert.
GpSimdE's tensor_tensor of 32-bit integers is exact [NKI: tensor_tensor, integers].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nki_dtypes import DType, uint32
from nkigen_lite.ir import Node
from nkigen_lite.lower.literals import literal
from nkigen_lite.lower.steps import Operand, Seen, Tile
from nkigen_lite.lower.table import ALU, BITS, COMPARISONS, EXACT, MIRRORED

if TYPE_CHECKING:
    from nkigen_lite.lower.select import Selector

TOLD_APART = float(1 << 24)
"""float32 compares every integer rightly with a number of smaller magnitude: what it rounds is
farther away."""


def constant(made: Selector, node: Node, number: float, dtype: DType) -> str:
    """A tile of one number, made once for its group and shape."""
    kind = "tile" if made.full[node.name] else "rows"
    name = f"{kind}_of_{number!r}_{dtype}"
    if name not in made.dtypes:
        made.full[name], made.dtypes[name] = made.full[node.name], dtype
        made.fill(node, name, number)
    return name


def _tile(made: Selector, node: Node, value: str) -> Tile:
    if value in made.numbers:
        return constant(made, node, made.numbers[value], made.dtypes[value])
    return made.make(value)


# -- other looks ----------------------------------------------------------------------------------


def seen(made: Selector, node: Node) -> Tile:
    """The bits of a tile as another dtype: no instruction."""
    tile, dtype = made.make(node.operands[0]), made.dtypes[node.name]
    if isinstance(tile, Seen):
        value, every = tile.value, tile.every
    else:
        value, every = tile, 1
    return value if made.dtypes[value] is dtype else Seen(value, dtype, every)


def low_bits(made: Selector, node: Node) -> Tile:
    """The low bytes of each element, copied."""
    x, dtype = node.operands[0], made.dtypes[node.name]
    tile = made.make(x)
    value, every = (tile.value, tile.every) if isinstance(tile, Seen) else (tile, 1)
    ratio = made.dtype_of(tile).itemsize // dtype.itemsize
    made.step("tensor_copy", node, {"dst": node.name, "src": Seen(value, dtype, every * ratio)})
    return node.name


# -- bits -----------------------------------------------------------------------------------------


def bitwise(made: Selector, node: Node) -> Tile:
    """tensor_scalar with one or two bit operations, or tensor_tensor."""
    found = _bit_stage(made, node)
    if found is None:
        x, y = (_tile(made, node, o) for o in node.operands)
        made.tensor_tensor(node, node.name, x, y, BITS[node.op])
        return node.name
    base, stages = found[0], [found[1]]
    if made.is_needed_once(base) and made.nodes[base].op in (*BITS, "invert"):
        before = _bit_stage(made, made.nodes[base])
        if before is not None:
            base, stages = before[0], [before[1], *stages]
    operands: dict[str, Operand] = {"dst": node.name, "data": made.make(base)}
    attrs: dict[str, object] = {}
    for number, (op, operand, reverse) in enumerate(stages):
        operands[f"operand{number}"] = made.make(operand) if isinstance(operand, str) else operand
        attrs |= {f"op{number}": op, f"reverse{number}": reverse}
    made.step("tensor_scalar", node, operands, **attrs)
    return node.name


_BitStage = tuple[str, str | float, bool]


def _bit_stage(made: Selector, node: Node) -> tuple[str, _BitStage] | None:
    """The node as one bit operation on a tile with a number or a value per row."""
    if node.op == "invert":
        return node.operands[0], ("bitwise_xor", -1, False)
    x, y = node.operands
    for one, other, reverse in ((x, y, False), (y, x, True)):
        if one not in made.numbers and made.is_scalar(other, node.name):
            given = made.numbers.get(other)
            operand = other if given is None else literal(given, made.dtypes[other])
            return one, (BITS[node.op], operand, reverse)
    return None


# -- exact arithmetic -----------------------------------------------------------------------------


def exact(made: Selector, node: Node) -> Tile:
    """32-bit integers on GpSimdE; comparisons with small numbers in float32."""
    op = EXACT.get(node.op) or ALU[node.op]
    if node.op not in COMPARISONS:
        x, y = (_tile(made, node, o) for o in node.operands)
        made.tensor_tensor(node, node.name, x, y, op, exact=True)
        return node.name
    if _by_float32(made, node):
        return node.name
    x, y = (_tile(made, node, o) for o in node.operands)
    truth = made.fresh(node.name, made.full[node.name], uint32, "_truth")
    first = made.dtype_of(x)
    made.dtypes[truth] = first
    made.tensor_tensor(node, truth, x, y, op, exact=True)
    made.step("tensor_copy", node, {"dst": node.name, "src": truth})
    return node.name


def _by_float32(made: Selector, node: Node) -> bool:
    x, y = node.operands
    for one, other, op in ((x, y, node.op), (y, x, MIRRORED[node.op])):
        number = made.numbers.get(other)
        if number is not None and abs(number) < TOLD_APART and one not in made.numbers:
            operands = {"dst": node.name, "data": made.make(one), "operand0": number}
            made.step("tensor_scalar", node, operands, op0=ALU[op])
            return True
    return False
