"""The operators of tile programs, a record each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Axes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator takes, how large a tile may be, and what it means.

    `grows` names the operand and the axis along which two calls can become one: the axis of no
    other operand, so that everything else is shared. `accumulates` names the operand, absent in the
    first call of a chain, that holds the sum so far.
    """

    name: str
    operands: Mapping[str, Axes]
    result: Axes
    limits: Mapping[str, int]
    meaning: Callable[..., np.ndarray]
    source: str
    grows: tuple[str, str] | None = None
    accumulates: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


def _matmul(
    stationary: np.ndarray, moving: np.ndarray, accumulator: np.ndarray | None = None
) -> np.ndarray:
    product = stationary.T @ moving
    return product if accumulator is None else accumulator + product


MATMUL = Operator(
    "nc_matmul",
    operands={"stationary": ("K", "M"), "moving": ("K", "N"), "accumulator": ("M", "N")},
    result=("M", "N"),
    limits={"K": 128, "M": 128, "N": 512},
    meaning=_matmul,
    grows=("moving", "N"),
    accumulates="accumulator",
    source="NKI architecture guide, tile size: 128 partitions, 128 stationary, 512 moving",
)

OPERATORS: Mapping[str, Operator] = {record.name: record for record in (MATMUL,)}
