"""Engine operations of graph operations."""

from __future__ import annotations

from nki_dtypes import DType, bool_, int32, uint8, uint32
from nkigen_lite.ir import Node
from nkigen_lite.ops import OPS, Engine


def _of(engine: Engine) -> dict[str, str]:
    return {
        op.name: op.engine.name for op in OPS.values() if op.engine and op.engine.engine is engine
    }


ACTIVATIONS = _of(Engine.activation)
"""Functions of ScalarE that mean what NumPy means on every input that ScalarE takes."""

ALU = _of(Engine.alu)
"""Two operands, in float32, rounded once."""

MIRRORED = {op.name: op.mirrored for op in OPS.values() if op.mirrored}
"""The operation that means the same with its operands the other way round."""

REDUCTIONS = _of(Engine.reduction)

SCANS: dict[str, tuple[str, float]] = {
    op.name: (op.engine.name, op.engine.start)
    for op in OPS.values()
    if op.engine and op.engine.engine is Engine.scan
}
"""Operation of a running result, and what it begins with."""

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})
TRUTHS = COMPARISONS | LOGICAL
"""Results are bool."""

BITS = _of(Engine.bits)
"""Of raw integers of one width; shifts move zeros in."""

EXACT = _of(Engine.exact)
"""Of 32-bit integers, on GpSimdE."""

COPIES = ("convert", "broadcast_to", "reshape")
"""Same elements, perhaps rounded to another type."""

_MOVES = frozenset({*COPIES, "where", "bitcast", "low_bits"})
_OF_INTEGERS = _MOVES | COMPARISONS | BITS.keys() | {"invert", "maximum", "minimum"}
_OF_WIDE = _OF_INTEGERS | EXACT.keys()
_OF_SMALL = _OF_INTEGERS | {"max", "min"}
_OF_BOOL = _MOVES | TRUTHS | {"maximum", "minimum", "max", "min"}


def is_wide(dtype: DType) -> bool:
    """Whether float32 does not hold all its numbers."""
    return dtype in (int32, uint32)


def unsupported_dtype(node: Node, dtypes: tuple[DType, ...]) -> str | None:
    """Why no instruction computes the operation on operands of these dtypes; None where one does.

    Engines read every dtype as float32: bit operations and copies take integers as they are.
    """
    for dtype in dtypes:
        known = _OF_WIDE if is_wide(dtype) else _OF_SMALL if dtype.is_integer else (
            _OF_BOOL if dtype is bool_ else None
        )  # fmt: skip
        if known is not None and node.op not in known:
            return f"no instruction computes it on {dtype}"
    return None


def held_as(dtype: DType) -> DType:
    """The dtype of a value on chip: predicates are integers."""
    return uint8 if dtype is bool_ else dtype
