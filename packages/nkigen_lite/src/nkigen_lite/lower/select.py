"""Instruction selection: a group's operations as few instructions, whatever its tiles will be.

From the results downwards, every value is made by the largest form that ends in it: activation
takes scale and bias, and adds up its results; tensor_scalar takes two operations;
scalar_tensor_tensor one with a number per row and one with a tile. Only float32 values that nothing
else needs disappear into a form, so every rounding of the program happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.enums import ReduceCmd
from neuroncore.errors import Place
from neuroncore.targets import Target
from nki_dtypes import DType, float32, uint8
from nkigen_lite.ir import Node
from nkigen_lite.lower.refuse import cannot
from nkigen_lite.lower.table import ACTIVATIONS, ALU, COPIES, MIRRORED, REDUCTIONS, held_as

Operand = str | float
"""A value's name or a number."""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction on a tile: tensors by the names of values."""

    instruction: str
    operands: Mapping[str, Operand]
    attrs: Mapping[str, Any]
    origin: Place | None

    @property
    def reads(self) -> tuple[str, ...]:
        """Values that it needs."""
        partly = self.instruction == "tensor_copy_predicated"
        out = ("reduce_res",) if partly else ("dst", "reduce_res")
        return tuple(v for k, v in self.operands.items() if isinstance(v, str) and k not in out)

    @property
    def writes(self) -> tuple[str, ...]:
        """Values that it makes."""
        return tuple(str(self.operands[k]) for k in ("dst", "reduce_res") if k in self.operands)


@dataclass(frozen=True, slots=True)
class Stage:
    """One ALU operation with a number or one value per row."""

    op: str
    operand: Operand | None
    reverse: bool = False

    @property
    def as_affine(self) -> tuple[str, Operand, float] | None:
        """("scale" or "bias", operand, its sign) where the stage is one of x·s, x + b, x - b."""
        if self.operand is None or self.reverse:
            return None
        known = {"multiply": ("scale", 1.0), "add": ("bias", 1.0), "subtract": ("bias", -1.0)}
        if self.op not in known:
            return None
        what, sign = known[self.op]
        return what, self.operand, sign


class Selector:
    """Makes the steps of one group.

    `full` says whether a value has an element for every column; others have one per row.
    `users` counts how often a value is needed, by nodes or beyond the group.
    """

    def __init__(
        self, nodes: list[Node], full: Mapping[str, bool], users: Mapping[str, int],
        numbers: Mapping[str, float], dtypes: Mapping[str, DType], target: Target,
    ) -> None:  # fmt: skip
        self.nodes = {n.name: n for n in nodes}
        self.full, self.users, self.numbers = dict(full), users, numbers
        self.dtypes = {v: held_as(d) for v, d in dtypes.items()}
        self.target = target
        self.steps: list[Step] = []
        self.made: dict[str, str] = {}
        """Value → the value whose tile holds it."""
        self.negated: dict[str, str] = {}
        self.wide: dict[str, str] = {}

    # -- values -----------------------------------------------------------------------------------

    def make(self, value: str) -> str:
        """The value as a tile; what it needs first."""
        if value not in self.nodes:
            return value
        if value not in self.made:
            node = self.nodes[value]
            for known, way in _WAYS:
                if node.op in known:
                    found = way(self, node)
                    break
            else:
                raise cannot(node, "no engine operation is known for it")
            self.made.setdefault(value, found)
        return self.made[value]

    def operand(self, value: str) -> Operand:
        """A number, or the value as a tile."""
        return self.numbers[value] if value in self.numbers else self.make(value)

    def is_single(self, value: str) -> bool:
        """Whether it may disappear into what needs it."""
        fits = value in self.nodes and value not in self.made and self.users[value] == 1
        return fits and self.dtypes[value] is float32

    def fresh(self, like: str, full: bool, dtype: DType, suffix: str) -> str:
        """A value that the graph does not have."""
        name = f"{like}{suffix}"
        self.full[name], self.dtypes[name] = full, dtype
        return name

    def step(
        self, instruction: str, node: Node, operands: Mapping[str, Operand], **attrs: Any
    ) -> None:
        self.steps.append(Step(instruction, operands, attrs, node.origin))

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
        while len(found) < most and self.is_single(value):
            step = self.stage(self.nodes[value])
            if step is None:
                break
            value = step[0]
            found.insert(0, step[1])
        return value, found

    def placed(self, stage: Stage) -> Operand | None:
        """The stage's operand, made."""
        return self.of_rows(stage.operand) if isinstance(stage.operand, str) else stage.operand

    def of_rows(self, value: str) -> str:
        """One float32 number per row, as instructions take them."""
        made = self.make(value)
        if self.dtypes[made] is float32:
            return made
        if made not in self.wide:
            name = self.wide[made] = self.fresh(made, False, float32, "_float32")
            origin = self.nodes.get(value)
            place = origin.origin if origin else None
            self.steps.append(Step("tensor_copy", {"dst": name, "src": made}, {}, place))
        return self.wide[made]

    # -- ways -------------------------------------------------------------------------------------

    def activation(self, node: Node) -> str:
        """op(x · scale + bias), with the sum of its results where one is needed."""
        (x,) = node.operands
        base, scale, bias = self.scaled(x)
        operands: dict[str, Operand] = {"dst": node.name, "data": self.make(base), "scale": scale}
        if bias is not None:
            operands["bias"] = bias
        attrs: dict[str, Any] = {"op": ACTIVATIONS[node.op]}
        total = self.sum_of(node)
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

    def sum_of(self, node: Node) -> str | None:
        """A sum over the columns of what the node makes, not made yet."""
        if not self.full[node.name] or node.spec.dtype is not float32:
            return None
        for other in self.nodes.values():
            if other.op == "sum" and other.operands == (node.name,) and not self.full[other.name]:
                return other.name if other.name not in self.made else None
        return None

    def negative_of(self, value: str) -> str:
        """-value, one per row: a reduction negates its result for nothing."""
        if value in self.negated:
            return self.negated[value]
        node = self.nodes.get(value)
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

    def elementwise(self, node: Node) -> str:
        """tensor_scalar with one or two operations, scalar_tensor_tensor or tensor_tensor."""
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
            if binary and self.full[base] and self.full[other] and base != other:
                operand0 = self.placed(before[0])
                assert operand0 is not None
                self.step(
                    "scalar_tensor_tensor", node,
                    {"dst": node.name, "data": self.make(base), "operand0": operand0,
                     "operand1": self.make(other)},
                    op0=before[0].op, reverse0=before[0].reverse, op1=ALU[node.op],
                    reverse1=swapped,
                )  # fmt: skip
                return node.name
        operands = {"dst": node.name, "data1": self.make(x), "data2": self.make(y)}
        self.step("tensor_tensor", node, operands, op=ALU[node.op])
        return node.name

    def refuse_numbers(self, node: Node) -> None:
        if all(o in self.numbers for o in node.operands):
            raise cannot(node, "all its operands are constants")

    def tensor_scalar(
        self, node: Node, base: str, stages: list[Stage], name: str | None = None
    ) -> None:
        operands: dict[str, Operand] = {"dst": name or node.name, "data": self.make(base)}
        attrs: dict[str, Any] = {}
        for number, stage in enumerate(stages):
            attrs |= {f"op{number}": stage.op, f"reverse{number}": stage.reverse}
            operand = self.placed(stage)
            if operand is not None:
                operands[f"operand{number}"] = operand
        self.step("tensor_scalar", node, operands, **attrs)

    def reciprocal(self, node: Node) -> str:
        data = self.make(node.operands[0])
        self.step("reciprocal", node, {"dst": node.name, "data": data})
        return node.name

    def copy(self, node: Node) -> str:
        """Nothing where the elements are the same, else a copy that rounds."""
        (x,) = node.operands
        if x in self.numbers:
            self.step("memset", node, {"dst": node.name, "value": self.numbers[x]})
            return node.name
        if self.full[x] != self.full[node.name]:
            raise cannot(node, "it repeats one value per row over the columns")
        made = self.make(x)
        if self.dtypes[x] is self.dtypes[node.name]:
            return made
        if not _converts(self.dtypes[x], node.spec.dtype):
            raise cannot(node, f"{self.dtypes[x]} to {node.spec.dtype} is not written yet")
        self.step("tensor_copy", node, {"dst": node.name, "src": made})
        return node.name

    def where(self, node: Node) -> str:
        """The second choice everywhere, then the first where the condition holds."""
        condition, first, second = node.operands
        mixed = [v for v in node.operands if v not in self.numbers and self.full[v] is not
                 self.full[node.name]]  # fmt: skip
        if condition in self.numbers or mixed:
            raise cannot(node, "a condition or choice of one value per row is not written yet")
        chosen, predicate = self.operand(first), self.make(condition)
        if second in self.numbers:
            self.step("memset", node, {"dst": node.name, "value": self.numbers[second]})
        else:
            self.step("tensor_copy", node, {"dst": node.name, "src": self.make(second)})
        operands = {"dst": node.name, "src": chosen, "predicate": predicate}
        self.step("tensor_copy_predicated", node, operands)
        return node.name

    def reduced(self, node: Node) -> str:
        if self.full[node.name] == self.full[node.operands[0]]:  # axes of one element
            return self.make(node.operands[0])
        made = self.make(node.operands[0])
        if node.name in self.made:  # the instruction that made the operand added it up
            return self.made[node.name]
        self.reduction(node, node.name, data=made)
        return node.name

    def reduction(
        self, node: Node, name: str, negate: bool = False, data: str | None = None
    ) -> None:
        data = data or self.make(node.operands[0])
        self.step(
            "tensor_reduce", node, {"dst": name, "data": data}, op=REDUCTIONS[node.op],
            negate=negate,
        )  # fmt: skip


def _converts(old: DType, new: DType) -> bool:
    """Whether the machine's conversion is also NumPy's: between floats, and from bool (held as
    uint8)."""
    return (old.is_float or old is uint8) and new.is_float


_WAYS = (
    (frozenset(ACTIVATIONS), Selector.activation),
    (frozenset({*ALU, "negative", "abs"}), Selector.elementwise),
    (frozenset({"reciprocal"}), Selector.reciprocal),
    (frozenset(REDUCTIONS), Selector.reduced),
    (frozenset({"where"}), Selector.where),
    (COPIES, Selector.copy),
)
KNOWN = frozenset().union(*(known for known, _ in _WAYS))
"""Operations that a group of tiles can hold."""
