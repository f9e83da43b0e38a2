"""Bytes written and read one number at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from tokenplan.tile_ir.bytecode.errors import BytecodeError
from tokenplan.tile_ir.bytecode.types import FIELD_NAMES, PADDINGS, ROLES, TYPES, Type

T = TypeVar("T")
LONGEST_VARINT = 10


class Interned(dict[bytes, int]):
    """A table in which each entry is stored once; `first` is the number of the first."""

    def __init__(self, first: int = 0) -> None:
        super().__init__()
        self.first = first

    def number(self, entry: bytes) -> int:
        """The number of the entry, which is added where it is new."""
        return self.setdefault(entry, len(self) + self.first)


@dataclass
class Tables:
    """Entries that a file stores once: strings, types, constants and places."""

    minor: int
    strings: Interned = field(default_factory=Interned)
    types: Interned = field(default_factory=Interned)
    constants: Interned = field(default_factory=Interned)
    places: Interned = field(default_factory=lambda: Interned(1))
    known: dict[Type, int] = field(default_factory=dict)


def check_since(name: str, since: int, minor: int) -> None:
    """Raises BytecodeError where version 13.`minor` does not have the type or operation."""
    if minor < since:
        raise BytecodeError(f"bytecode 13.{minor} has no {name}", expected=f"13.{since} or newer")


@dataclass
class Output:
    """Bytes that grow, and the tables that their numbers refer to."""

    tables: Tables
    data: bytearray = field(default_factory=bytearray)

    def byte(self, value: int) -> None:
        """One byte."""
        self.data.append(value)

    def varint(self, value: int) -> None:
        """Seven bits a byte, the lowest first."""
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def signed(self, value: int) -> None:
        """Zigzag: the sign is the lowest bit."""
        self.varint((value << 1 ^ value >> 63) & (1 << 64) - 1)

    def integers(self, values: Sequence[int], size: int) -> None:
        """A count, then `size` bytes each."""
        self.varint(len(values))
        for value in values:
            self.data += _stored(int(value), size)

    def string(self, text: str) -> None:
        """The number of the string."""
        self.varint(self.tables.strings.number(text.encode()))

    def constant(self, value: bytes) -> None:
        """The number of the constant."""
        blob = Output(self.tables)
        blob.varint(len(value))
        self.varint(self.tables.constants.number(bytes(blob.data) + value))

    def type(self, kind: Type) -> None:
        """The number of the type; types that it contains come before it."""
        number = self.tables.known.get(kind)
        if number is None:
            number = self.tables.known[kind] = self.tables.types.number(self._type(kind))
        self.varint(number)

    def types(self, kinds: Sequence[Type]) -> None:
        """A count, then each."""
        self.varint(len(kinds))
        for kind in kinds:
            self.type(kind)

    def _type(self, kind: Type) -> bytes:
        record, minor = TYPES[kind.kind], self.tables.minor
        check_since(kind.kind, record.since, minor)
        blob = Output(self.tables)
        blob.byte(record.tag)
        fields = list(zip(kind.fields, record.fields, strict=True))
        optional = [value for value, (_, codec) in fields if codec.endswith("?")]
        has_mask = bool(optional) and minor >= record.mask_since
        if has_mask:
            blob.varint(sum((value is not None) << n for n, value in enumerate(optional)))
        for value, (name, codec) in fields:
            if codec == "padding?" and not has_mask:
                blob.byte(value is not None)
            if value is not None:
                _WRITE[codec.strip("?")](blob, value)
            elif not codec.endswith("?"):
                raise BytecodeError(f"{kind.kind} needs a {name}")
        return bytes(blob.data)


_WRITE = {
    "types": Output.types,
    "varint": Output.varint,
    "i64s": lambda out, values: out.integers(values, 8),
    "i32s": lambda out, values: out.integers(values, 4),
    "extents": lambda out, values: out.integers(values, 8),
    "i32_extents": lambda out, values: out.integers(values, 4),
    "padding": lambda out, value: out.byte(PADDINGS.index(value)),
    "attribute": Output.byte,
    **dict.fromkeys(ROLES, Output.type),
}


def _stored(value: int, size: int) -> bytes:
    try:
        return value.to_bytes(size, "little", signed=size > 1)
    except OverflowError:
        raise BytecodeError(f"{value} does not fit into {8 * size} bits") from None


@dataclass
class Input:
    """Bytes that are read from a position on; BytecodeError where they end too early."""

    data: bytes
    minor: int = 3
    strings: Sequence[bytes] = ()
    all_types: Sequence[Type] = ()
    constants: Sequence[bytes] = ()
    at: int = 0

    @property
    def where(self) -> str:
        """The position, for messages."""
        return f"byte {self.at} of {len(self.data)}"

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > len(self.data) - self.at:
            raise BytecodeError(
                "the bytecode is truncated", got=self.where, expected=f"{size} more bytes"
            )
        self.at += size
        return self.data[self.at - size : self.at]

    def byte(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def varint(self) -> int:
        """A number of at most 64 bits."""
        value = 0
        for n in range(LONGEST_VARINT):
            part = self.byte()
            value |= (part & 0x7F) << 7 * n
            if part < 0x80:
                return value & (1 << 64) - 1
        raise BytecodeError("a number has more than 64 bits", got=self.where)

    def signed(self) -> int:
        """A number with its sign in the lowest bit."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def counted(self) -> Iterable[int]:
        """A count that the remaining bytes can satisfy, as a range."""
        count = self.varint()
        if count > len(self.data) - self.at:
            raise BytecodeError(
                f"a list of {count} entries exceeds the remaining bytes", got=self.where
            )
        return range(count)

    def integers(self, size: int) -> tuple[int, ...]:
        """A count, then `size` bytes each."""
        return tuple(
            int.from_bytes(self.take(size), "little", signed=size > 1) for _ in self.counted()
        )

    def entry(self, table: Sequence[T], kind: str) -> T:
        """The entry of a table whose number comes next."""
        number = self.varint()
        if number >= len(table):
            raise BytecodeError(
                f"{kind} {number} does not exist, the table has {len(table)}", got=self.where
            )
        return table[number]

    def string(self) -> str:
        """A string of the table."""
        try:
            return self.entry(self.strings, "string").decode()
        except UnicodeDecodeError:
            raise BytecodeError("a string is not UTF-8", got=self.where) from None

    def constant(self) -> bytes:
        """A constant of the table."""
        return self.entry(self.constants, "constant")

    def type(self) -> Type:
        """A type of the table."""
        return self.entry(self.all_types, "type")

    def types(self) -> tuple[Type, ...]:
        """A count, then each."""
        return tuple(self.type() for _ in self.counted())

    def type_of(self, role: str) -> Type:
        """A type of the table that another one may contain."""
        found = self.type()
        if found.kind not in ROLES[role]:
            raise BytecodeError(f"a type has {found} as {role}", got=self.where)
        return found

    def extents(self, size: int) -> tuple[int, ...]:
        """The extents of a tile."""
        found = self.integers(size)
        if any(n < 1 or n & n - 1 for n in found):
            raise BytecodeError(
                f"the extents of a tile are powers of two, not {list(found)}", got=self.where
            )
        return found

    def padding(self) -> str:
        """One of the values that fill a tile outside its tensor."""
        at = self.byte()
        if at >= len(PADDINGS):
            raise BytecodeError(f"padding has no value {at}", got=self.where)
        return PADDINGS[at]

    def type_definition(self, kind: str) -> Type:
        """The fields of a type whose tag has been read."""
        record = TYPES[kind]
        mask = self.varint() if self.minor >= record.mask_since else 0
        values = []
        for _, codec in record.fields:
            if not codec.endswith("?"):
                values.append(_READ[codec](self))
            elif self.minor < record.mask_since and codec == "padding?":
                values.append(self.padding() if self.byte() else None)
            else:
                values.append(_READ[codec[:-1]](self) if mask & 1 else None)
        assert len(values) == len(FIELD_NAMES[kind])
        return Type(kind, tuple(values))


_READ = {
    **{role: partial(Input.type_of, role=role) for role in ROLES},
    "types": Input.types,
    "varint": Input.varint,
    "i64s": lambda source: source.integers(8),
    "i32s": lambda source: source.integers(4),
    "extents": lambda source: source.extents(8),
    "i32_extents": lambda source: source.extents(4),
    "padding": Input.padding,
    "attribute": Input.byte,
}
