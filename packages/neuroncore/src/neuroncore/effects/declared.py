"""What an instruction touches.

An effect names an operand and how it is touched. Accumulations into the same location commute with
one another. A dynamic view also reads its index tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Touch(Enum):
    """How memory or an engine register is touched."""

    read = "read"
    write = "write"
    accumulate = "accumulate"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Effect:
    """`operand` (by name, or a register such as "scalar.accumulators") is touched."""

    operand: str
    touch: Touch
    is_register: bool = False


def reads(*names: str) -> list[Effect]:
    return [Effect(name, Touch.read) for name in names]


def writes(*names: str) -> list[Effect]:
    return [Effect(name, Touch.write) for name in names]


def accumulates(*names: str) -> list[Effect]:
    return [Effect(name, Touch.accumulate) for name in names]


def register(name: str, touch: Touch) -> list[Effect]:
    return [Effect(name, touch, is_register=True)]
