"""From what a kernel writes for an attribute to the record's value."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from neuroncore.alu import BYPASS, AluOp, alu_op
from neuroncore.enums import Engine
from neuroncore.errors import AttributeValueError

E = TypeVar("E", bound=Enum)


def member(kind: type[E], operand: str) -> Callable[[Any], E]:
    """A converter to a member of `kind`; up to 0.2 code also writes its integer code."""

    def convert(value: Any) -> E:
        if isinstance(value, kind):
            return value
        named = getattr(value, "name", None)
        if isinstance(value, Enum) and named in kind.__members__:
            return kind[named]
        if isinstance(value, int) and any(m.value == value for m in kind):
            return kind(value)
        raise AttributeValueError(
            f"{operand}={value!r} is not one of its values",
            expected=", ".join(m.name for m in kind),
            got=repr(value),
            operand=operand,
            hint=f"an instruction is named by name={value!r}" if isinstance(value, str) else None,
        )

    return convert


as_engine = member(Engine, "engine")


def op_or_bypass(value: Any) -> AluOp:
    """An ALU operation or nl.bypass."""
    is_bypass = value is BYPASS or "bypass" in (value, getattr(value, "__name__", None))
    return BYPASS if is_bypass else alu_op(value)


def optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A converter that leaves None as it is."""
    return lambda value: None if value is None else convert(value)


def flag(value: Any) -> bool:
    """A compile-time truth value."""
    if isinstance(value, (bool, np.bool_, int)):
        return bool(value)
    raise AttributeValueError(f"{value!r} is not a bool", expected="True or False")


def pairs(value: Any) -> tuple[tuple[int, int], ...]:
    """A pattern [[step, count], …], 1 to 4 pairs."""
    try:
        found = tuple((int(step), int(count)) for step, count in value)
    except (TypeError, ValueError, OverflowError):
        found = ()
    long = any(not _fits_64_bits(n) for pair in found for n in pair)
    if long or not 1 <= len(found) <= 4 or any(count < 1 for _, count in found):
        raise AttributeValueError(
            "a pattern is a list of 1 to 4 [step, count] pairs with count >= 1"
            + ", ints of at most 64 bits" * long,
            got=repr(value)[:80],
            operand="pattern",
            rule="NKI: iota and affine_select, pattern",
        )
    return found


def _fits_64_bits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def whole(operand: str) -> Callable[[Any], int]:
    """A compile-time int."""

    def convert(value: Any) -> int:
        is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if is_whole and _fits_64_bits(int(value)):
            return int(value)
        raise AttributeValueError(
            f"{operand} is " + ("too large" if is_whole else "not an int"),
            expected="a compile-time int of at most 64 bits" if is_whole else "a compile-time int",
            got=repr(value)[:80],
            operand=operand,
            rule="NKI: compile-time constants",
        )

    return convert


def wholes(operand: str) -> Callable[[Any], tuple[int, ...]]:
    """Compile-time ints, a tuple or list of them."""

    def convert(value: Any) -> tuple[int, ...]:
        if isinstance(value, (tuple, list)):
            return tuple(map(whole(operand), value))
        raise AttributeValueError(
            f"{operand} is not a tuple of ints",
            expected="a tuple or list of compile-time ints",
            got=repr(value)[:80],
            operand=operand,
            rule="NKI: compile-time constants",
        )

    return convert


def optional_wholes(operand: str) -> Callable[[Any], tuple[int, ...]]:
    """Compile-time ints; None is none of them."""
    return lambda value: () if value is None else wholes(operand)(value)


def axes(value: Any) -> tuple[int, ...]:
    """One axis or several, as a tuple of ints."""
    given = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(whole("axis")(a) for a in given)
