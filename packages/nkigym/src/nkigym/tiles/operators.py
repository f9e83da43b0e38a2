"""The operators of tile programs, a record each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np

from nkigym.tiles.program import Attribute

Axes = tuple[str, ...]

ONE = "1"
"""The axis of one element: a column."""

PARTITIONS = 128
"""NKI architecture guide, tile size: partitions of SBUF and PSUM."""


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator takes, how large a tile may be, and what it means.

    `grows` names the operand and the axis along which two calls can become one: the axis of no
    other operand, so that everything else is shared. `widens` is the axis along which two calls can
    become one where all operands that have it touch. `accumulates` names the operand, absent in the
    first call of a chain, that holds the sum so far. `attributes` have defaults. An axis without a
    limit has none that is documented.
    """

    name: str
    operands: Mapping[str, Axes]
    result: Axes
    limits: Mapping[str, int]
    meaning: Callable[..., np.ndarray]
    source: str
    grows: tuple[str, str] | None = None
    widens: str | None = None
    accumulates: str | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    def most(self, axis: str) -> float:
        """How long an axis of a tile may be."""
        return self.limits.get(axis, inf)


def _matmul(
    stationary: np.ndarray, moving: np.ndarray, accumulator: np.ndarray | None = None
) -> np.ndarray:
    product = stationary.T @ moving
    return product if accumulator is None else accumulator + product


def _transpose(data: np.ndarray) -> np.ndarray:
    return data.T


def _activation(data: np.ndarray, op: str, scale: float, bias: float) -> np.ndarray:
    return FUNCTIONS[op](data * np.float32(scale) + np.float32(bias))


def _tensor_scalar(data: np.ndarray, operand0: np.ndarray, op: str) -> np.ndarray:
    return BINARY[op](data, operand0)


def _tensor_tensor(data1: np.ndarray, data2: np.ndarray, op: str) -> np.ndarray:
    return BINARY[op](data1, data2)


def _tensor_reduce(data: np.ndarray, op: str) -> np.ndarray:
    return BINARY[op].reduce(data, axis=1, keepdims=True)


BINARY: Mapping[str, np.ufunc] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip
"""What tensor_scalar, tensor_tensor and tensor_reduce may do."""

FUNCTIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "copy": np.array, "square": np.square, "exp": np.exp, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
"""What activation may do, to data · scale + bias."""

MATMUL = Operator(
    "nc_matmul",
    operands={"stationary": ("K", "M"), "moving": ("K", "N"), "accumulator": ("M", "N")},
    result=("M", "N"),
    limits={"K": PARTITIONS, "M": PARTITIONS, "N": 512},
    meaning=_matmul,
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
    meaning=_transpose,
    source="NKI: nc_transpose on TensorE, 128 x 128",
)

ACTIVATION = Operator(
    "activation",
    operands={"data": ("P", "F")},
    result=("P", "F"),
    limits={"P": PARTITIONS},
    meaning=_activation,
    grows=("data", "F"),
    attributes={"op": "copy", "scale": 1.0, "bias": 0.0},
    source="NKI: activation, op(data * scale + bias)",
)

TENSOR_SCALAR = Operator(
    "tensor_scalar",
    operands={"data": ("P", "F"), "operand0": ("P", ONE)},
    result=("P", "F"),
    limits={"P": PARTITIONS},
    meaning=_tensor_scalar,
    grows=("data", "F"),
    attributes={"op": "multiply"},
    source="NKI: tensor_scalar, a vector operand has one element for each partition",
)

TENSOR_TENSOR = Operator(
    "tensor_tensor",
    operands={"data1": ("P", "F"), "data2": ("P", "F")},
    result=("P", "F"),
    limits={"P": PARTITIONS},
    meaning=_tensor_tensor,
    widens="F",
    attributes={"op": "add"},
    source="NKI: tensor_tensor, operands of the same partitions and elements in each",
)

TENSOR_REDUCE = Operator(
    "tensor_reduce",
    operands={"data": ("P", "F")},
    result=("P", ONE),
    limits={"P": PARTITIONS},
    meaning=_tensor_reduce,
    attributes={"op": "add"},
    source="NKI: tensor_reduce along the free axis",
)

OPERATORS: Mapping[str, Operator] = {
    record.name: record
    for record in (MATMUL, TRANSPOSE, ACTIVATION, TENSOR_SCALAR, TENSOR_TENSOR, TENSOR_REDUCE)
}
