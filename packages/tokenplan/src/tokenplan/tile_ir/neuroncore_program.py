"""A described kernel as a NeuronCore program: one instance of the grid after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import log

from neuroncore.program import Affine, Program, parse_program
from tokenplan.tile_ir.description import (
    Array,
    Compute,
    Described,
    DescriptionError,
    Repeat,
    Statement,
    Tile,
    Transfer,
)

_DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "i16": "int16",
           "i32": "int32"}  # fmt: skip
_TWO = {
    "addf": "add",
    "subf": "subtract",
    "mulf": "multiply",
    "divf": "multiply",
    "maxf": "maximum",
}
_ONE = {"exp": ("exp", 1.0), "exp2": ("exp", log(2.0)), "rsqrt": ("rsqrt", 1.0),
        "sqrt": ("sqrt", 1.0)}  # fmt: skip
_REDUCED = {"sum": "add", "max": "maximum"}


def neuroncore_program(described: Described, target: str = "trn2", nki: str = "0.7") -> Program:
    """The program; tiles have at most 128 rows, and broadcast along rows alone.

    Raises DescriptionError for an operation that the NeuronCore does not have in this form, and
    ProgramTextError or ProgramError for a limit of an instruction.
    """
    for array in described.arrays:
        _check_array(array)
    writer = _Writer({*(a.name for a in described.arrays), *described.ranges()})
    arrays = ", ".join(f"{a.name}: {_DTYPES[a.dtype]}{list(a.shape)}" for a in described.arrays)
    head = [f'program("{target}", "{nki}")', f"def {described.name}({arrays}):"]
    writer.depth = 1
    for name, size in described.grid:
        writer.line(f"for {name} in range({size}):")
        writer.depth += 1
    writer.statements(described.body)
    stored = dict.fromkeys(t.array.name for t in described.transfers() if t.kind == "store")
    text = "\n".join([*head, *writer.lines, f"    return {', '.join(stored)}", ""])
    return parse_program(text, described.name)


def _check_array(array: Array) -> None:
    """Raises DescriptionError for what a parameter of a program cannot be."""
    if array.dtype not in _DTYPES:
        raise DescriptionError(
            f"array {array.name} contains {array.dtype}", expected=", ".join(_DTYPES),
            hint="the NeuronCore has no such dtype",
        )  # fmt: skip
    reach = 1
    for size, stride in sorted(chain(*array.layout.dims), key=lambda factor: abs(factor[1])):
        if size > 1 and abs(stride) < reach:
            raise DescriptionError(
                f"elements of array {array.name} may share bytes",
                hint="the NeuronCore program has arrays whose elements are distinct",
            )
        reach += (size - 1) * abs(stride)


@dataclass
class _Writer:
    names: set[str]
    """Of arrays and variables."""
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    buffers: dict[str, str] = field(default_factory=dict)
    """By tile, the name of its buffer."""
    constants: dict[str, float] = field(default_factory=dict)
    """Tiles of one element that are numbers."""
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def call(self, name: str, **operands: object) -> None:
        self.line(f"{name}({', '.join(f'{k}={v}' for k, v in operands.items())})")

    def new(self, shape: Sequence[int], dtype: str, space: str = "sbuf") -> str:
        """The name of a new buffer."""
        self.count += 1
        while (name := f"t{self.count}") in self.names:
            self.count += 1
        self.line(f"{name} = buffer({_DTYPES[dtype]}{list(shape)}, {space})")
        return name

    def whole(self, tile: Tile) -> str:
        return f"{self.buffers[tile.id]}[:, :]"

    def reciprocal(self, tile: Tile) -> str:
        """A buffer of the inverse of each element."""
        found = f"{self.new(tile.shape, tile.dtype)}[:, :]"
        self.call("reciprocal", dst=found, data=self.whole(tile))
        return found

    def statements(self, body: Sequence[Statement]) -> None:
        for statement in body:
            match statement:
                case Transfer():
                    self.transfer(statement)
                case Compute():
                    self.compute(statement)
                case Repeat():
                    self.repeat(statement)

    def transfer(self, made: Transfer) -> None:
        if made.order != "weak":
            raise DescriptionError(f"{made.id}: the NeuronCore has no order {made.order}")
        part = f"{made.array.name}[{', '.join(_ranges(made))}]"
        if made.kind == "store":
            self.call("dma_copy", dst=part, src=self.whole(made.tile))
            return
        self.buffers[made.tile.id] = self.new(made.tile.shape, made.tile.dtype)
        self.call("dma_copy", dst=self.whole(made.tile), src=part)

    def repeat(self, loop: Repeat) -> None:
        for initial, inside, _, result in loop.carried:
            name = self.new(inside.shape, inside.dtype)
            self.buffers[inside.id] = self.buffers[result.id] = name
            self.call("tensor_copy", dst=f"{name}[:, :]", src=self.whole(initial))
        self.line(f"for {loop.name} in range({loop.trips}):")
        self.depth += 1
        self.statements(loop.body)
        for _, inside, update, _ in loop.carried:
            if self.buffers[update.id] != self.buffers[inside.id]:
                self.call("tensor_copy", dst=self.whole(inside), src=self.whole(update))
        self.depth -= 1

    def compute(self, node: Compute) -> None:
        if node.operation == "full":
            self.constants[node.result.id] = node.attributes["value"]
            if node.result.shape[0] == node.result.shape[-1] == 1:
                return
        self.buffers[node.result.id] = self.new(node.result.shape, node.result.dtype)
        _EMIT.get(node.operation, _elementwise)(self, node, self.whole(node.result))


def _ranges(made: Transfer) -> list[str]:
    found = []
    for index, step, extent in zip(made.index, made.step, made.tile.shape, strict=True):
        first: Affine = index * step
        found.append(f"{first} : {first + extent}")
    return found


def _elementwise(writer: _Writer, node: Compute, dst: str) -> None:
    name = node.operation
    if name in _ONE:
        op, scale = _ONE[name]
        writer.call("activation", dst=dst, op=op, data=writer.whole(node.inputs[0]), scale=scale)
        return
    if name not in _TWO:
        raise DescriptionError(f"{node.id}: {name} is not an operation of the NeuronCore target")
    a, b = node.inputs
    if a.shape == b.shape:
        other = writer.reciprocal(b) if name == "divf" else writer.whole(b)
        writer.call("tensor_tensor", dst=dst, data1=writer.whole(a), data2=other, op=_TWO[name])
        return
    if b.shape[0] == 1 and b.id not in writer.constants:
        raise DescriptionError(f"{node.id}: a row cannot be repeated over partitions")
    operand = writer.constants[b.id] if b.id in writer.constants else writer.whole(b)
    if name == "divf":
        operand = 1 / operand if isinstance(operand, float) else writer.reciprocal(b)
    writer.call("tensor_scalar", dst=dst, data=writer.whole(a), op0=_TWO[name], operand0=operand)


def _reduce(writer: _Writer, node: Compute, dst: str) -> None:
    if node.attributes["axis"] != 1:
        raise DescriptionError(f"{node.id}: the NeuronCore reduces along axis 1")
    data = writer.whole(node.inputs[0])
    writer.call("tensor_reduce", dst=dst, op=_REDUCED[node.operation], data=data, axis=1)


def _transpose(writer: _Writer, node: Compute, dst: str) -> None:
    source = node.inputs[0]
    bank = writer.new(source.shape[::-1], source.dtype, "psum")
    writer.call("nc_transpose", dst=f"{bank}[:, :]", data=writer.whole(source))
    writer.call("tensor_copy", dst=dst, src=f"{bank}[:, :]")


def _mma(writer: _Writer, node: Compute, dst: str) -> None:
    a, b, acc = node.inputs
    stationary = writer.new(a.shape[::-1], a.dtype)
    bank = writer.new(a.shape[::-1], a.dtype, "psum")
    writer.call("nc_transpose", dst=f"{bank}[:, :]", data=writer.whole(a))
    writer.call("tensor_copy", dst=f"{stationary}[:, :]", src=f"{bank}[:, :]")
    product = writer.new(acc.shape, "f32", "psum")
    writer.call("nc_matmul", dst=f"{product}[:, :]", stationary=f"{stationary}[:, :]",
                moving=writer.whole(b))  # fmt: skip
    writer.call("tensor_tensor", dst=dst, data1=writer.whole(acc), data2=f"{product}[:, :]",
                op="add")  # fmt: skip


_EMIT: dict[str, Callable[[_Writer, Compute, str], None]] = {
    "full": lambda w, node, dst: w.call("memset", dst=dst, value=node.attributes["value"]),
    "cast": lambda w, node, dst: w.call("tensor_copy", dst=dst, src=w.whole(node.inputs[0])),
    "sum": _reduce,
    "max": _reduce,
    "transpose": _transpose,
    "mma": _mma,
}
