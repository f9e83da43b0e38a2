"""A module as bytecode."""

from __future__ import annotations

from collections.abc import Iterable

from neuroncore.errors import Place
from tokenplan.tile_ir.bytecode.attributes import CODECS, write_hints
from tokenplan.tile_ir.bytecode.errors import BytecodeError
from tokenplan.tile_ir.bytecode.module import Block, Function, Module, Operation, Value
from tokenplan.tile_ir.bytecode.operations import (
    DEFAULTS,
    MAGIC,
    MINORS,
    RECORDS,
    Field,
    OperationRecord,
    stored,
)
from tokenplan.tile_ir.bytecode.streams import Interned, Output, Tables, check_since
from tokenplan.tile_ir.bytecode.types import Type

PAD = b"\xcb"
END, STRINGS, FUNCTIONS, DEBUG, CONSTANTS, TYPES = range(6)


def write(module: Module) -> bytes:
    """The bytes of a file: the same for the same module.

    Raises BytecodeError for what the module's version cannot express.
    """
    major, minor = module.version
    if major != 13 or minor not in MINORS:
        raise BytecodeError(
            f"bytecode {major}.{minor} is not supported",
            expected=", ".join(f"13.{n}" for n in MINORS),
        )
    tables = Tables(minor)
    rows: list[list[Place | None]] = []
    functions = Output(tables)
    functions.varint(len(module.functions))
    for function in module.functions:
        rows.append([function.place, *(op.place for op in function.body.walk())])
        _function(functions, function, sum(map(len, rows[:-1])) + 1)
    debug = _debug(tables, module, rows)
    sections = (
        (FUNCTIONS, 8, functions.data),
        (CONSTANTS, 8, _table(tables.constants, 8)),
        (DEBUG, 8, debug),
        (TYPES, 4, _table(tables.types, 4)),
        (STRINGS, 4, _table(tables.strings, 4)),
    )
    found = bytearray(MAGIC + bytes((major, minor, 0, 0)))
    for number, alignment, data in sections:
        _section(found, tables, number, alignment, data)
    return bytes(found) + bytes((END,))


def _section(
    found: bytearray, tables: Tables, number: int, alignment: int, data: bytes | bytearray
) -> None:
    head = Output(tables)
    head.byte(number | 0x80)
    head.varint(len(data))
    head.varint(alignment)
    found += head.data
    found += PAD * (-len(found) % alignment) + data


def _table(entries: Interned, size: int) -> bytes:
    """Count, offsets of `size` bytes, entries."""
    out = Output(Tables(0))
    out.varint(len(entries))
    out.data += PAD * (-len(out.data) % size)
    offset = 0
    for entry in entries:
        out.data += offset.to_bytes(size, "little")
        offset += len(entry)
    return bytes(out.data) + b"".join(entries)


# -- debug locations -------------------------------------------------------------------------------


def _debug(tables: Tables, module: Module, rows: list[list[Place | None]]) -> bytes:
    numbers = [
        _place_number(tables, function.name, place)
        for function, row in zip(module.functions, rows, strict=True)
        for place in row
    ]
    if not tables.places:
        tables.places.number(b"\x00")  # the table may not be empty
    out = Output(tables)
    out.varint(len(rows))
    out.data += PAD * (-len(out.data) % 4)
    first = 0
    for row in rows:
        out.data += first.to_bytes(4, "little")
        first += len(row)
    out.varint(first)
    out.data += PAD * (-len(out.data) % 8)
    out.data += b"".join(number.to_bytes(8, "little") for number in numbers)
    return bytes(out.data) + _table(tables.places, 4)


def _place_number(tables: Tables, function: str, place: Place | None) -> int:
    if place is None:
        return 0
    folder, _, name = place.file.rpartition("/")
    file = _entry(tables, 2, name, folder)
    unit = _entry(tables, 1, file)
    scope = _entry(tables, 5, file, 1, function, function, unit, 1)
    return _entry(tables, 4, scope, place.file, place.line, place.column)


def _entry(tables: Tables, tag: int, *fields: int | str) -> int:
    out = Output(tables)
    out.byte(tag)
    for value in fields:
        out.string(value) if isinstance(value, str) else out.varint(value)
    return tables.places.number(bytes(out.data))


# -- functions and operations ----------------------------------------------------------------------


def _function(out: Output, function: Function, row: int) -> None:
    out.string(function.name)
    parameters = tuple(value.type for value in function.body.arguments)
    out.type(Type("function", (parameters, ())))
    out.byte(0x02 * function.is_kernel | 0x04 * bool(function.hints))
    out.varint(row)
    if function.hints:
        out.byte(11)
        write_hints(out, function.hints)
    body = Output(out.tables)
    writer = _Body(body)
    writer.numbers = {value: n for n, value in enumerate(function.body.arguments)}
    for operation in function.body.operations:
        writer.operation(operation)
    out.varint(len(body.data))
    out.data += body.data


class _Body:
    """Operations of one function; values are numbered by position."""

    def __init__(self, out: Output) -> None:
        self.out = out
        self.numbers: dict[Value, int] = {}

    def operation(self, operation: Operation) -> None:
        record, out = RECORDS[operation.name], self.out
        minor = out.tables.minor
        check_since(record.name, record.since, minor)
        out.varint(record.opcode)
        if record.results is None:
            out.varint(len(operation.results))
        for result in operation.results:
            out.type(result.type)
        flags = list(stored(record.flags, minor))
        _check_unstored(record, operation, minor)
        if flags:
            out.varint(sum(_is_set(operation, flag) << n for n, flag in enumerate(flags)))
        self._attributes(record, operation)
        self._operands(record, operation)
        if record.regions:
            out.varint(record.regions)
            for region in operation.regions:
                self._region(region)
        self._define(operation.results)

    def _attributes(self, record: OperationRecord, operation: Operation) -> None:
        for attribute in stored(record.attributes, self.out.tables.minor):
            value = operation.attributes.get(attribute.name)
            if value is None and attribute.is_optional:
                continue
            if value is None and attribute.name != "inbounds":
                raise BytecodeError(f"{record.name} needs the attribute {attribute.name}")
            if value is None:
                value = (False,) * len(operation.operands["index"])
            CODECS[attribute.name].write(self.out, value)

    def _operands(self, record: OperationRecord, operation: Operation) -> None:
        if record.is_counted:
            self.out.varint(len(tuple(operation.inputs)))
        for operand in record.operands:
            values = operation.operands.get(operand.name, ())
            if not (values or operand.is_optional or operand.is_list):
                raise BytecodeError(f"{record.name} needs the operand {operand.name}")
            if operand.is_list and not record.is_counted:
                self.out.varint(len(values))
            for value in values:
                if value not in self.numbers:
                    raise BytecodeError(f"{record.name} uses a value that is not defined before it")
                self.out.varint(self.numbers[value])

    def _region(self, block: Block) -> None:
        outer, inside = dict(self.numbers), Output(self.out.tables)
        self.out.varint(1)
        self.out.types([value.type for value in block.arguments])
        self.out.varint(len(block.operations))
        self._define(block.arguments)
        self.out, out = inside, self.out
        for operation in block.operations:
            self.operation(operation)
        self.out, self.numbers = out, outer
        out.data += inside.data

    def _define(self, values: Iterable[Value]) -> None:
        for value in values:
            self.numbers[value] = len(self.numbers)


def _is_set(operation: Operation, flag: Field) -> bool:
    if flag.name in operation.operands:
        return bool(operation.operands[flag.name])
    return operation.attributes.get(flag.name) not in (None, False)


def _check_unstored(record: OperationRecord, operation: Operation, minor: int) -> None:
    """Rejects an attribute that this version does not store, unless it is what it means there."""
    defaults = DEFAULTS.get(record.name, {})
    for field in (*record.flags, *record.attributes):
        value = operation.attributes.get(field.name)
        empty = not any(value) if isinstance(value, tuple) else value in (None, False)
        if field.since > minor and not empty and value != defaults.get(field.name):
            raise BytecodeError(
                f"bytecode 13.{minor} has no {field.name} of {record.name}",
                expected=f"13.{field.since} or newer",
            )
