"""A kernel program and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuroncore.program.ir.nodes import Allocate, Buffer, Statement
from neuroncore.program.ir.printer import INDENT, data_lines, statement_lines, tensor_text
from neuroncore.program.ir.traversal import walk
from neuroncore.source_location import Place
from neuroncore.surface import DEFAULT_VERSION


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel: parameters in HBM, statements, and the names of the buffers it returns.

    `nki` is the version whose rules its calls follow: which engine executes an instruction that
    leaves the choice open, what a DMA may read.
    """

    name: str
    parameters: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    results: tuple[str, ...]
    target: str = "trn2"
    nki: str = DEFAULT_VERSION
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)
    """Where the text says its "target", its "nki" and what it returns ("results")."""

    def buffers(self) -> dict[str, Buffer]:
        """Every buffer by name, parameters first, then in order of allocation."""
        found = {b.name: b for b in self.parameters}
        found |= {s.buffer.name: s.buffer for s in walk(self.body) if isinstance(s, Allocate)}
        return found

    def __str__(self) -> str:
        return print_program(self)


def print_program(program: Program) -> str:
    """The program's text; neuroncore.program.ir.printer describes the format."""
    buffers = program.buffers()
    head = ", ".join(f"{b.name}: {tensor_text(b)}" for b in program.parameters)
    lines = [f'program("{program.target}", "{program.nki}")', f"def {program.name}({head}):"]
    lines += [INDENT + line for line in statement_lines(program.body, buffers)]
    lines.append(f"{INDENT}return {', '.join(program.results)}".rstrip())
    for buffer in buffers.values():
        if buffer.content is not None:
            lines += data_lines(buffer)
    return "\n".join(lines) + "\n"
