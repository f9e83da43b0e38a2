"""Instruction selection: the operations of a group as few instructions, for tiles of any size.

From the results downwards, every value is made by the largest form that ends in it: activation
takes scale and bias, and adds up its results; tensor_scalar takes two operations;
scalar_tensor_tensor one with a number per row and one with a tile. Only float32 values with one
user become part of a larger form, so that every rounding of the program is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuroncore.enums import Engine
from neuroncore.targets import Target
from nki_dtypes import DType, float32, int32
from nkigen_lite.ir import Node
from nkigen_lite.selection.engine_operations import (
    ALU,
    BITS,
    COMPARISONS,
    MIRRORED,
    held_as,
    is_wide,
)
from nkigen_lite.selection.literals import is_by_bits, literal
from nkigen_lite.selection.tile_instructions import (
    AluStage,
    Operand,
    ReinterpretedTile,
    Tile,
    TileInstruction,
)
from nkigen_lite.selection.unsupported import unsupported

Rule = Callable[["Selector", Node], Tile]
"""Emits the instructions of a node; returns the tile of its result."""


class Selector:
    """Makes the steps of one group.

    `full` says whether a value has an element for every column; others have one per row.
    `users` counts how often a value is needed, by nodes or beyond the group. `is_wide_enough`:
    rows are so long that an instruction for each costs no more than one for all of a partition.
    """

    def __init__(
        self, nodes: list[Node], full: Mapping[str, bool], users: Mapping[str, int],
        numbers: Mapping[str, float], dtypes: Mapping[str, DType], target: Target,
        is_wide_enough: bool, rules: Mapping[str, Rule],
    ) -> None:  # fmt: skip
        self.nodes = {n.name: n for n in nodes}
        self.full, self.users, self.numbers = dict(full), users, numbers
        self.dtypes = {v: held_as(d) for v, d in dtypes.items()}
        self.target, self.rules = target, rules
        self.steps: list[TileInstruction] = []
        self.made: dict[str, Tile] = {}
        """Value → the tile that holds it."""
        self.is_wide_enough = is_wide_enough
        self.negated: dict[str, str] = {}
        self.wide: dict[str, str] = {}

    def select(self, node: Node) -> Tile:
        """The node's instructions, by the rule of its operation; the tile of its result."""
        return self.rules[node.op](self, node)

    # -- values -----------------------------------------------------------------------------------

    def make(self, value: str) -> Tile:
        """The value as a tile; what it needs first."""
        if value not in self.nodes:
            return value
        if value not in self.made:
            self.made.setdefault(value, self.select(self.nodes[value]))
        return self.made[value]

    def keep(self, value: str, alone: bool = False) -> None:
        """The value as a tile of its own dtype, `alone`: and of its own name."""
        made = self.make(value)
        if isinstance(made, ReinterpretedTile) or (alone and made != value):
            self.step("tensor_copy", self.nodes[value], {"dst": value, "src": made})
            self.made[value] = value

    @property
    def tiles(self) -> dict[str, str]:
        """Value → the value in whose tile it lies as it is."""
        return {value: tile for value, tile in self.made.items() if isinstance(tile, str)}

    def read(self, value: str) -> Tile:
        """The value where an engine widens it to float32 by reading it."""
        node = self.nodes.get(value)
        if node is None or value in self.made or node.op != "convert":
            return self.make(value)
        (x,) = node.operands
        same = x not in self.numbers and self.full[x] == self.full[value]
        return self.read(x) if same and self.dtypes[value] is float32 else self.make(value)

    def operand(self, value: str) -> Operand:
        """A number, or the value as a tile."""
        return self.numbers[value] if value in self.numbers else self.make(value)

    def dtype_of(self, tile: Tile) -> DType:
        """The dtype of its elements."""
        return tile.dtype if isinstance(tile, ReinterpretedTile) else self.dtypes[tile]

    def is_single(self, value: str) -> bool:
        """Whether it may disappear into what needs it."""
        return self.is_needed_once(value) and self.dtypes[value] is float32

    def is_needed_once(self, value: str) -> bool:
        return value in self.nodes and value not in self.made and self.users[value] == 1

    def fresh(self, like: str, full: bool, dtype: DType, suffix: str) -> str:
        """A value that the graph does not have."""
        name = f"{like}{suffix}"
        self.full[name], self.dtypes[name] = full, dtype
        return name

    def step(
        self, instruction: str, node: Node, operands: Mapping[str, Operand], **attrs: Any
    ) -> None:
        self.steps.append(TileInstruction(instruction, operands, attrs, node.origin))

    def fill(self, node: Node, name: str, number: float) -> None:
        """The number in every element of a tile."""
        dtype = self.dtypes[name]
        dst = ReinterpretedTile(name, int32) if is_by_bits(number, dtype) else name
        self.step("memset", node, {"dst": dst, "value": literal(number, dtype)})

    # -- stages -----------------------------------------------------------------------------------

    def stage(self, node: Node) -> tuple[str, AluStage] | None:
        """The node as one operation on a tile with a number or a value per row."""
        if node.op == "negative":
            return node.operands[0], AluStage("multiply", -1.0)
        if node.op == "abs":
            return node.operands[0], AluStage("abs", None)
        if node.op not in ALU:
            return None
        x, y = node.operands
        if self.is_scalar(y, node.name) and x not in self.numbers:
            return x, AluStage(ALU[node.op], self.numbers.get(y, y))
        if self.is_scalar(x, node.name) and y not in self.numbers:
            operand = self.numbers.get(x, x)
            if node.op in MIRRORED:
                return y, AluStage(ALU[MIRRORED[node.op]], operand)
            return y, AluStage(ALU[node.op], operand, reverse=True)
        return None

    def is_scalar(self, value: str, against: str) -> bool:
        """Whether it is one number for each row of `against`."""
        if value in self.numbers:
            return True
        return self.full[against] and not self.full[value]

    def stages(self, value: str, most: int) -> tuple[str, list[AluStage]]:
        """The parts of `value`: a value and up to `most` stages that nothing else needs."""
        found: list[AluStage] = []
        while len(found) < most and (self.is_single(value) or self.is_passing_truth(value)):
            step = self.stage(self.compared(self.nodes[value]))
            if step is None:
                break
            value = step[0]
            found.insert(0, step[1])
        return value, found

    def compared(self, node: Node) -> Node:
        """The comparison that alone is read as numbers, 1 and 0; else the node itself."""
        truth = self.nodes.get(node.operands[0])
        if node.op != "convert" or truth is None or truth.op not in COMPARISONS:
            return node
        alone = self.is_needed_once(truth.name) and self.full[truth.name] == self.full[node.name]
        return truth if alone and not self.is_of_wide_integers(truth) else node

    def is_passing_truth(self, value: str) -> bool:
        """Whether it is a comparison that only the next operation of an engine needs: 0 or 1."""
        alone = self.is_wide_enough and self.is_needed_once(value)
        node = self.nodes.get(value) if alone else None
        return node is not None and node.op in COMPARISONS and not self.is_of_wide_integers(node)

    def placed(self, stage: AluStage) -> Operand | None:
        """The stage's operand, made."""
        return self.of_rows(stage.operand) if isinstance(stage.operand, str) else stage.operand

    def of_rows(self, value: str) -> Tile:
        """One float32 number per row, as instructions take them."""
        made = self.make(value)
        if self.dtype_of(made) is float32:
            return made
        if value not in self.wide:
            name = self.wide[value] = self.fresh(value, False, float32, "_float32")
            origin = self.nodes.get(value)
            place = origin.origin if origin else None
            self.steps.append(TileInstruction("tensor_copy", {"dst": name, "src": made}, {}, place))
        return self.wide[value]

    # -- instructions ---------------------------------------------------------------------------

    def result_of(self, node: Node, reduction: str) -> str | None:
        """A reduction over the columns of what the node makes, not made yet."""
        if not self.full[node.name] or self.dtypes[node.name] is not float32:
            return None
        for other in self.nodes.values():
            if (
                other.op == reduction
                and other.operands == (node.name,)
                and not self.full[other.name]
            ):
                return other.name if other.name not in self.made else None
        return None

    def tensor_tensor(
        self, node: Node, dst: str, x: Operand, y: Operand, op: str, exact: bool = False
    ) -> None:
        """Of two tiles: in float32 on VectorE, or on GpSimdE in 32-bit integers."""
        engine = {"engine": Engine.gpsimd} if exact else {}
        kinds = {self.dtype_of(t) for t in (dst, x, y) if not isinstance(t, (int, float))}
        if not exact and all(map(is_wide, kinds)) and op not in BITS.values():
            engine = {"engine": Engine.vector}  # GpSimdE would not compute in float32
        self.step("tensor_tensor", node, {"dst": dst, "data1": x, "data2": y}, op=op, **engine)

    def is_of_wide_integers(self, node: Node) -> bool:
        return any(is_wide(self.dtypes[o]) for o in node.operands)

    def check_operands(self, node: Node) -> None:
        if all(o in self.numbers for o in node.operands):
            raise unsupported(node, "all its operands are constants")
