"""Random programs of a few instructions, drawn from the examples of the records.

A program loads its operands, executes one to three calls and returns what they write. Operation,
engine, dtype and reduction are varied as far as the version takes them; inputs are of one fill each
(nki_migrate/verify/cases.py), ties and extremes among them. A failing case is its seed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS, AluOp
from neuroncore.enums import Engine, MemorySpace, ReduceCmd
from neuroncore.errors import KernelError
from neuroncore.instructions import INSTRUCTIONS, Instruction
from neuroncore.isa.examples import example_call
from neuroncore.memory import View
from neuroncore.program import (
    Access,
    Allocate,
    Buffer,
    Call,
    Program,
    Statement,
    execute_program,
    make_call,
    verify,
    whole,
)
from neuroncore.spec import Spec
from neuroncore.surface import VERSIONS
from nki_dtypes import DType, bfloat16, float16, float32, int32, uint16, uint32
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Arg

FILLS = ("normal", "ties", "extremes", "nan", "large_integers")
_OPERATIONS = ("add", "subtract", "multiply", "maximum", "minimum", "equal", "greater",
               "logical_and", "bitwise_and", "bitwise_xor")  # fmt: skip
_DTYPES = (float32, bfloat16, float16, int32, uint32)
_EXACT = {
    *("index", "indices", "segment_ids", "predicate", "src_seeds", "prob"),
    *("stationary_scale", "moving_scale"),
}
"""Operands whose content is the example's: others would be out of bounds."""
ATTEMPTS = 500
WITHOUT = {
    "tensor_copy_dynamic_dst": "0.1 alone has it",
    "tensor_copy_dynamic_src": "0.1 alone has it",
    "nc_matmul_mx": "its packed operands have no NumPy dtype to be filled in",
    "register_load": "a register is a value of the language",
    "register_store": "a register is a value of the language",
    "scalar_load": "a scalar is a value of the language",
    "scalar_store": "a scalar is a value of the language",
}
"""Records that no program of this kind contains, and why."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A legal program, arrays for its parameters, and the bytes of its results."""

    program: Program
    arrays: list[np.ndarray]
    fill: str
    results: list[bytes]


def drawn(seed: int, instruction: str | None = None, nki: str | None = None) -> Drawn:
    """The program of a seed: of one instruction, or of one to three random ones."""
    random = Random(seed)
    for _ in range(ATTEMPTS):
        found = _attempt(random, instruction, nki)
        if found is not None:
            return found
    raise AssertionError(f"no legal program of {instruction or 'these instructions'}, seed {seed}")


def _attempt(random: Random, instruction: str | None, nki: str | None) -> Drawn | None:
    names = [instruction] if instruction else _some(random)
    if not any(INSTRUCTIONS[name].outputs for name in names):
        names.append("rng")  # draws from the state that the others set
    fill = random.choice(FILLS)
    maker = _Maker(random, nki or random.choice(VERSIONS), fill)
    maker.target = random.choice(("trn2", "trn3"))
    try:
        for name in names:
            maker.add(INSTRUCTIONS[name])
    except KernelError:
        return None
    program = maker.program()
    if verify(program, content=False):
        return None
    try:
        results = execute_program(program, copy.deepcopy(maker.arrays))
    except KernelError:  # a limit on values
        return None
    return Drawn(program, maker.arrays, fill, [r.tobytes() for r in results])


def _some(random: Random) -> list[str]:
    known = sorted(INSTRUCTIONS.keys() - WITHOUT.keys())
    return [random.choice(known) for _ in range(random.choice((1, 1, 2, 3)))]


@dataclass
class _Maker:
    random: Random
    nki: str
    fill: str
    target: str = "trn2"
    parameters: list[Buffer] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)
    body: list[Statement] = field(default_factory=list)
    results: list[Buffer] = field(default_factory=list)
    made: int = 0

    def program(self) -> Program:
        names = tuple(b.name for b in self.results)
        return Program(
            "drawn", tuple(self.parameters), tuple(self.body), names, self.target, self.nki
        )

    # -- calls ----------------------------------------------------------------------------------

    def add(self, record: Instruction) -> None:
        """One call: its operands loaded, itself, and what it writes stored."""
        example = self.random.choice(record.examples)
        self.target = example.given.get("target", self.target)
        use = example_call(record, example)
        kind = self.random.choice(_DTYPES) if self.random.random() < 0.5 else None
        operands: dict[str, Any] = {}
        for name, value in use.operands.items():
            operands[name] = (
                self.operand(record, name, value, kind) if isinstance(value, View) else value
            )
        attrs = self.varied(record, use.call.attrs)
        self.body.append(Call(record.name, operands, attrs))
        for name in record.outputs:
            if isinstance(operands[name], Access):
                self.store(operands[name])

    def varied(self, record: Instruction, attrs: Mapping[str, Any]) -> dict[str, Any]:
        changed = dict(attrs)
        for name, value in attrs.items():
            if self.random.random() < 0.5:
                continue
            if isinstance(value, AluOp):
                changed[name] = ALU_OPS[self.random.choice(_OPERATIONS)]
            elif isinstance(value, bool):
                changed[name] = self.random.random() < 0.5
            elif isinstance(value, ReduceCmd):
                changed[name] = self.random.choice(list(ReduceCmd))
            elif isinstance(value, Engine) and len(record.engines) > 1:
                changed[name] = self.random.choice((*record.engines, Engine.unknown))
        return changed

    # -- operands -------------------------------------------------------------------------------

    def operand(self, record: Instruction, name: str, view: View, kind: DType | None) -> Access:
        """A tensor like `view`, filled from a parameter."""
        spec: Spec = view.spec
        if spec.indirect is not None:
            raise KernelError("an index that is read at run time")
        dtype, buffer = spec.dtype, self.name("t")
        declared = record.operands[name].dtypes
        plain = name not in _EXACT and not declared and not dtype.is_packed
        if kind is not None and plain and record.name != "nc_transpose":
            dtype = kind
        array = self.content(name, view, dtype, plain or name in record.outputs)
        parameter = Buffer(self.name("x"), spec.shape, _carrier(dtype), MemorySpace.hbm)
        self.parameters.append(parameter)
        self.arrays.append(array)
        made = Buffer(buffer, spec.shape, dtype, spec.space)
        if not spec.space.on_chip:
            made = dataclasses.replace(made, space=MemorySpace.shared_hbm)
        self.body.append(Allocate(made))
        self.load(made, parameter)
        return whole(made)

    def content(self, name: str, view: View, dtype: DType, is_free: bool) -> np.ndarray:
        shape, seed = view.shape, self.random.randrange(1 << 30)
        carrier = _carrier(dtype)
        if not is_free and name not in ("dst",) and view.storage.flat.size:
            return np.ascontiguousarray(view.array).view(carrier.storage).reshape(shape)
        fill = self.fill
        if not carrier.is_float and fill in ("normal", "nan"):
            fill = "ties"
        return fill_array(Arg(name, dtype=str(carrier), shape=shape, fill=fill), seed, 0, 0)

    def load(self, made: Buffer, parameter: Buffer) -> None:
        source, seen = whole(parameter), _seen(made)
        if made.space is MemorySpace.psum:
            staged = Buffer(self.name("s"), made.shape, made.dtype, MemorySpace.sbuf)
            self.body += [Allocate(staged), make_call("dma_copy", dst=_seen(staged), src=source),
                          make_call("tensor_copy", dst=whole(made), src=whole(staged))]  # fmt: skip
        else:
            self.body.append(make_call("dma_copy", dst=seen, src=source))

    def store(self, access: Access) -> None:
        """The buffer of an output, returned."""
        made = next(
            s.buffer
            for s in self.body
            if isinstance(s, Allocate) and s.buffer.name == access.buffer
        )
        if not made.space.on_chip:
            self.results.append(made)
            return
        source = made
        if made.space is MemorySpace.psum:
            source = Buffer(self.name("s"), made.shape, made.dtype, MemorySpace.sbuf)
            copy = make_call("tensor_copy", dst=whole(source), src=whole(made))
            self.body += [Allocate(source), copy]
        carrier = _carrier(made.dtype)
        out = Buffer(self.name("y"), made.shape, carrier, MemorySpace.shared_hbm)
        self.body += [Allocate(out), make_call("dma_copy", dst=whole(out), src=_seen(source))]
        self.results.append(out)

    def name(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"


def _carrier(dtype: DType) -> DType:
    """What a kernel takes and returns for `dtype`."""
    return {2: uint16, 4: uint32}[dtype.itemsize] if dtype.is_packed else dtype


def _seen(buffer: Buffer) -> Access:
    """All of a buffer, packed elements as the integers that hold them."""
    access = whole(buffer)
    return (
        dataclasses.replace(access, dtype=_carrier(buffer.dtype))
        if buffer.dtype.is_packed
        else access
    )
