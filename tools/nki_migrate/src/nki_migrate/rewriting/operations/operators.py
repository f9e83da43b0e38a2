"""Arithmetic on tiles, as operators or `nl` functions.

Same shapes: tensor_tensor. A number or a (P, 1) tile on one side: tensor_scalar. A (1, F) row is
first repeated over the partitions. Division is multiplication by the reciprocal: the
machine has no divide.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import replace

from nki_migrate.facts.dtypes import FLOAT32, DType
from nki_migrate.facts.values import Const, Parameter, Sym, Tensor, Value
from nki_migrate.rewriting.context.call_site import NOWHERE, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_number
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import (
    Operand,
    Result,
    destination,
    emit,
    whole_shape,
)
from nki_migrate.rewriting.destinations.regions import valid_region
from nki_migrate.rewriting.destinations.start_partition import from_first_partition
from nki_migrate.rewriting.inference.promotion import (
    float32,
    guessed,
    on_truths,
    promoted,
    reject_truth_values,
    two_guessed,
    with_number,
)
from nki_migrate.rewriting.operations.broadcasting import broadcast_partitions, form_of, spread
from nki_migrate.rewriting.operations.operands import is_truth_value, scalar_of
from nki_migrate.rewriting.views.masks import Region
from nki_migrate.rewriting.views.tensors import as_tensor, hint_of, own_dtype
from nki_migrate.rewriting.views.view_text import spell

_COMMUTATIVE = {"add", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
                "logical_and", "logical_or", "logical_xor", "equal", "not_equal"}  # fmt: skip
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.Pow: "power", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip


_COMPARED = {name: f"is_{name}" for name in OPERATORS.values() if name.startswith(("l", "g", "e"))}
_OF_TWO = {
    "add": "sum", "subtract": "difference", "multiply": "product", "maximum": "larger",
    "minimum": "smaller", "logical_and": "both", "logical_or": "either", "not_equal": "differs",
} | _COMPARED  # fmt: skip
_OF_NUMBER = _OF_TWO | {
    "add": "shifted", "subtract": "shifted", "multiply": "scaled", "maximum": "clamped",
    "minimum": "clamped",
}  # fmt: skip
"""What the result of an operation is called: of two tiles, and of a tile and a number."""


def role_of(op: str, *, of_two: bool) -> str:
    """A noun for the result of an operation."""
    return (_OF_TWO if of_two else _OF_NUMBER).get(op, op)


def binary_operator(
    ctx: Context, node: ast.BinOp, left: Value, right: Value, target: Target = NOWHERE
) -> Tensor:
    """`a + b` on tiles."""
    what = f"`{type(node.op).__name__}` on tiles is not an instruction"
    return binary(ctx, _operator(ctx, node, node.op, what), left, right, Result(node, target))


def comparison_operator(ctx: Context, node: ast.Compare, left: Value, right: Value) -> Tensor:
    """`a > b` on tiles."""
    what = "a comparison of tiles that is not an instruction"
    return binary(ctx, _operator(ctx, node, node.ops[0], what), left, right, Result(node))


def _operator(ctx: Context, node: ast.expr, operator: ast.AST, what: str) -> str:
    name = OPERATORS.get(type(operator))
    if name is None:
        raise Cannot(Reason.TILE_OPERATOR, what, node)
    ctx.report(Reason.TILE_OPERATOR, node, f"`{name}` on tiles is an instruction")
    return name


def unary_operator(ctx: Context, node: ast.UnaryOp, value: Tensor) -> Tensor:
    """`-a` on a tile."""
    if not isinstance(node.op, ast.USub):
        raise Cannot(Reason.TILE_OPERATOR, "an operator on a tile that is not an instruction", node)
    reject_truth_values(own_dtype(ctx, value), None, "the negative", node, Reason.TILE_OPERATOR)
    ctx.report(Reason.TILE_OPERATOR, node, "negation of a tile is a multiplication by -1")
    return negative(ctx, value, Result(node, dtype=own_dtype(ctx, value)))


def negative(ctx: Context, value: Tensor, result: Result) -> Tensor:
    """-1 · a."""
    return binary(ctx, "multiply", value, Const(-1.0, "-1.0"), result)


def unary(ctx: Context, function: str, data: Tensor, result: Result) -> Tensor:
    """`nisa.activation(dst, op=nl.exp, data)`."""
    own = own_dtype(ctx, data)
    reject_truth_values(own, result.dtype, f"`{function}`", result.node, Reason.ACTIVATION)
    result = replace(result, dtype=result.dtype or own, hint=hint_of(data, function))
    operands = [("op", f"{ctx.alias('nl')}.{function}"), ("data", data)]
    return _computed(ctx, "activation", data, operands, result)


def _computed(
    ctx: Context,
    instruction: str,
    tile: Tensor,
    operands: Sequence[tuple[str, Operand]],
    result: Result,
) -> Tensor:
    """The result of an instruction that computes element by element, of the shape of a tile."""
    region = result.region or valid_region(ctx, tile)
    dst = destination(ctx, result, whole_shape(ctx, tile), in_place=True, computed=region)
    emit(ctx, instruction, dst, operands, region)
    return dst


def binary(ctx: Context, op: str, left: Value, right: Value, result: Result) -> Tensor:
    """left ∘ right into a new tile or the target."""
    left, right, node = as_operand(ctx, left), as_operand(ctx, right), result.node
    a, b = as_tensor(ctx, left), as_tensor(ctx, right)
    if op == "power":
        return _power(ctx, a, right, result)
    if a is not None and b is not None:
        return two_tiles(ctx, op, a, b, result)
    if (tile := a or b) is None:
        text = f"`{op}` of values that are not known to be tiles"
        raise Cannot(Reason.TILE_ARITHMETIC, text, node)
    number = right if a is not None else left
    scalar, text, is_float = scalar_of(ctx, number, node)
    own = own_dtype(ctx, tile)
    op = on_truths(op, result.dtype, own)
    is_truth = is_truth_value(number)
    dtype = result.dtype or with_number(ctx, op, own, is_float, is_truth=is_truth)
    result = replace(result, dtype=dtype, guess=guessed(ctx, own, text, is_float))
    if op != "divide":
        return _with_operand(ctx, op, tile, text, result, swapped=a is None)
    if a is not None:
        return _with_operand(ctx, "multiply", tile, _reciprocal_text(scalar), result)
    is_one = text in {"1", "1.0"}
    if is_one and dtype is not None and dtype.key == FLOAT32:
        result = replace(result, hint=hint_of(tile, "reciprocal"))
        return _computed(ctx, "reciprocal", tile, [("data", tile)], result)
    tile = _reciprocal(ctx, tile, result)
    if is_one:
        return copy_into(ctx, tile, result)
    return _with_operand(ctx, "multiply", tile, text, result)


def as_operand(ctx: Context, value: Value) -> Value:
    """A parameter of a kernel in arithmetic is a number: tensors in HBM cannot be operands.

    So is what was a number in every run, or is bound to the elements of a list of numbers.
    """
    if not isinstance(value, Parameter):
        return value
    is_number = value.buffer == "hbm" or f"{value.name}@{value.version}" in ctx.kinds
    return as_number(ctx, value) or value if is_number else value


def _reciprocal_text(scalar: str) -> str:
    """`1.0 / n`; the number itself where it is exact."""
    try:
        number = float(scalar)
    except ValueError:
        return f"1.0 / {scalar}"
    exact = number != 0 and math.frexp(number)[0] in {0.5, -0.5}
    return repr(1.0 / number) if exact else f"1.0 / {scalar}"


def _power(ctx: Context, base: Tensor | None, exponent: Value, result: Result) -> Tensor:
    number = exponent.value if isinstance(exponent, Const | Sym) else None
    function = {2: "square", 0.5: "sqrt", -0.5: "rsqrt"}.get(number)  # type: ignore[arg-type]
    if base is None or function is None:
        text = "a power of a tile other than 2, 0.5 and -0.5"
        raise Cannot(Reason.TILE_OPERATOR, text, result.node)
    return unary(ctx, function, base, result)


def two_tiles(ctx: Context, op: str, a: Tensor, b: Tensor, result: Result) -> Tensor:
    """a ∘ b, where one of them may be a column or a row of the other."""
    return in_form(ctx, op, a, b, result, form_of(ctx, a, b, result.node))


def in_form(ctx: Context, op: str, a: Tensor, b: Tensor, result: Result, form: str) -> Tensor:
    """a ∘ b, whose shapes fit as `form` says (`form_of`)."""
    kinds = own_dtype(ctx, a), own_dtype(ctx, b)
    guess = two_guessed(ctx, *kinds, is_quotient=op == "divide")
    op = on_truths(op, result.dtype, *kinds)
    result = replace(result, dtype=result.dtype or promoted(ctx, op, *kinds), guess=guess)
    kind, _, side = form.partition(" ")
    if kind in {"row", "point", "cross"}:  # a cross names the side of its column
        text = f"`{op}` with a row: no instruction repeats partitions"
        ctx.report(Reason.ROW_OPERAND, result.node, text)
        if (side == "left") == (kind != "cross"):
            a = broadcast_partitions(ctx, result.node, a, b.shape)  # type: ignore[arg-type]
        else:
            b = broadcast_partitions(ctx, result.node, b, a.shape)  # type: ignore[arg-type]
        form = "same" if kind == "row" else f"column {side}"
    if op == "divide":
        b, op = _reciprocal(ctx, b, result), "multiply"
    if form in {"same", "spread"}:
        return _tensor_tensor(ctx, op, *spread(ctx, result.node, a, b, form), result)
    ctx.report(Reason.COLUMN_OPERAND, result.node, f"`{op}` with a (P, 1) tile is tensor_scalar")
    swapped = form == "column left"
    tile, scalars = (b, a) if swapped else (a, b)
    scalars = to_float32(ctx, result.node, from_first_partition(ctx, scalars))
    operand: Operand = scalars
    if not result.region and valid_region(ctx, tile).is_everywhere:
        operand = spell(ctx, scalars)
        ctx.use(scalars, "op")
    return _with_operand(ctx, op, tile, operand, result, swapped=swapped)


def _tensor_tensor(ctx: Context, op: str, a: Tensor, b: Tensor, result: Result) -> Tensor:
    region = result.region or valid_region(ctx, a, b)
    if a.buffer == b.buffer == "psum":  # at most one operand in PSUM (trap T9)
        b = copied(ctx, result.node, b, region)
    operands = [("data1", a), ("data2", b), ("op", f"{ctx.alias('nl')}.{op}")]
    role = role_of(op, of_two=True)
    named = b if a.storage.name.endswith(f"_{role}") else a
    result = replace(result, region=region, hint=hint_of(named, role))
    return _computed(ctx, "tensor_tensor", a, operands, result)


def _with_operand(
    ctx: Context, op: str, tile: Tensor, operand: Operand, result: Result, *, swapped: bool = False
) -> Tensor:
    """`nisa.tensor_scalar(dst, data, op0, operand0[, reverse0=True])`."""
    operands = [("data", tile), ("op0", f"{ctx.alias('nl')}.{op}"), ("operand0", operand)]
    if swapped and op not in _COMMUTATIVE:
        operands.append(("reverse0", "True"))
    result = replace(result, hint=hint_of(tile, role_of(op, of_two=False)))
    return _computed(ctx, "tensor_scalar", tile, operands, result)


def _reciprocal(ctx: Context, tile: Tensor, result: Result) -> Tensor:
    """1 / tile in float32, so that the quotient is rounded once more only."""
    region = valid_region(ctx, tile)
    if (around := result.region) is not None:
        sizes = tile.shape or ()
        limits = {a: n for a, n in around.limits.items() if sizes and sizes[a].value != 1}
        region = replace(region, limits=limits, guards=around.guards)
    hint, shape = hint_of(tile, "reciprocal"), whole_shape(ctx, tile)
    dst = temporary(ctx, hint, shape, float32(ctx), "sbuf", result.node)
    emit(ctx, "reciprocal", dst, [("data", tile)], region)
    return dst


def copy_into(ctx: Context, source: Tensor, result: Result) -> Tensor:
    """`nisa.tensor_copy(dst, src)`."""
    region = result.region or valid_region(ctx, source)
    result = replace(result, hint=hint_of(source, result.hint or "copy"))
    dst = destination(ctx, result, whole_shape(ctx, source))
    emit(ctx, "tensor_copy", dst, [("src", source)], region)
    return dst


def copied(ctx: Context, node: ast.AST, source: Tensor, region: Region | None = None) -> Tensor:
    """A copy in SBUF under a name of its own."""
    return copy_into(ctx, source, Result(node, dtype=own_dtype(ctx, source), region=region))


def to_index(ctx: Context, node: ast.AST, numbers: Tensor) -> Tensor:
    """Numbers as indices: DMA takes integers."""
    kind = DType(f"{ctx.alias('nl')}.int32", "int32")
    return copy_into(ctx, numbers, Result(node, dtype=kind, hint="int32"))


def to_float32(ctx: Context, node: ast.AST, column: Tensor) -> Tensor:
    """A (P, 1) operand of tensor_scalar: the instruction takes float32 only."""
    if column.dtype is not None and column.dtype.key == FLOAT32:
        return column
    return copy_into(ctx, column, Result(node, dtype=float32(ctx), hint="f32"))
