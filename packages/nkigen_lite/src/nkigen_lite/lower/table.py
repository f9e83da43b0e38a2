"""Which operation of a graph is which operation of an engine."""

from __future__ import annotations

from nki_dtypes import DType, bool_, uint8

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

REDUCTIONS: dict[str, str] = {"sum": "add", "max": "maximum", "min": "minimum"}

COPIES = frozenset({"convert", "broadcast_to", "reshape"})
"""Same elements, perhaps rounded to another float type."""


def held_as(dtype: DType) -> DType:
    """The dtype of a value on chip: predicates are integers."""
    return uint8 if dtype is bool_ else dtype
