"""The operators of tile programs, a record each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nkigym.tiles.program import Attribute

Axes = tuple[str, ...]

ONE = "1"
"""The axis of one element: a column."""


@dataclass(frozen=True, slots=True)
class Operator:
    """The operands of an operator and how large a tile may be.

    `grows` names the operand and the axis along which two calls can become one: the axis of no
    other operand, so that everything else is shared. `widens` is the axis along which two calls can
    become one where all operands that have it touch. `accumulates` names the operand, absent in the
    first call of a chain, with the sum so far. `attributes` have defaults. An axis without a limit
    has none that is documented.
    """

    name: str
    operands: Mapping[str, Axes]
    result: Axes
    limits: Mapping[str, int]
    source: str
    grows: tuple[str, str] | None = None
    widens: str | None = None
    accumulates: str | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def most(self, axis: str) -> float:
        """How long an axis of a tile may be."""
        return self.limits.get(axis, inf)


MATMUL = Operator(
    "nc_matmul",
    operands={"stationary": ("K", "M"), "moving": ("K", "N"), "accumulator": ("M", "N")},
    result=("M", "N"),
    limits={"K": PARTITIONS, "M": PARTITIONS, "N": BANK_ELEMS},
    grows=("moving", "N"),
    widens="N",
    accumulates="accumulator",
    source="NKI architecture guide, tile size: 128 partitions, 128 stationary, 512 moving",
)

TRANSPOSE = Operator(
    "nc_transpose",
    operands={"data": ("P", "F")},
    result=("F", "P"),
    limits={"P": PARTITIONS, "F": PARTITIONS},
    source="NKI: nc_transpose on TensorE, 128 x 128",
)

ACTIVATION = Operator(
    "activation",
    operands={"data": ("P", "F")},
    result=("P", "F"),
    limits={"P": PARTITIONS},
    grows=("data", "F"),
    attributes={"op": "copy", "scale": 1.0, "bias": 0.0},
    source="NKI: activation, op(data * scale + bias)",
)

TENSOR_SCALAR = Operator(
    "tensor_scalar",
    operands={"data": ("P", "F"), "operand0": ("P", ONE)},
    result=("P", "F"),
    limits={"P": PARTITIONS},
    grows=("data", "F"),
    attributes={"op": "multiply"},
    source="NKI: tensor_scalar, a vector operand has one element for each partition",
)

TENSOR_TENSOR = Operator(
    "tensor_tensor",
    operands={"data1": ("P", "F"), "data2": ("P", "F")},
    result=("P", "F"),
    limits={"P": PARTITIONS},
    widens="F",
    attributes={"op": "add"},
    source="NKI: tensor_tensor, operands of the same partitions and elements in each",
)

TENSOR_REDUCE = Operator(
    "tensor_reduce",
    operands={"data": ("P", "F")},
    result=("P", ONE),
    limits={"P": PARTITIONS},
    attributes={"op": "add"},
    source="NKI: tensor_reduce along the free axis",
)

OPERATORS: Mapping[str, Operator] = {
    record.name: record
    for record in (MATMUL, TRANSPOSE, ACTIVATION, TENSOR_SCALAR, TENSOR_TENSOR, TENSOR_REDUCE)
}
