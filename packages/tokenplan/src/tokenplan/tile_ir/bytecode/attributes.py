"""Storage of attributes: a pair of functions, to write and to read, for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tokenplan.tile_ir.bytecode.errors import BytecodeError
from tokenplan.tile_ir.bytecode.operations import ENUMS
from tokenplan.tile_ir.bytecode.streams import Input, Output
from tokenplan.tile_ir.bytecode.types import ITEM_BITS, Type

I32 = Type("i32")


@dataclass(frozen=True, slots=True)
class DivBy:
    """The value is a multiple of `divisor`; of a tile, every `every`-th one along a dimension."""

    divisor: int
    every: int | None = None
    along: int | None = None


@dataclass(frozen=True, slots=True)
class Bounded:
    """The value is between both ends, which belong to it."""

    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Number:
    """A number as its bits, with its type."""

    type: Type
    bits: int


@dataclass(frozen=True, slots=True)
class Codec:
    """Both directions of one kind of attribute."""

    write: Callable[[Output, Any], None]
    read: Callable[[Input], Any]


# -- tagged attributes -----------------------------------------------------------------------------


def _write_pair(out: Output, first: int | None, second: int | None) -> None:
    out.byte((first is not None) | (second is not None) << 1)
    for value in (first, second):
        if value is not None:
            out.signed(value)


def _read_pair(source: Input) -> tuple[int | None, int | None]:
    present = source.byte()
    first = source.signed() if present & 1 else None
    return first, source.signed() if present & 2 else None


def _write_number(out: Output, value: Number) -> None:
    is_float = value.type.kind[0] in "fbt"
    out.byte(2 if is_float else 1)
    out.type(value.type)
    if is_float and ITEM_BITS[value.type.kind] > 8:
        out.signed(value.bits)
    elif is_float:
        out.byte(value.bits)
    else:
        out.varint(value.bits)


def _read_float(source: Input) -> Number:
    kind = source.type()
    wide = ITEM_BITS.get(kind.kind, 0) > 8
    return Number(kind, source.signed() if wide else source.byte())


def write_tagged(out: Output, value: Any) -> None:
    """The tag of the value's kind, then the value."""
    match value:
        case bool():
            out.byte(3)
            out.byte(value)
        case Number():
            _write_number(out, value)
        case DivBy(divisor, every, along):
            out.byte(8)
            out.varint(divisor)
            _write_pair(out, every, along)
        case Bounded(low, high):
            out.byte(12)
            _write_pair(out, low, high)
        case _:
            raise BytecodeError(f"an attribute of type {type(value).__name__} is not supported")


_READ_TAGGED: dict[int, Callable[[Input], Any]] = {
    1: lambda source: Number(source.type(), source.varint()),
    2: _read_float,
    3: lambda source: bool(source.byte()),
    5: lambda source: source.string(),
    8: lambda source: DivBy(source.varint(), *_read_pair(source)),
    12: lambda source: Bounded(*_read_pair(source)),
}
_TAG_NAMES = {4: "type", 6: "array", 7: "dense elements", 9: "same_elements", 10: "dictionary",
              11: "optimization hints"}  # fmt: skip


def read_tagged(source: Input) -> Any:
    """The value; BytecodeError for kinds that are not in the subset."""
    tag = source.byte()
    if tag not in _READ_TAGGED:
        name = _TAG_NAMES.get(tag, f"tag {tag}")
        raise BytecodeError(f"an attribute of kind {name} is not supported", got=source.where)
    return _READ_TAGGED[tag](source)


# -- hints -----------------------------------------------------------------------------------------


def write_hints(out: Output, hints: Any) -> None:
    """By architecture, a dictionary each."""
    out.varint(len(hints))
    for arch, values in hints.items():
        out.string(arch)
        out.byte(10)
        out.varint(len(values))
        for name, value in values.items():
            out.string(name)
            write_tagged(out, value if isinstance(value, bool) else Number(I32, value))


_V = TypeVar("_V")


def read_hints(source: Input) -> dict[str, dict[str, int | bool]]:
    """As written; a hint that is neither a number nor a truth value is rejected."""
    return _unique("the architecture", (_architecture(source) for _ in source.counted()))


def _unique(what: str, entries: Iterable[tuple[str, _V]]) -> dict[str, _V]:
    found: dict[str, _V] = {}
    for name, value in entries:
        if name in found:
            raise BytecodeError(f"{what} {name} is twice in the hints")
        found[name] = value
    return found


def _architecture(source: Input) -> tuple[str, dict[str, int | bool]]:
    name = source.string()
    if source.byte() != 10:
        raise BytecodeError("the hints of an architecture are not a dictionary")
    return name, _unique(f"{name},", (_hint(source) for _ in source.counted()))


def _hint(source: Input) -> tuple[str, int | bool]:
    name, value = source.string(), read_tagged(source)
    if isinstance(value, Number):
        return name, value.bits
    if isinstance(value, bool):
        return name, value
    raise BytecodeError(f"hint {name} is neither an integer nor a truth value")


# -- the table -------------------------------------------------------------------------------------


def _enum(name: str) -> Codec:
    values = ENUMS[name]

    def write(out: Output, value: str) -> None:
        if value not in values:
            raise BytecodeError(f"{name} {value!r} is unknown", expected=", ".join(values))
        out.byte(values.index(value))

    def read(source: Input) -> str:
        at = source.byte()
        if at >= len(values):
            raise BytecodeError(f"{name} has no value {at}", got=source.where)
        return values[at]

    return Codec(write, read)


def _write_list(out: Output, values: Any) -> None:
    out.varint(len(values))
    for value in values:
        write_tagged(out, value)


CODECS = {name: _enum(name) for name in ENUMS} | {
    "dim": Codec(Output.varint, Input.varint),
    "reverse": Codec(Output.byte, lambda source: bool(source.byte())),
    "value": Codec(Output.constant, Input.constant),
    "permutation": Codec(lambda out, v: out.integers(v, 4), lambda source: source.integers(4)),
    "inbounds": Codec(
        lambda out, v: out.integers(v, 1),
        lambda source: tuple(bool(x) for x in source.integers(1)),
    ),
    "predicate": Codec(write_tagged, read_tagged),
    "identities": Codec(
        _write_list, lambda source: tuple(read_tagged(source) for _ in source.counted())
    ),
    "hints": Codec(write_hints, read_hints),
}
"""By the name of the attribute."""
