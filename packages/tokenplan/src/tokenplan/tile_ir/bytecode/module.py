"""A Tile IR module as data: functions of operations in nested blocks.

Values are numbered in the order in which they are defined: block arguments first, results of an
operation with regions after everything inside it. Equal modules compare equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from neuroncore.errors import Place
from tokenplan.tile_ir.bytecode.types import Type


@dataclass(frozen=True, slots=True)
class Value:
    """A result of an operation or an argument of a block."""

    number: int
    type: Type

    def __hash__(self) -> int:
        return self.number  # types of views are deep, and values are keys everywhere


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; `operands` has one tuple of values for each name in its record."""

    name: str
    operands: Mapping[str, tuple[Value, ...]]
    results: tuple[Value, ...]
    attributes: Mapping[str, Any]
    """By name; names without a value are left out."""
    regions: tuple[Block, ...] = ()
    place: Place | None = None

    def operand(self, name: str) -> Value:
        """The only value of this operand."""
        (found,) = self.operands[name]
        return found

    @property
    def inputs(self) -> Iterator[Value]:
        """Every operand, in the order of the record."""
        for values in self.operands.values():
            yield from values


@dataclass(frozen=True, slots=True)
class Block:
    """Arguments and the operations that follow."""

    arguments: tuple[Value, ...]
    operations: tuple[Operation, ...]

    def walk(self) -> Iterator[Operation]:
        """Every operation, outer before inner."""
        for operation in self.operations:
            yield operation
            for region in operation.regions:
                yield from region.walk()


Hints = Mapping[str, Mapping[str, int | bool]]
"""By architecture (sm_90 …), then by hint."""


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel; its body takes its parameters."""

    name: str
    body: Block
    hints: Hints = field(default_factory=dict)
    is_kernel: bool = True
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """All functions of one file."""

    functions: tuple[Function, ...]
    version: tuple[int, int] = (13, 3)
