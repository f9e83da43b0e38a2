"""Functions of tiles, element by element: `nl.add`, `nl.exp`, `nl.mod`."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Const, Index, Parameter, Sym, Tensor, Value
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import (
    Operand,
    Result,
    destination,
    emit,
    result_of,
    whole_shape,
)
from nki_migrate.rewriting.destinations.regions import valid_region
from nki_migrate.rewriting.inference.observations import guard
from nki_migrate.rewriting.inference.observed_dtypes import require_dtype, seen_dtypes
from nki_migrate.rewriting.inference.promotion import float32, reject_truth_values, with_number
from nki_migrate.rewriting.operations.operands import is_truth_value, scalar_of
from nki_migrate.rewriting.operations.operators import as_operand, binary, negative, unary
from nki_migrate.rewriting.views.tensors import as_tensor, hint_of, own_dtype, tile_of
from nki_migrate.rules.index_patterns import tile_of_numbers
from nki_migrate.rules.rule import Hooks

_BINARY = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "bitwise_and",
    "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip
_UNARY = (
    "exp", "log", "sin", "cos", "tan", "arctan", "tanh", "sqrt", "sigmoid",
    "relu", "gelu", "gelu_dx", "gelu_apprx_tanh", "silu", "silu_dx", "softplus", "mish",
    "erf", "erf_dx", "sign", "abs", "reciprocal", "negative",
)  # fmt: skip
_MISSING = {"nl.cos", "nl.tan"}  # no activation function of that name


def _rewrite_binary(ctx: Context, site: CallSite) -> Tensor:
    """NKI1220: `nl` arithmetic on tiles is `nisa.tensor_tensor`."""
    x, y = site.get("x"), site.get("y")
    if x is None or y is None:
        raise Cannot("NKI1220", f"`{site.name}` without two operands", site.node)
    left, right = (_operand(ctx, n) for n in (x, y))
    ctx.report("NKI1220", site.node, f"`{site.name}` on tiles is an instruction")
    tensors = [t for t in (as_tensor(ctx, left), as_tensor(ctx, right)) if t is not None]
    widest = max(tensors, key=_elements, default=None)
    result = result_of(ctx, site, widest.shape if widest else None)
    return binary(ctx, site.name.removeprefix("nl."), left, right, result)


def _operand(ctx: Context, node: ast.expr) -> Value:
    value = ctx.value_of(node)
    return tile_of_numbers(ctx, node, value) if isinstance(value, Index) else value


def _elements(tensor: Tensor) -> int:
    """How many axes are longer than one: the operand that is not broadcast."""
    return sum(s.value != 1 for s in tensor.shape or ())


def _rewrite_unary(rule: str, ctx: Context, site: CallSite) -> Tensor:
    """`nl.<name>(x)` is an activation."""
    data = tile_of(ctx, site, "x")
    if data is None:
        text = f"`{site.name}` of a value that is not known to be a tile"
        raise Cannot(rule, text, site.node)
    if site.name in _MISSING:
        raise Cannot(rule, f"`{site.name}` has no activation function", site.node)
    ctx.report(rule, site.node, f"`{site.name}` is an activation")
    result = result_of(ctx, site, data.shape)
    if site.name == "nl.negative":
        reject_truth_values(own_dtype(ctx, data), result.dtype, "the negative", site.node, rule)
        return negative(ctx, data, replace(result, dtype=result.dtype or data.dtype))
    return unary(ctx, site.name.removeprefix("nl."), data, result)


def _rewrite_mod(ctx: Context, site: CallSite) -> Tensor:
    """`nl.mod(x, n)` of a tile of integers and a positive number.

    x - q·n with q = x · (1 / n) as an integer, twice: the first step leaves less than 2 n, the
    second at most n, however a version rounds q. One correction on either side puts it into [0, n).
    All steps are exact in float32 while |x| + 2 n ≤ 2**24, which is as far as 0.1's own float32
    arithmetic goes.
    """
    node, y = site.node, site.get("y")
    tile = as_tensor(ctx, _operand(ctx, site.arguments["x"])) if site.get("x") else None
    divisor = as_operand(ctx, ctx.value_of(y)) if y is not None else None
    if tile is None or not isinstance(divisor, Sym | Const | Parameter):
        raise Cannot("NKI1236", "a remainder of other things than a tile and a number", node)
    scalar, text, is_float = scalar_of(ctx, divisor, node)
    own = own_dtype(ctx, tile)
    if is_float is not False:
        raise Cannot("NKI1236", f"a remainder by `{text}`, which may not be a whole number", node)
    _require_integers(ctx, own, node)
    ctx.report("NKI1236", node, "the remainder of whole numbers is computed in float32")
    _be_positive(ctx, divisor, text, node)
    result = result_of(ctx, site, tile.shape)
    is_truth = is_truth_value(divisor)
    dtype = result.dtype or with_number(ctx, "mod", own, is_float, is_truth=is_truth)
    return _remainder(ctx, tile, scalar, text, replace(result, dtype=dtype))


def _require_integers(ctx: Context, own: DType, node: ast.AST) -> None:
    if own.is_float is False:
        return
    seen = seen_dtypes(ctx, own, float32(ctx).text)
    if not seen or any(d.is_float is not False for d in seen):
        raise Cannot("NKI1236", f"a remainder of `{own.text}`, which may be floating", node)
    require_dtype(ctx, own, seen)


def _be_positive(ctx: Context, divisor: object, text: str, node: ast.AST) -> None:
    number = divisor.value if isinstance(divisor, Sym | Const) else None
    if number is None:
        guard(ctx, f"{text} > 0", "needed")
    elif number <= 0:
        raise Cannot("NKI1236", f"a remainder by {text}", node)


def _remainder(ctx: Context, tile: Tensor, scalar: str, n: str, result: Result) -> Tensor:
    nl, minus, node = ctx.alias("nl"), f"-{scalar}", result.node
    region = result.region or valid_region(ctx, tile)
    shape = whole_shape(ctx, tile)
    hint = tile.storage.name if tile.storage.name.isidentifier() else "value"
    times = temporary(ctx, f"{hint}_times", shape, DType(f"{nl}.int32", "int32"), "sbuf", node)
    rest = temporary(ctx, f"{hint}_rest", shape, float32(ctx), "sbuf", node)

    def two_steps(data: Tensor, first: tuple[str, str], then: tuple[str, Operand]) -> _Operands:
        ops = [("op0", f"{nl}.{first[0]}"), ("operand0", first[1])]
        return [("data", data), *ops, ("op1", f"{nl}.{then[0]}"), ("operand1", then[1])]

    for number in (tile, rest):
        quotient: _Operands = [("op0", f"{nl}.multiply"), ("operand0", f"1.0 / {scalar}")]
        emit(ctx, "tensor_scalar", times, [("data", number), *quotient], region)
        operands = two_steps(times, ("multiply", minus), ("add", number))
        emit(ctx, "scalar_tensor_tensor", rest, operands, region)
    more = temporary(ctx, f"{hint}_more", shape, float32(ctx), "sbuf", node)
    dst = rest
    for test, bound, step in (("less", "0.0", n), ("greater_equal", n, minus)):
        emit(ctx, "tensor_scalar", more, two_steps(rest, (test, bound), ("multiply", step)), region)
        if test != "less":
            dst = destination(ctx, replace(result, hint=f"{hint}_mod"), shape)
        emit(
            ctx,
            "tensor_tensor",
            dst,
            [("data1", rest), ("data2", more), ("op", f"{nl}.add")],
            region,
        )
    return dst


_PAST = {"nl.floor": ("greater", "subtract"), "nl.ceil": ("less", "add")}


def _rewrite_floor(ctx: Context, site: CallSite) -> Tensor:
    """`nl.floor(x, dtype=nl.int32)`: x as an integer, less one where that is past x.

    It does not matter how a conversion rounds. Other dtypes hold larger numbers than integers do.
    """
    node, tile, dtype = site.node, tile_of(ctx, site, "x"), as_dtype(ctx, site.get("dtype"))
    if tile is None or dtype is None or dtype.key != "int32":
        raise Cannot("NKI1236", f"`{site.name}` of something else than a tile to int32", node)
    ctx.report("NKI1236", node, f"`{site.name}` is a conversion and a correction")
    test, correction = _PAST[site.name]
    result = result_of(ctx, site, tile.shape)
    region, nl = result.region or valid_region(ctx, tile), ctx.alias("nl")
    shape, stem = whole_shape(ctx, tile), site.target.name or hint_of(tile, site.name[3:])
    whole = temporary(ctx, f"{stem}_rounded", shape, dtype, "sbuf", node)
    emit(ctx, "tensor_copy", whole, [("src", tile)], region)
    past = temporary(ctx, f"{stem}_excess", shape, dtype, "sbuf", node)
    operands: _Operands = [("data1", whole), ("data2", tile), ("op", f"{nl}.{test}")]
    emit(ctx, "tensor_tensor", past, operands, region)
    dst = destination(ctx, replace(result, dtype=dtype, hint=site.name[3:]), shape)
    operands = [("data1", whole), ("data2", past), ("op", f"{nl}.{correction}")]
    emit(ctx, "tensor_tensor", dst, operands, region)
    return dst


_Operands = list[tuple[str, Operand]]
HOOKS = {
    "NKI1220": Hooks(calls=dict.fromkeys((f"nl.{n}" for n in _BINARY), _rewrite_binary)),
    "NKI1225": Hooks(
        calls=dict.fromkeys((f"nl.{n}" for n in _UNARY), partial(_rewrite_unary, "NKI1225"))
    ),
    "NKI1226": Hooks(calls={"nl.square": partial(_rewrite_unary, "NKI1226")}),
    "NKI1227": Hooks(calls={"nl.rsqrt": partial(_rewrite_unary, "NKI1227")}),
    "NKI1236": Hooks(calls={"nl.mod": _rewrite_mod} | dict.fromkeys(_PAST, _rewrite_floor)),
}
