"""Which operation of a graph is which operation of an engine."""

from __future__ import annotations

from math import inf

from nki_dtypes import DType, bool_, int32, uint8, uint32
from nkigen_lite.ir import Node

ACTIVATIONS: dict[str, str] = {
    name: name
    for name in (
        "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "gelu", "erf", "square", "sign",
        "gelu_apprx_tanh",
    )
} | {"sin_reduced": "sin"}  # fmt: skip
"""Functions of ScalarE that mean what NumPy means on every input that ScalarE takes."""

ALU: dict[str, str] = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "maximum",
    "minimum": "minimum", "equal": "equal", "not_equal": "not_equal", "less": "less",
    "less_equal": "less_equal", "greater": "greater", "greater_equal": "greater_equal",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
}  # fmt: skip
"""Two operands, in float32, rounded once."""

MIRRORED: dict[str, str] = {
    "add": "add", "multiply": "multiply", "maximum": "maximum", "minimum": "minimum",
    "equal": "equal", "not_equal": "not_equal", "less": "greater", "greater": "less",
    "less_equal": "greater_equal", "greater_equal": "less_equal",
}  # fmt: skip
"""The operation that means the same with its operands the other way round."""

REDUCTIONS: dict[str, str] = {
    "sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply",
}  # fmt: skip

SCANS: dict[str, tuple[str, float]] = {
    "cumsum": ("add", 0.0), "cumprod": ("multiply", 1.0), "cummax": ("maximum", -inf),
    "cummin": ("minimum", inf),
}  # fmt: skip
"""Operation of a running result, and what it begins with."""

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})
TRUTHS = COMPARISONS | LOGICAL
"""Results are bool."""

BITS: dict[str, str] = {
    op: op
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
}  # fmt: skip
"""Of raw integers of one width; shifts move zeros in."""

EXACT: dict[str, str] = {
    "exact_add": "add", "exact_subtract": "subtract", "exact_multiply": "multiply",
}  # fmt: skip
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


def refused(node: Node, dtypes: tuple[DType, ...]) -> str | None:
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
