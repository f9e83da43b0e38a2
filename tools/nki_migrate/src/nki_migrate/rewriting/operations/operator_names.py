"""Operators by name: NumPy functions that 0.1 took are `nl` operators."""

from __future__ import annotations

import ast

from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import text_of

NUMPY_OPERATORS = {
    "max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add",
    "prod": "multiply", "absolute": "abs", "not_equal": "not_equal", "equal": "equal",
} | {
    n: n
    for n in (
        "add", "subtract", "multiply", "maximum", "minimum", "power", "divide", "exp", "log", "sin",
        "tanh", "sqrt", "square", "sign", "abs", "arctan", "reciprocal", "less", "less_equal",
        "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
        "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "copy",
    )
}  # fmt: skip


def operator_text(ctx: Context, node: ast.expr) -> str:
    """An `op=` argument: NumPy functions become `nl` operators."""

    canonical = ctx.index.canonical(node)
    module, _, name = (canonical or "").partition(".")
    if module == "np":
        if name not in NUMPY_OPERATORS:
            raise Cannot(
                Reason.NUMPY_OPERATOR, f"`{canonical}` is not an operator of the machine", node
            )
        text = f"{ctx.alias('nl')}.{NUMPY_OPERATORS[name]}"
        ctx.report(Reason.NUMPY_OPERATOR, node, f"operators are NKI's own: `{text}`")
        ctx.rewrites[node] = text
        return text
    if canonical is None:
        ctx.value_of(node)
    if module == "nl" and name in {"max", "min", "sum"}:
        return f"{ctx.alias('nl')}.{NUMPY_OPERATORS[name]}"
    return text_of(ctx, node)
