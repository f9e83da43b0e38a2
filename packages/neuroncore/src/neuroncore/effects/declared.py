"""Effects of instructions: operands that they read and write.

An effect names an operand and how it is touched. Accumulations into the same location commute with
one another, and so do clobbers. A dynamic view also reads its index tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from numpy.lib.stride_tricks import as_strided

from neuroncore.records import record

if TYPE_CHECKING:
    from neuroncore.memory import View


class Touch(Enum):
    """How memory or an engine register is touched; a clobbered register has undefined content."""

    read = "read"
    write = "write"
    accumulate = "accumulate"
    clobber = "clobber"

    __hash__ = object.__hash__


@record
class Effect:
    """`operand` (by name, or a register such as "scalar.accumulators") is touched."""

    operand: str
    touch: Touch
    is_register: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The part of an on-chip operand that is touched: the first `used` of every `every` partitions.

    The last such group may be cut short behind its used partitions.
    """

    used: int
    every: int

    def of(
        self, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape (groups, used, F…) and strides of the part of an operand with these."""
        groups = -(-shape[0] // self.every)
        return (
            (groups, min(self.used, shape[0]), *shape[1:]),
            (strides[0] * self.every, strides[0], *strides[1:]),
        )

    def part(self, view: View) -> View:
        """The view of that part."""
        shape, strides = self.of(view.array.shape, view.array.strides)
        return view.derive(as_strided(view.array, shape, strides), view.spec.start)


def reads(*names: str) -> list[Effect]:
    return [Effect(name, Touch.read) for name in names]


def writes(*names: str) -> list[Effect]:
    return [Effect(name, Touch.write) for name in names]


def accumulates(*names: str) -> list[Effect]:
    return [Effect(name, Touch.accumulate) for name in names]


def register(name: str, touch: Touch) -> list[Effect]:
    return [Effect(name, touch, is_register=True)]
