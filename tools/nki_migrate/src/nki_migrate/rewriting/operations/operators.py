"""Arithmetic on tiles, as operators or `nl` functions.

Same shapes: tensor_tensor. A number or a (P, 1) tile on one side: tensor_scalar. A (1, F) row is
first repeated over the partitions. Division is multiplication by the reciprocal: the
machine has no divide.
"""

from __future__ import annotations

import ast
import math

from nki_migrate.facts.dtypes import FLOAT32, DType
from nki_migrate.facts.values import Const, Parameter, Sym, Tensor, Value
from nki_migrate.rewriting.context.call_site import Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_number
from nki_migrate.rewriting.destinations.destination import (
    destination,
    emit,
    temporary,
    valid_limits,
    whole_shape,
)
from nki_migrate.rewriting.inference.promotion import (
    Guess,
    float32,
    guessed,
    on_truths,
    promoted,
    reject_truth_values,
    two_guessed,
    with_number,
)
from nki_migrate.rewriting.operations.broadcasting import broadcast_partitions, form_of
from nki_migrate.rewriting.operations.operands import is_truth_value, scalar_of
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype, spell

_COMMUTATIVE = {"add", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
                "logical_and", "logical_or", "logical_xor", "equal", "not_equal"}  # fmt: skip
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.Pow: "power", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip


def binary_operator(
    ctx: Context, node: ast.BinOp, left: Value, right: Value, target: Target | None
) -> Tensor:
    """`a + b` on tiles."""
    name = OPERATORS.get(type(node.op))
    if name is None:
        raise Cannot(
            Reason.TILE_OPERATOR, f"`{type(node.op).__name__}` on tiles is not an instruction", node
        )
    ctx.report(Reason.TILE_OPERATOR, node, f"`{name}` on tiles is an instruction")
    return binary(ctx, node, name, left, right, None, None, target)


def comparison_operator(ctx: Context, node: ast.Compare, left: Value, right: Value) -> Tensor:
    """`a > b` on tiles."""
    name = OPERATORS.get(type(node.ops[0]))
    if name is None:
        raise Cannot(Reason.TILE_OPERATOR, "a comparison of tiles that is not an instruction", node)
    ctx.report(Reason.TILE_OPERATOR, node, f"`{name}` on tiles is an instruction")
    return binary(ctx, node, name, left, right, None, None, None)


def unary_operator(ctx: Context, node: ast.UnaryOp, value: Tensor, target: Target | None) -> Tensor:
    """`-a` on a tile."""
    if not isinstance(node.op, ast.USub):
        raise Cannot(Reason.TILE_OPERATOR, "an operator on a tile that is not an instruction", node)
    reject_truth_values(own_dtype(ctx, value), None, "the negative", node, Reason.TILE_OPERATOR)
    ctx.report(Reason.TILE_OPERATOR, node, "negation of a tile is a multiplication by -1")
    return binary(ctx, node, "multiply", value, Const(-1.0, "-1.0"), value.dtype, None, target)


def unary(
    ctx: Context,
    node: ast.AST,
    function: str,
    data: Tensor,
    dtype: DType | None,
    region: Region | None,
    target: Target | None,
) -> Tensor:
    """`nisa.activation(dst, op=nl.exp, data)`."""
    region = region or Region(valid_limits(ctx, data), [])
    reject_truth_values(own_dtype(ctx, data), dtype, f"`{function}`", node, Reason.ACTIVATION)
    shape = whole_shape(ctx, data)
    hint = _hint(function, data)
    dst = destination(
        ctx,
        target,
        shape,
        dtype or own_dtype(ctx, data),
        "sbuf",
        node,
        hint=hint,
        in_place=True,
        computes=not region.guards and not region.limits,
    )
    operands = [("op", f"{ctx.alias('nl')}.{function}"), ("data", data)]
    emit(ctx, "activation", dst, operands, region, rank=_rank(data))  # type: ignore[arg-type]
    return dst


def _rank(tensor: Tensor) -> int:
    return len(tensor.shape) if tensor.shape is not None else 2


def _hint(function: str, data: Tensor) -> str:
    return f"{data.storage.name}_{function}" if data.dims is None else function


def binary(
    ctx: Context,
    node: ast.AST,
    op: str,
    left: Value,
    right: Value,
    dtype: DType | None,
    region: Region | None,
    target: Target | None,
) -> Tensor:
    """left ∘ right into a new tile or the target."""
    left, right = _as_operand(ctx, left), _as_operand(ctx, right)
    a, b = as_tensor(ctx, left), as_tensor(ctx, right)
    if op == "power":
        return _power(ctx, node, a, right, dtype, region, target)
    if a is not None and b is not None:
        return two_tiles(ctx, node, op, a, b, dtype, region, target)
    tile = a or b
    if tile is None:
        raise Cannot(
            Reason.TILE_ARITHMETIC, f"`{op}` of values that are not known to be tiles", node
        )
    number = right if a is not None else left
    scalar, text, is_float = scalar_of(ctx, number, node)
    own = own_dtype(ctx, tile)
    op = on_truths(op, dtype, own)
    dtype = dtype or with_number(ctx, op, own, is_float, is_truth=is_truth_value(number))
    guess = guessed(ctx, own, text, is_float)
    swapped = a is None
    if op == "divide" and not swapped:
        op, text = "multiply", _reciprocal_text(scalar)
    elif op == "divide":
        tile = reciprocal(ctx, node, tile, region)
        op, swapped = "multiply", False
        if text in {"1", "1.0"}:
            return _copy_into(ctx, node, tile, dtype, region, target, guess=guess)
    return _with_operand(ctx, node, op, tile, text, swapped, dtype, region, target, guess=guess)


def _as_operand(ctx: Context, value: Value) -> Value:
    """A parameter of a kernel in arithmetic is a number: tensors in HBM cannot be operands."""
    if isinstance(value, Parameter) and value.buffer == "hbm":
        return as_number(ctx, value) or value
    return value


def _reciprocal_text(scalar: str) -> str:
    """`1.0 / n`; the number itself where it is exact."""
    try:
        number = float(scalar)
    except ValueError:
        return f"1.0 / {scalar}"
    exact = number != 0 and math.frexp(number)[0] in {0.5, -0.5}
    return repr(1.0 / number) if exact else f"1.0 / {scalar}"


def _power(
    ctx: Context,
    node: ast.AST,
    base: Tensor | None,
    exponent: Value,
    dtype: DType | None,
    region: Region | None,
    target: Target | None,
) -> Tensor:
    number = exponent.value if isinstance(exponent, Const | Sym) else None
    function = {2: "square", 0.5: "sqrt", -0.5: "rsqrt"}.get(number)  # type: ignore[arg-type]
    if base is None or function is None:
        raise Cannot(Reason.TILE_OPERATOR, "a power of a tile other than 2, 0.5 and -0.5", node)
    return unary(ctx, node, function, base, dtype, region, target)


def two_tiles(
    ctx: Context,
    node: ast.AST,
    op: str,
    a: Tensor,
    b: Tensor,
    dtype: DType | None,
    region: Region | None,
    target: Target | None,
) -> Tensor:
    """a ∘ b, where one of them may be a column or a row of the other."""
    form = form_of(ctx, a, b, node)
    kinds = own_dtype(ctx, a), own_dtype(ctx, b)
    guess = two_guessed(ctx, *kinds, is_quotient=op == "divide")
    op = on_truths(op, dtype, *kinds)
    dtype = dtype or promoted(ctx, op, *kinds)
    kind, _, side = form.partition(" ")
    if kind in {"row", "point", "cross"}:  # a cross names the side of its column
        row_left = (side == "left") == (kind != "cross")
        row, other = (a, b) if row_left else (b, a)
        ctx.report(
            Reason.ROW_OPERAND, node, f"`{op}` with a row: no instruction repeats partitions"
        )
        wide = broadcast_partitions(ctx, node, row, other.shape)  # type: ignore[arg-type]
        a, b = (wide, b) if row_left else (a, wide)
        form = "same" if kind == "row" else f"column {side}"
    if op == "divide":
        b = reciprocal(ctx, node, b, region)
        op = "multiply"
    if form == "same":
        return _tensor_tensor(ctx, node, op, a, b, dtype, region, target, guess)
    ctx.report(Reason.COLUMN_OPERAND, node, f"`{op}` with a (P, 1) tile is tensor_scalar")
    swapped = form == "column left"
    tile, column = (b, a) if swapped else (a, b)
    column = to_float32(ctx, node, column)
    limits = valid_limits(ctx, tile)
    text = column if region or limits else spell(ctx, column)
    if isinstance(text, str):
        ctx.use(column, "op")
    return _with_operand(ctx, node, op, tile, text, swapped, dtype, region, target, guess=guess)


def _tensor_tensor(
    ctx: Context,
    node: ast.AST,
    op: str,
    a: Tensor,
    b: Tensor,
    dtype: DType | None,
    region: Region | None,
    target: Target | None,
    guess: Guess,
) -> Tensor:
    region = region or Region(valid_limits(ctx, a) | valid_limits(ctx, b), [])
    if a.buffer == b.buffer == "psum":  # at most one operand in PSUM (trap T9)
        b = _copy_into(ctx, node, b, b.dtype, region, None)
    shape = whole_shape(ctx, a)
    hint = f"{a.storage.name}_{op}" if a.dims is None else op
    dst = destination(
        ctx,
        target,
        shape,
        dtype,
        "sbuf",
        node,
        hint=hint,
        in_place=True,
        guess=guess,
        computes=not region.guards and not region.limits,
    )
    operands = [("data1", a), ("data2", b), ("op", f"{ctx.alias('nl')}.{op}")]
    emit(ctx, "tensor_tensor", dst, operands, region, rank=_rank(a))  # type: ignore[arg-type]
    return dst


def _with_operand(
    ctx: Context,
    node: ast.AST,
    op: str,
    tile: Tensor,
    operand: str | Tensor,
    swapped: bool,
    dtype: DType | None,
    region: Region | None,
    target: Target | None,
    *,
    guess: Guess | None = None,
) -> Tensor:
    """`nisa.tensor_scalar(dst, data, op0, operand0[, reverse0=True])`."""
    region = region or Region(valid_limits(ctx, tile), [])
    hint = f"{tile.storage.name}_{op}" if tile.dims is None else op
    dst = destination(
        ctx,
        target,
        whole_shape(ctx, tile),
        dtype,
        "sbuf",
        node,
        hint=hint,
        in_place=True,
        guess=guess,
        computes=not region.guards and not region.limits,
    )
    operands: list[tuple[str, str | Tensor]] = [
        ("data", tile),
        ("op0", f"{ctx.alias('nl')}.{op}"),
        ("operand0", operand),
    ]
    if swapped and op not in _COMMUTATIVE:
        operands.append(("reverse0", "True"))
    emit(ctx, "tensor_scalar", dst, operands, region, rank=_rank(tile))
    return dst


def reciprocal(ctx: Context, node: ast.AST, tile: Tensor, region: Region | None) -> Tensor:
    """1 / tile in float32, so that the quotient is rounded once more only."""
    own = Region(valid_limits(ctx, tile), [])
    if region is not None:
        own = Region(
            {a: n for a, n in region.limits.items() if tile.shape and tile.shape[a].value != 1},
            region.guards,
        )
    hint = f"{tile.storage.name}_reciprocal" if tile.dims is None else "reciprocal"
    dst = temporary(ctx, hint, whole_shape(ctx, tile), float32(ctx), "sbuf", node)
    emit(ctx, "reciprocal", dst, [("data", tile)], own, rank=_rank(tile))
    return dst


def _copy_into(
    ctx: Context,
    node: ast.AST,
    source: Tensor,
    dtype: DType | None,
    region: Region | None,
    target: Target | None,
    hint: str = "copy",
    guess: Guess | None = None,
) -> Tensor:
    region = region or Region(valid_limits(ctx, source), [])
    name = f"{source.storage.name}_{hint}" if source.dims is None else hint
    dst = destination(
        ctx, target, whole_shape(ctx, source), dtype, "sbuf", node, hint=name, guess=guess
    )
    emit(ctx, "tensor_copy", dst, [("src", source)], region, rank=_rank(source))
    return dst


copy_into = _copy_into


def to_float32(ctx: Context, node: ast.AST, column: Tensor) -> Tensor:
    """A (P, 1) operand of tensor_scalar: the instruction takes float32 only."""
    if column.dtype is not None and column.dtype.key == FLOAT32:
        return column
    return _copy_into(ctx, node, column, float32(ctx), None, None, hint="f32")
