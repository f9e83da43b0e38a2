"""Operations appended one after the other, with the types of their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuroncore.errors import Place
from tokenplan.tile_ir.bytecode.attributes import DivBy
from tokenplan.tile_ir.bytecode.module import Block, Operation, Value
from tokenplan.tile_ir.bytecode.operations import RECORDS
from tokenplan.tile_ir.bytecode.types import TOKEN, Type, tile

Operand = Value | Sequence[Value] | None
I32 = tile("i32")
BITS = {"bf16": "u2", "f16": "f2", "f32": "f4", "f64": "f8", "i1": "u1", "i8": "i1", "i16": "i2",
        "i32": "i4", "i64": "i8"}  # fmt: skip
"""NumPy's dtype of the bits of a constant."""


@dataclass
class BodyBuilder:
    """A body under construction; `place` is the debug location of what comes next.

    Where `is_numbered`, the column of a location is the number of the operation, so that a remark
    of the compiler belongs to one operation also where several share a line.
    """

    operations: list[Operation] = field(default_factory=list)
    defined: int = 0
    place: Place | None = None
    is_numbered: bool = False
    added: int = 0

    def values(self, types: Sequence[Type]) -> tuple[Value, ...]:
        """New values."""
        self.defined += len(types)
        first = self.defined - len(types)
        return tuple(Value(first + n, kind) for n, kind in enumerate(types))

    def add(
        self,
        name: str,
        types: Sequence[Type],
        attributes: dict[str, Any] | None = None,
        regions: tuple[Block, ...] = (),
        **operands: Operand,
    ) -> tuple[Value, ...]:
        """The results of a new operation; an operand is a value, several, or None."""
        given = {field.name: _tuple(operands.get(field.name)) for field in RECORDS[name].operands}
        results, place = self.values(types), self.place
        self.added += 1
        if place is not None and self.is_numbered:
            place = Place(place.file, place.line, self.added)
        self.operations.append(Operation(name, given, results, attributes or {}, regions, place))
        return results

    def one(self, name: str, kind: Type, attributes: Any = None, **operands: Operand) -> Value:
        """The only result."""
        return self.add(name, (kind,), attributes, (), **operands)[0]

    def constant(self, kind: Type, value: float) -> Value:
        """A number, or a tile of equal ones."""
        element = str(kind["element"])
        if element == "bf16":
            bits = int(np.float32(value).view(np.uint32))
            to_even = bits + 0x7FFF + (bits >> 16 & 1)
            data = np.uint16(to_even >> 16).tobytes()
        else:
            data = np.asarray(value, BITS[element]).tobytes()
        return self.one("constant", kind, {"value": data})

    def integer(self, value: int) -> Value:
        """An i32."""
        return self.constant(I32, value)

    def multiple(self, value: Value, divisor: int) -> Value:
        """The same value, which is a multiple of `divisor`."""
        return self.one("assume", value.type, {"predicate": DivBy(divisor)}, value=value)

    def join(self, tokens: Sequence[Value]) -> Value:
        """One token after all of these."""
        different = list(dict.fromkeys(tokens))
        if len(different) == 1:
            return different[0]
        return self.one("join_tokens", TOKEN, tokens=different)

    @contextmanager
    def block(self, arguments: Sequence[Type]) -> Iterator[_Region]:
        """Operations that are added inside belong to a block with these arguments."""
        outer, self.operations = self.operations, []
        region = _Region(self.values(arguments))
        yield region
        region.block = Block(region.arguments, tuple(self.operations))
        self.operations = outer


@dataclass
class _Region:
    arguments: tuple[Value, ...]
    block: Block | None = None


def _tuple(given: Operand) -> tuple[Value, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, Value) else tuple(given)
