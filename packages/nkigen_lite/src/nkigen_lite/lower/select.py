"""Instruction selection: a group's operations as few instructions, whatever its tiles will be.

From the results downwards, every value is made by the largest form that ends in it: activation
takes scale and bias, and adds up its results; tensor_scalar takes two operations;
scalar_tensor_tensor one with a number per row and one with a tile. Only float32 values that nothing
else needs disappear into a form, so every rounding of the program happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neuroncore.engines import Engine
from neuroncore.enums import ReduceCmd
from neuroncore.targets import Target
from nki_dtypes import DType, float32, int32
from nkigen_lite.ir import Node
from nkigen_lite.lower import choosing, whole_numbers
from nkigen_lite.lower.literals import is_by_bits, literal
from nkigen_lite.lower.refuse import cannot
from nkigen_lite.lower.running import scanned
from nkigen_lite.lower.steps import Operand, Seen, Stage, Step, Tile
from nkigen_lite.lower.table import (
    ACTIVATIONS,
    ALU,
    BITS,
    COMPARISONS,
    COPIES,
    EXACT,
    MIRRORED,
    REDUCTIONS,
    SCANS,
    TRUTHS,
    held_as,
    is_wide,
)


class Selector:
    """Makes the steps of one group.

    `full` says whether a value has an element for every column; others have one per row.
    `users` counts how often a value is needed, by nodes or beyond the group. `is_wide_enough`:
    rows are so long that an instruction for each costs no more than one for all of a partition.
    """

    def __init__(
        self, nodes: list[Node], full: Mapping[str, bool], users: Mapping[str, int],
        numbers: Mapping[str, float], dtypes: Mapping[str, DType], target: Target,
        is_wide_enough: bool,
    ) -> None:  # fmt: skip
        self.nodes = {n.name: n for n in nodes}
        self.full, self.users, self.numbers = dict(full), users, numbers
        self.dtypes = {v: held_as(d) for v, d in dtypes.items()}
        self.target = target
        self.steps: list[Step] = []
        self.made: dict[str, Tile] = {}
        """Value → the tile that holds it."""
        self.is_wide_enough = is_wide_enough
        self.negated: dict[str, str] = {}
        self.wide: dict[str, str] = {}

    # -- values -----------------------------------------------------------------------------------

    def make(self, value: str) -> Tile:
        """The value as a tile; what it needs first."""
        if value not in self.nodes:
            return value
        if value not in self.made:
            found = self.way_of(self.nodes[value])(self, self.nodes[value])
            self.made.setdefault(value, found)
        return self.made[value]

    def keep(self, value: str, alone: bool = False) -> None:
        """The value as a tile of its own dtype, `alone`: and of its own name."""
        made = self.make(value)
        if isinstance(made, Seen) or (alone and made != value):
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
        """What its elements are."""
        return tile.dtype if isinstance(tile, Seen) else self.dtypes[tile]

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
        self.steps.append(Step(instruction, operands, attrs, node.origin))

    def fill(self, node: Node, name: str, number: float) -> None:
        """The number in every element of a tile."""
        dtype = self.dtypes[name]
        dst = Seen(name, int32) if is_by_bits(number, dtype) else name
        self.step("memset", node, {"dst": dst, "value": literal(number, dtype)})

    # -- stages -----------------------------------------------------------------------------------

    def stage(self, node: Node) -> tuple[str, Stage] | None:
        """The node as one operation on a tile with a number or a value per row."""
        if node.op == "negative":
            return node.operands[0], Stage("multiply", -1.0)
        if node.op == "abs":
            return node.operands[0], Stage("abs", None)
        if node.op not in ALU:
            return None
        x, y = node.operands
        if self.is_scalar(y, node.name) and x not in self.numbers:
            return x, Stage(ALU[node.op], self.numbers.get(y, y))
        if self.is_scalar(x, node.name) and y not in self.numbers:
            operand = self.numbers.get(x, x)
            if node.op in MIRRORED:
                return y, Stage(ALU[MIRRORED[node.op]], operand)
            return y, Stage(ALU[node.op], operand, reverse=True)
        return None

    def is_scalar(self, value: str, against: str) -> bool:
        """Whether it is one number for each row of `against`."""
        if value in self.numbers:
            return True
        return self.full[against] and not self.full[value]

    def stages(self, value: str, most: int) -> tuple[str, list[Stage]]:
        """What `value` is made of: a value and up to `most` stages that nothing else needs."""
        found: list[Stage] = []
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

    def placed(self, stage: Stage) -> Operand | None:
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
            self.steps.append(Step("tensor_copy", {"dst": name, "src": made}, {}, place))
        return self.wide[value]

    # -- ways -------------------------------------------------------------------------------------

    def activation(self, node: Node) -> Tile:
        """op(x · scale + bias), with the sum of its results where one is needed."""
        (x,) = node.operands
        base, scale, bias = self.scaled(x)
        operands: dict[str, Operand] = {"dst": node.name, "data": self.read(base), "scale": scale}
        if bias is not None:
            operands["bias"] = bias
        attrs: dict[str, Any] = {"op": ACTIVATIONS[node.op]}
        total = self.result_of(node, "sum")
        if total is not None:
            operands["reduce_res"] = total
            attrs |= {"reduce_op": "add", "reduce_cmd": ReduceCmd.reset_reduce}
            self.made[total] = total
        self.step("activation", node, operands, **attrs)
        return node.name

    def scaled(self, x: str) -> tuple[str, Operand, Operand | None]:
        """(base, scale, bias) with x = base · scale + bias."""
        base, found = self.stages(x, 2)
        while found:
            forms = [s.as_affine for s in found]
            kinds = [f[0] if f else None for f in forms]
            if kinds in (["scale"], ["bias"], ["scale", "bias"]) and self.takes(forms):
                break
            base, found = self.stages(x, len(found) - 1)
        scale: Operand = 1.0
        bias: Operand | None = None
        for stage in found:
            kind, operand, sign = stage.as_affine or ("", 0.0, 1.0)
            if kind == "scale":
                scale = self.of_rows(operand) if isinstance(operand, str) else operand
            elif isinstance(operand, str):
                bias = self.negative_of(operand) if sign < 0 else self.of_rows(operand)
            else:
                bias = sign * operand
        return base, scale, bias

    def takes(self, forms: list[Any]) -> bool:
        """A number as bias came with the third generation."""
        numbers = [f for f in forms if f[0] == "bias" and not isinstance(f[1], str)]
        return not numbers or self.target.generation >= 3

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

    def negative_of(self, value: str) -> Tile:
        """-value, one per row: a reduction negates its result for nothing."""
        if value in self.negated:
            return self.negated[value]
        node = self.nodes.get(value)
        if node is not None and node.op == "max":
            self.make(node.operands[0])  # perhaps with its maximum
        name = self.fresh(value, False, float32, "_negated")
        alone = node is not None and self.is_single(value) and node.op in REDUCTIONS
        if alone and node is not None and not self.full[value]:
            self.reduction(node, name, negate=True)
        else:
            origin = node or next(iter(self.nodes.values()))
            base, found = self.stages(value, 1)
            self.tensor_scalar(origin, base, [*found, Stage("multiply", -1.0)], name)
        self.negated[value] = name
        return name

    def elementwise(self, node: Node) -> Tile:
        """tensor_scalar with one or two operations, scalar_tensor_tensor or tensor_tensor."""
        if self.is_of_wide_integers(node):
            return whole_numbers.exact(self, node)
        last = self.stage(node)
        if last is not None:
            base, before = self.stages(last[0], 1)
            self.tensor_scalar(node, base, [*before, last[1]])
            return node.name
        x, y = node.operands
        self.refuse_numbers(node)
        for one, other, swapped in ((x, y, False), (y, x, True)):
            base, before = self.stages(one, 1)
            binary = before and before[0].operand is not None
            if binary and self.full[base] == self.full[other] == self.full[node.name]:
                operand0 = self.placed(before[0])
                assert operand0 is not None
                self.step(
                    "scalar_tensor_tensor", node,
                    {"dst": node.name, "data": self.read(base), "operand0": operand0,
                     "operand1": self.read(other)},
                    op0=before[0].op, reverse0=before[0].reverse, op1=ALU[node.op],
                    reverse1=swapped,
                )  # fmt: skip
                return node.name
        self.tensor_tensor(node, node.name, self.read(x), self.read(y), ALU[node.op])
        return node.name

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

    def refuse_numbers(self, node: Node) -> None:
        if all(o in self.numbers for o in node.operands):
            raise cannot(node, "all its operands are constants")

    def tensor_scalar(
        self, node: Node, base: str, stages: list[Stage], name: str | None = None
    ) -> None:
        operands: dict[str, Operand] = {"dst": name or node.name, "data": self.read(base)}
        attrs: dict[str, Any] = {}
        for number, stage in enumerate(stages):
            attrs |= {f"op{number}": stage.op, f"reverse{number}": stage.reverse}
            operand = self.placed(stage)
            if operand is not None:
                operands[f"operand{number}"] = operand
        self.step("tensor_scalar", node, operands, **attrs)

    def reciprocal(self, node: Node) -> Tile:
        data = self.read(node.operands[0])
        self.step("reciprocal", node, {"dst": node.name, "data": data})
        return node.name

    def copy(self, node: Node) -> Tile:
        """Nothing where the elements are the same, else a copy that rounds or repeats; what is
        computed for it alone is rounded as it is written."""
        (x,) = node.operands
        if x in self.numbers:
            self.fill(node, node.name, self.numbers[x])
            return node.name
        if self.full[x] == self.full[node.name]:
            if self.dtypes[x] is self.dtypes[node.name]:
                return self.make(x)
            if self.is_written_as(x, node):
                return self.way_of(self.nodes[x])(self, replace(self.nodes[x], name=node.name))
        self.step("tensor_copy", node, {"dst": node.name, "src": self.read(x)})
        return node.name

    def is_written_as(self, x: str, node: Node) -> bool:
        """Whether what makes `x` can write it as `node`'s dtype at once."""
        if not self.is_needed_once(x) or self.is_of_wide_integers(self.nodes[x]):
            return False
        if self.nodes[x].op in TRUTHS:
            return True
        op, value = self.nodes[x].op, self.nodes[x].operands[0]
        reduces = op in REDUCTIONS and self.full[x] != self.full[value]
        return self.is_single(x) and (op in _COMPUTES or reduces)

    def reduced(self, node: Node) -> Tile:
        (x,) = node.operands
        if self.full[node.name] == self.full[x]:  # axes of one element
            return self.make(x)
        single = self.nodes.get(x)
        adds = single is not None and node.op == "sum" and single.op in ACTIVATIONS
        data = self.make(x) if adds else self.read(x)
        if node.name in self.made:  # the instruction that made the operand added it up
            return self.made[node.name]
        self.reduction(node, node.name, data=data)
        return node.name

    def reduction(
        self, node: Node, name: str, negate: bool = False, data: Tile | None = None
    ) -> None:
        data = data or self.read(node.operands[0])
        self.step(
            "tensor_reduce", node, {"dst": name, "data": data}, op=REDUCTIONS[node.op],
            negate=negate,
        )  # fmt: skip

    def way_of(self, node: Node) -> Any:
        """How the operation becomes steps."""
        return next(way for known, way in _WAYS if node.op in known)


_COMPUTES = frozenset({*ALU, *ACTIVATIONS, "negative", "abs", "reciprocal"})
_WAYS = (
    (frozenset(ACTIVATIONS), Selector.activation),
    (frozenset({*ALU, "negative", "abs"}), Selector.elementwise),
    (frozenset({"reciprocal"}), Selector.reciprocal),
    (frozenset(REDUCTIONS), Selector.reduced),
    (frozenset(SCANS), scanned),
    (frozenset({"where"}), choosing.where),
    (frozenset(COPIES), Selector.copy),
    (frozenset({*BITS, "invert"}), whole_numbers.bitwise),
    (frozenset(EXACT), whole_numbers.exact),
    (frozenset({"bitcast"}), whole_numbers.seen),
    (frozenset({"low_bits"}), whole_numbers.low_bits),
)
KNOWN = frozenset().union(*(known for known, _ in _WAYS))
"""Operations that a group of tiles can hold."""
