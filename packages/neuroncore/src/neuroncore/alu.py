"""The ALU operations of the engines: one table, used by every instruction that takes an `op`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from neuroncore.errors import AttributeValueError


class AluKind(Enum):
    """How an operation treats its operands."""

    arithmetic = "arithmetic"  # float32
    compare = "compare"  # float32 in, 1.0 / 0.0 out
    logical = "logical"  # truth of nonzero in, 1.0 / 0.0 out
    bitvec = "bitvec"  # raw integer bits
    unary = "unary"  # float32, the second operand is ignored

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, eq=False)
class AluOp:
    """One operation: its meaning on NumPy arrays and where it is legal.

    `function(x, y, out=...)`, or `function(x, out=...)` for unary operations. `identity` is set for
    operations that reduce.
    """

    name: str
    kind: AluKind
    function: Callable[..., Any]
    identity: float | int | None = None
    first_generation: int = 2
    """The oldest generation whose ALU has it (as op0/op1 of tensor_scalar)."""
    since: tuple[int, int] = (0, 1)
    """The first version that has it as an ALU operation; ScalarE's function may be older."""
    documented: bool = True
    """False for operations of the compiler's enum that documents call unsupported on hardware."""

    @property
    def reduces(self) -> bool:
        return self.identity is not None

    @property
    def is_bitvec(self) -> bool:
        return self.kind is AluKind.bitvec

    @property
    def is_unary(self) -> bool:
        return self.kind is AluKind.unary or self.name == "invert"

    def __repr__(self) -> str:
        return self.name


def _logical_right_shift(x: np.ndarray, y: Any, out: np.ndarray | None = None) -> np.ndarray:
    """Shift the raw bits: an arithmetic right shift does not exist."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    shifted = np.right_shift(x.view(unsigned), np.asarray(y).astype(unsigned)).view(x.dtype)
    if out is None:
        return shifted
    out[...] = shifted
    return out


def _rsqrt(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    root = np.sqrt(x, out=out)
    return np.divide(np.float32(1), root, out=out)


def _relu(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.maximum(x, np.float32(0), out=out)


def _pick_by_magnitude(better: Callable[..., Any]) -> Callable[..., Any]:
    """The signed operand of larger (or smaller) magnitude; ties give the second."""

    def pick(x: np.ndarray, y: Any, out: np.ndarray | None = None) -> np.ndarray:
        chosen = np.where(better(np.abs(x), np.abs(y)), x, y)
        if out is None:
            return chosen
        out[...] = chosen
        return out

    return pick


_A, _C, _L, _B, _U = (
    AluKind.arithmetic,
    AluKind.compare,
    AluKind.logical,
    AluKind.bitvec,
    AluKind.unary,
)

# Source: NKI reference, supported math operators; engines and generations per instruction.
ALU_OPS: dict[str, AluOp] = {
    op.name: op
    for op in (
        AluOp("add", _A, np.add, 0.0),
        AluOp("subtract", _A, np.subtract, 0.0),
        AluOp("multiply", _A, np.multiply, 1.0),
        AluOp("maximum", _A, np.maximum, -np.inf),
        AluOp("minimum", _A, np.minimum, np.inf),
        AluOp("power", _A, np.power),
        AluOp("abs_max", _A, _pick_by_magnitude(np.greater), 0.0, 4, (0, 4)),
        AluOp("abs_min", _A, _pick_by_magnitude(np.less), np.inf, 4, (0, 4)),
        AluOp("divide", _A, np.divide, documented=False),
        AluOp("mod", _A, np.mod, documented=False),
        AluOp("equal", _C, np.equal),
        AluOp("not_equal", _C, np.not_equal),
        AluOp("less", _C, np.less),
        AluOp("less_equal", _C, np.less_equal),
        AluOp("greater", _C, np.greater),
        AluOp("greater_equal", _C, np.greater_equal),
        AluOp("logical_and", _L, np.logical_and, 1.0),
        AluOp("logical_or", _L, np.logical_or, 0.0),
        AluOp("logical_xor", _L, np.logical_xor, 0.0),
        AluOp("bitwise_and", _B, np.bitwise_and, -1),
        AluOp("bitwise_or", _B, np.bitwise_or, 0),
        AluOp("bitwise_xor", _B, np.bitwise_xor, 0),
        AluOp("left_shift", _B, np.left_shift),
        AluOp("right_shift", _B, _logical_right_shift),
        AluOp("invert", _B, np.invert),
        AluOp("abs", _U, np.abs),
        AluOp("rsqrt", _U, _rsqrt),
        AluOp("reciprocal", _U, np.reciprocal),
        AluOp("square", _U, np.square, None, 4, (0, 4)),
        AluOp("relu", _U, _relu, None, 4, (0, 4)),
    )
}

BYPASS = AluOp("bypass", _U, np.positive, None, 4, (0, 4))
"""No operation: what activate2 writes for a stage that it leaves out."""
AVERAGE = AluOp("average", _A, np.add, since=(0, 5))
"""The mean over partitions, an operation of tensor_partition_reduce only."""

# 0.1 kernels write NumPy functions where an operation is meant [NKI migration guide].
_NUMPY_NAMES = {
    "amax": "maximum", "max": "maximum", "amin": "minimum", "min": "minimum", "sum": "add",
    "prod": "multiply", "absolute": "abs", "true_divide": "divide", "remainder": "mod",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
    "bitwise_not": "invert", "bitwise_invert": "invert", "float_power": "power", "pow": "power",
}  # fmt: skip

_INSTEAD = {
    "logical_not": "no document says what an instruction makes of it: op0=nl.equal, operand0=0.0 "
    "gives 1.0 for 0 and 0.0 for all else",
}
"""Names of operations that 0.2 has without a meaning, and what to write."""


def alu_op(given: Any) -> AluOp:
    """The operation that `given` names: an AluOp, `nl.add`, "add" or (0.1) `np.add`.

    Raises AttributeValueError for anything else.
    """
    if isinstance(given, AluOp):
        return given
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    found = ALU_OPS.get(name) or ALU_OPS.get(_NUMPY_NAMES.get(name, ""))
    if found is None:
        raise AttributeValueError(
            f"{given!r} is not an ALU operation",
            expected="one of " + ", ".join(ALU_OPS),
            hint=_INSTEAD.get(name),
            rule="NKI: supported math operators",
        )
    return found
