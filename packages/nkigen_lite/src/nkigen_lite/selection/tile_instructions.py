"""Instructions on tiles, by the names of values: the output of instruction selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.errors import Place
from nki_dtypes import DType


@dataclass(frozen=True, slots=True)
class ReinterpretedTile:
    """A value's tile seen as another dtype: its bits, or the lowest of them where the dtype is
    narrower (memory is little-endian)."""

    value: str
    dtype: DType
    every: int = 1
    """Elements of `dtype` in one of the tile's."""


Tile = str | ReinterpretedTile
"""A value's name, or its tile reinterpreted."""
Operand = Tile | float
"""A tile or a number."""


def elements_of(tile: Tile) -> tuple[str, int]:
    """(value, elements in one of its tile's) of a tile."""
    return (tile.value, tile.every) if isinstance(tile, ReinterpretedTile) else (tile, 1)


def value_of(operand: Operand | None) -> str | None:
    """The value that an operand needs."""
    return operand.value if isinstance(operand, ReinterpretedTile) else (
        operand if isinstance(operand, str) else None
    )  # fmt: skip


PER_ROW: Mapping[str, frozenset[str]] = {
    "tensor_scalar": frozenset({"operand0", "operand1"}),
    "scalar_tensor_tensor": frozenset({"operand0"}),
    "activation": frozenset({"scale", "bias", "reduce_res"}),
    "select_reduce": frozenset({"on_false", "reduce_res"}),
}
"""Operands that are one value for each row; any other is repeated over the columns."""


@dataclass(frozen=True, slots=True)
class TileInstruction:
    """One instruction on a tile: tensors by the names of values."""

    instruction: str
    operands: Mapping[str, Operand]
    attrs: Mapping[str, Any]
    origin: Place | None

    @property
    def reads(self) -> tuple[str, ...]:
        """Values that it needs."""
        partly = self.instruction == "tensor_copy_predicated"
        out = ("reduce_res",) if partly else ("dst", "reduce_res")
        found = (value_of(v) for k, v in self.operands.items() if k not in out)
        return tuple(v for v in found if v is not None)

    @property
    def writes(self) -> tuple[str, ...]:
        """Values that it makes."""
        found = (value_of(self.operands.get(k)) for k in ("dst", "reduce_res"))
        return tuple(v for v in found if v is not None)

    def is_spread(self, operand: str) -> bool:
        """Whether a value per row is repeated over the columns where it is `operand`."""
        return operand not in PER_ROW.get(self.instruction, ()) and operand != "dst"


@dataclass(frozen=True, slots=True)
class AluStage:
    """One ALU operation with a number or one value per row."""

    op: str
    operand: str | float | None
    reverse: bool = False

    @property
    def as_affine(self) -> tuple[str, str | float, float] | None:
        """("scale" or "bias", operand, its sign) where the stage is one of x·s, x + b, x - b."""
        if self.operand is None or self.reverse:
            return None
        known = {"multiply": ("scale", 1.0), "add": ("bias", 1.0), "subtract": ("bias", -1.0)}
        if self.op not in known:
            return None
        what, sign = known[self.op]
        return what, self.operand, sign
