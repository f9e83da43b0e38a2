"""Integers and bits on tiles: bit operations, exact 32-bit arithmetic, reinterpreted tiles.

VectorE computes in float32, which holds integers up to 2²⁴; its bit operations never convert.
GpSimdE's tensor_tensor of 32-bit integers is exact [NKI: tensor_tensor, integers].
"""

from __future__ import annotations

from nki_dtypes import DType, uint32
from nkigen_lite.ir import Node
from nkigen_lite.selection.engine_operations import ALU, BITS, COMPARISONS, EXACT, MIRRORED
from nkigen_lite.selection.literals import literal
from nkigen_lite.selection.selector import Selector
from nkigen_lite.selection.tile_instructions import Operand, ReinterpretedTile, Tile, elements_of

EXACT_BELOW = float(1 << 24)
"""float32 compares every integer exactly with a number of smaller magnitude: the integers that it
rounds are farther away."""


def constant_tile(selector: Selector, node: Node, number: float, dtype: DType) -> str:
    """A tile of one number, made once for its group and shape."""
    kind = "tile" if selector.full[node.name] else "rows"
    name = f"{kind}_of_{number!r}_{dtype}"
    if name not in selector.dtypes:
        selector.full[name], selector.dtypes[name] = selector.full[node.name], dtype
        selector.fill(node, name, number)
    return name


def _tile(selector: Selector, node: Node, value: str) -> Tile:
    if value in selector.numbers:
        return constant_tile(selector, node, selector.numbers[value], selector.dtypes[value])
    return selector.make(value)


# -- reinterpreted tiles --------------------------------------------------------------------------


def reinterpreted(selector: Selector, node: Node) -> Tile:
    """The bits of a tile as another dtype: no instruction."""
    tile, dtype = selector.make(node.operands[0]), selector.dtypes[node.name]
    value, every = elements_of(tile)
    return value if selector.dtypes[value] is dtype else ReinterpretedTile(value, dtype, every)


def low_bits(selector: Selector, node: Node) -> Tile:
    """The low bytes of each element, copied."""
    x, dtype = node.operands[0], selector.dtypes[node.name]
    tile = selector.make(x)
    value, every = elements_of(tile)
    ratio = selector.dtype_of(tile).itemsize // dtype.itemsize
    source = ReinterpretedTile(value, dtype, every * ratio)
    selector.step("tensor_copy", node, {"dst": node.name, "src": source})
    return node.name


# -- bits -----------------------------------------------------------------------------------------


def bitwise(selector: Selector, node: Node) -> Tile:
    """tensor_scalar with one or two bit operations, or tensor_tensor."""
    found = _bit_stage(selector, node)
    if found is None:
        x, y = (_tile(selector, node, o) for o in node.operands)
        selector.tensor_tensor(node, node.name, x, y, BITS[node.op])
        return node.name
    base, stages = found[0], [found[1]]
    if selector.is_needed_once(base) and selector.nodes[base].op in (*BITS, "invert"):
        before = _bit_stage(selector, selector.nodes[base])
        if before is not None:
            base, stages = before[0], [before[1], *stages]
    operands: dict[str, Operand] = {"dst": node.name, "data": selector.make(base)}
    attrs: dict[str, object] = {}
    for number, (op, operand, reverse) in enumerate(stages):
        operands[f"operand{number}"] = (
            selector.make(operand) if isinstance(operand, str) else operand
        )
        attrs |= {f"op{number}": op, f"reverse{number}": reverse}
    selector.step("tensor_scalar", node, operands, **attrs)
    return node.name


_BitStage = tuple[str, str | float, bool]


def _bit_stage(selector: Selector, node: Node) -> tuple[str, _BitStage] | None:
    """The node as one bit operation on a tile with a number or a value per row."""
    if node.op == "invert":
        return node.operands[0], ("bitwise_xor", -1, False)
    x, y = node.operands
    for one, other, reverse in ((x, y, False), (y, x, True)):
        if one not in selector.numbers and selector.is_scalar(other, node.name):
            given = selector.numbers.get(other)
            operand = other if given is None else literal(given, selector.dtypes[other])
            return one, (BITS[node.op], operand, reverse)
    return None


# -- exact arithmetic -----------------------------------------------------------------------------


def exact(selector: Selector, node: Node) -> Tile:
    """32-bit integers on GpSimdE; comparisons with small numbers in float32."""
    op = EXACT.get(node.op) or ALU[node.op]
    if node.op not in COMPARISONS:
        x, y = (_tile(selector, node, o) for o in node.operands)
        selector.tensor_tensor(node, node.name, x, y, op, exact=True)
        return node.name
    if _by_float32(selector, node):
        return node.name
    x, y = (_tile(selector, node, o) for o in node.operands)
    truth = selector.fresh(node.name, selector.full[node.name], uint32, "_truth")
    first = selector.dtype_of(x)
    selector.dtypes[truth] = first
    selector.tensor_tensor(node, truth, x, y, op, exact=True)
    selector.step("tensor_copy", node, {"dst": node.name, "src": truth})
    return node.name


def _by_float32(selector: Selector, node: Node) -> bool:
    x, y = node.operands
    for one, other, op in ((x, y, node.op), (y, x, MIRRORED[node.op])):
        number = selector.numbers.get(other)
        if number is not None and abs(number) < EXACT_BELOW and one not in selector.numbers:
            operands = {"dst": node.name, "data": selector.make(one), "operand0": number}
            selector.step("tensor_scalar", node, operands, op0=ALU[op])
            return True
    return False
