"""Bytecode as a module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from neuroncore.errors import Place
from tokenplan.tile_ir.bytecode.attributes import CODECS, read_hints
from tokenplan.tile_ir.bytecode.errors import BytecodeError
from tokenplan.tile_ir.bytecode.module import Block, Function, Module, Operation, Value
from tokenplan.tile_ir.bytecode.operations import (
    BY_OPCODE,
    DEFAULTS,
    MAGIC,
    MINORS,
    UNSUPPORTED,
    OperationRecord,
    stored,
)
from tokenplan.tile_ir.bytecode.streams import Input
from tokenplan.tile_ir.bytecode.types import TAGS, TYPES, Type

DEEPEST = 64
"""Nested regions, at most."""
MOST_VALUES = 1_000_000
_SECTIONS = {1: "strings", 2: "functions", 3: "debug", 4: "constants", 5: "types"}


def read(data: bytes) -> Module:
    """The module of a file.

    Raises BytecodeError for other files, for versions and operations that are not supported, and
    for damaged ones.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise BytecodeError(
            "this is not Tile IR bytecode", expected="a file that tileiras compiles"
        )
    source = Input(data, at=len(MAGIC))
    major, minor = source.byte(), source.byte()
    source.take(2)
    if major != 13 or minor not in MINORS:
        raise BytecodeError(
            f"bytecode {major}.{minor} is not supported",
            expected=", ".join(f"13.{n}" for n in MINORS),
        )
    sections = _sections(source)
    for number in (2, 5, 1):
        if number not in sections:
            raise BytecodeError(f"the file has no section of {_SECTIONS[number]}")
    strings = _entries(Input(sections[1]), 4)
    constants = [_constant(blob) for blob in _entries(Input(sections.get(4, b"\0")), 8)]
    types = _types(_entries(Input(sections[5]), 4), minor)
    body = Input(sections[2], minor, strings, types, constants)
    places = _Places(sections.get(3), strings)
    functions = tuple(_function(body, places) for _ in body.counted())
    return Module(functions, (major, minor))


def _sections(source: Input) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while (head := source.byte()) != 0:
        number = head & 0x7F
        size = source.varint()
        if head & 0x80:
            alignment = source.varint()
            if not 0 < alignment <= 4096:
                raise BytecodeError(f"a section is aligned to {alignment} bytes")
            source.take(-source.at % alignment)
        if number == 6:
            raise BytecodeError("global variables are not supported")
        found[number] = source.take(size)
    if source.at != len(source.data):
        raise BytecodeError("the end section is not the last one", got=source.where)
    return found


def _entries(source: Input, size: int) -> list[bytes]:
    """The entries of a table: count, offsets of `size` bytes, data."""
    count = len(tuple(source.counted()))
    source.take(-source.at % size)
    offsets = [int.from_bytes(source.take(size), "little") for _ in range(count)]
    data = source.data[source.at :]
    if any(a > b for a, b in pairwise([*offsets, len(data)])):
        raise BytecodeError("a table has offsets outside its data")
    return [data[a:b] for a, b in pairwise([*offsets, len(data)])]


def _constant(blob: bytes) -> bytes:
    source = Input(blob)
    return source.take(source.varint())


def _types(blobs: Sequence[bytes], minor: int) -> list[Type]:
    """All types; one refers to earlier ones alone."""
    found: list[Type] = []
    for blob in blobs:
        source = Input(blob, minor, all_types=found)
        tag = source.byte()
        kind = TAGS.get(tag)
        if kind is None or TYPES[kind].since > minor:
            raise BytecodeError(f"type {tag} is not supported in bytecode 13.{minor}")
        found.append(source.type_definition(kind))
    return found


# -- debug locations -------------------------------------------------------------------------------

_LOCATION, _CALL_SITE = 4, 6


class _Places:
    """The place of each row of the debug section."""

    def __init__(self, data: bytes | None, strings: Sequence[bytes]) -> None:
        self.strings = strings
        self.rows: list[int] = []
        self.entries: list[bytes] = []
        if data is None:
            return
        source = Input(data)
        functions = len(tuple(source.counted()))
        source.take(-source.at % 4)
        source.take(4 * functions)
        rows = source.counted()
        source.take(-source.at % 8)
        self.rows = [int.from_bytes(source.take(8), "little") for _ in rows]
        rest = Input(data[source.at :])
        self.entries = _entries(rest, 4)

    def at(self, row: int) -> Place | None:
        """The place of a row, if it has one."""
        return self._place(self.rows[row], 0) if 0 <= row < len(self.rows) else None

    def _place(self, number: int, depth: int) -> Place | None:
        if not 0 < number <= len(self.entries) or depth > DEEPEST:
            return None
        source = Input(self.entries[number - 1], strings=self.strings)
        tag = source.byte()
        if tag == _CALL_SITE:
            return self._place(source.varint(), depth + 1)
        if tag != _LOCATION:
            return None
        source.varint()
        return Place(source.string(), source.varint(), source.varint())


# -- functions and operations ----------------------------------------------------------------------


def _function(source: Input, places: _Places) -> Function:
    name, kind = source.string(), source.type()
    if kind.kind != "function":
        raise BytecodeError(f"function {name} has type {kind}")
    flags, row = source.byte(), source.varint() - 1
    hints = {}
    if flags & 0x04:
        if source.byte() != 11:
            raise BytecodeError(f"the hints of {name} are not optimization hints")
        hints = read_hints(source)
    size = source.varint()
    if size > len(source.data) - source.at:
        raise BytecodeError("the bytecode is truncated", got=f"in the body of {name}")
    end = source.at + size
    reader = _Body(source, places, row + 1)
    arguments = reader.define(kind["parameters"])
    operations = []
    while source.at < end:
        operations.append(reader.operation(0))
    if source.at != end:
        raise BytecodeError(f"the last operation of {name} exceeds its body")
    body = Block(arguments, tuple(operations))
    return Function(name, body, hints, bool(flags & 0x02), places.at(row))


@dataclass
class _Body:
    source: Input
    places: _Places
    row: int
    visible: list[Value] = field(default_factory=list)
    defined: int = 0

    def define(self, types: Sequence[Type]) -> tuple[Value, ...]:
        """New values of these types."""
        found = tuple(Value(self.defined + n, kind) for n, kind in enumerate(types))
        self.defined += len(found)
        if self.defined > MOST_VALUES:
            raise BytecodeError(f"a function has more than {MOST_VALUES} values")
        self.visible += found
        return found

    def operation(self, depth: int) -> Operation:
        """The next operation; blocks inside it are `depth` deep."""
        source, place = self.source, self.places.at(self.row)
        self.row += 1
        record = self._record(place)
        types = _result_types(source, record)
        flags = self._flags(record)
        attributes = self._attributes(record, flags)
        operands = self._operands(record, flags)
        regions = self._regions(record, depth)
        return Operation(record.name, operands, self.define(types), attributes, regions, place)

    def _record(self, place: Place | None) -> OperationRecord:
        opcode, minor = self.source.varint(), self.source.minor
        record = BY_OPCODE.get(opcode)
        if record is None or record.since > minor:
            name = record.name if record else UNSUPPORTED.get(opcode, f"operation {opcode:#x}")
            where = f"line {place.line}" if place else self.source.where
            raise BytecodeError(f"{name} is not supported in bytecode 13.{minor}", got=where)
        return record

    def _flags(self, record: OperationRecord) -> dict[str, bool]:
        fields = list(stored(record.flags, self.source.minor))
        bits = self.source.varint() if fields else 0
        if bits >> len(fields):
            raise BytecodeError(f"{record.name} has unknown flags {bits:#x}", got=self.source.where)
        return {field.name: bool(bits >> n & 1) for n, field in enumerate(fields)}

    def _attributes(self, record: OperationRecord, flags: dict[str, bool]) -> dict[str, object]:
        operands = {operand.name for operand in record.operands}
        optional = {attribute.name for attribute in record.attributes if attribute.is_optional}
        found: dict[str, object] = dict(DEFAULTS.get(record.name, {}))
        found |= {n: True for n, on in flags.items() if on and n not in operands | optional}
        for attribute in stored(record.attributes, self.source.minor):
            if not attribute.is_optional or flags[attribute.name]:
                value = CODECS[attribute.name].read(self.source)
                if attribute.name != "inbounds" or any(value):
                    found[attribute.name] = value
        return found

    def _operands(
        self, record: OperationRecord, flags: dict[str, bool]
    ) -> dict[str, tuple[Value, ...]]:
        total = len(tuple(self.source.counted())) if record.is_counted else 0
        found: dict[str, tuple[Value, ...]] = {}
        for operand in record.operands:
            if operand.is_list and record.is_counted:
                count = total - sum(map(len, found.values()))
            elif operand.is_list:
                count = len(tuple(self.source.counted()))
            else:
                count = int(flags.get(operand.name, True))
            values = tuple(self.source.entry(self.visible, "value") for _ in range(count))
            found[operand.name] = values
        return found

    def _regions(self, record: OperationRecord, depth: int) -> tuple[Block, ...]:
        if not record.regions:
            return ()
        if self.source.varint() != record.regions:
            raise BytecodeError(f"{record.name} has not {record.regions} regions")
        if depth >= DEEPEST:
            raise BytecodeError(f"regions are nested more than {DEEPEST} deep")
        return tuple(self._region(depth + 1) for _ in range(record.regions))

    def _region(self, depth: int) -> Block:
        if self.source.varint() != 1:
            raise BytecodeError("a region has more than one block", got=self.source.where)
        outer = len(self.visible)
        arguments = self.define(self.source.types())
        operations = tuple(self.operation(depth) for _ in self.source.counted())
        del self.visible[outer:]
        return Block(arguments, operations)


def _result_types(source: Input, record: OperationRecord) -> tuple[Type, ...]:
    if record.results is None:
        return source.types()
    return tuple(source.type() for _ in range(record.results))
