"""Programs but for names: what two schedules lead to is often the same with other names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from neuroncore.program import Access, Affine, Allocate, Buffer, Call, Loop, Program, Statement


def structural_digest(program: Program) -> str:
    """Equal for programs that differ in names of buffers and loop variables and in source lines
    alone; the same in every process.
    """
    return sha256(repr(_Numbering().program(program)).encode()).hexdigest()


@dataclass(slots=True)
class _Numbering:
    """Names as numbers, in the order in which they appear."""

    numbers: dict[str, int] = field(default_factory=dict)

    def program(self, program: Program) -> Any:
        parameters = [self.buffer(buffer) for buffer in program.parameters]
        body = list(self.body(program.body))
        results = [self.number(name) for name in program.results]
        return program.target, program.nki, parameters, body, results

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def new(self, name: str) -> int:
        """A name that means something else from here on."""
        self.numbers[name] = len(self.numbers)
        return self.numbers[name]

    def body(self, body: tuple[Statement, ...]) -> Iterator[Any]:
        for statement in body:
            match statement:
                case Loop(variable, start, stop, inside, step):
                    yield self.new(variable), start, stop, step, list(self.body(inside))
                case Allocate(buffer):
                    yield self.buffer(buffer)
                case Call():
                    yield self.call(statement)

    def buffer(self, buffer: Buffer) -> Any:
        about = buffer.shape, buffer.dtype.name, buffer.space.name, buffer.address, buffer.content
        return self.new(buffer.name), *about

    def call(self, call: Call) -> Any:
        operands = [
            self.access(value) if isinstance(value, Access) else value
            for value in call.operands.values()
        ]
        return call.instruction, operands, [str(value) for value in call.attrs.values()]

    def access(self, access: Access) -> Any:
        seen_as = access.dtype.name if access.dtype else ""
        moved = access.indirect
        indirect = (moved.kind, moved.dim, self.access(moved.index)) if moved else ()
        place = self.affine(access.offset), access.shape, access.strides
        return self.number(access.buffer), *place, seen_as, indirect

    def affine(self, offset: Affine) -> Any:
        terms = sorted((self.number(name), factor) for name, factor in offset.terms)
        return offset.constant, terms
