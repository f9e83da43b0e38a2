"""Functions of tiles, element by element: `nl.add`, `nl.exp`, `nl.mod`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Const, Index, Parameter, Sym, Tensor, Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import (
    destination,
    emit,
    mask_region,
    temporary,
    valid_limits,
    whole_shape,
)
from nki_migrate.rewriting.inference.observations import guard, require_dtype, seen_dtypes
from nki_migrate.rewriting.inference.promotion import float32, reject_truth_values, with_number
from nki_migrate.rewriting.operations.operands import is_truth_value, scalar_of
from nki_migrate.rewriting.operations.operators import binary, unary
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.index_patterns import tile_of_numbers
from nki_migrate.rules.rule import Hooks

_FUNCTIONS = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "bitwise_and",
    "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip


def _rewrite(name: str) -> Callable[[Context, CallSite, Target | None], Tensor]:
    """NKI1220: `nl` arithmetic on tiles is `nisa.tensor_tensor`."""

    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
        x, y = site.get("x"), site.get("y")
        if x is None or y is None:
            raise Cannot("NKI1220", f"`nl.{name}` without two operands", site.node)
        left, right = (_operand(ctx, n) for n in (x, y))
        ctx.report("NKI1220", site.node, f"`nl.{name}` on tiles is an instruction")
        tensors = [t for t in (as_tensor(ctx, left), as_tensor(ctx, right)) if t is not None]
        widest = max(tensors, key=_elements, default=None)
        region = mask_region(ctx, site, widest.shape if widest else None)
        dtype = as_dtype(ctx, site.get("dtype"))
        return binary(ctx, site.node, name, left, right, dtype, region, target)

    return rewrite


def _operand(ctx: Context, node: ast.expr) -> Value:
    value = ctx.value_of(node)
    return tile_of_numbers(ctx, node, value) if isinstance(value, Index) else value


def _elements(tensor: Tensor) -> int:
    """How many axes are longer than one: the operand that is not broadcast."""
    return sum(s.value != 1 for s in tensor.shape or ())


_FUNCTIONS_unary = (
    "exp", "log", "sin", "cos", "tan", "arctan", "tanh", "sqrt", "sigmoid",
    "relu", "gelu", "gelu_dx", "gelu_apprx_tanh", "silu", "silu_dx", "softplus", "mish",
    "erf", "erf_dx", "sign", "abs", "reciprocal", "negative",
)  # fmt: skip
_MISSING = {"cos", "tan"}  # no activation function of that name


def activation_of(
    name: str, rule: str = "NKI1225"
) -> Callable[[Context, CallSite, Target | None], Tensor]:
    """The rewriting of `nl.<name>(x)`, reported under a rule."""

    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
        x = site.get("x")
        data = as_tensor(ctx, ctx.value_of(x)) if x is not None else None
        if data is None or name in _MISSING:
            why = (
                "has no activation function"
                if data is not None
                else "of a value that is not known to be a tile"
            )
            raise Cannot(rule, f"`nl.{name}` {why}", site.node)
        ctx.report(rule, site.node, f"`nl.{name}` is an activation")
        region = mask_region(ctx, site, data.shape)
        dtype = as_dtype(ctx, site.get("dtype"))
        if name == "negative":
            reject_truth_values(own_dtype(ctx, data), dtype, "the negative", site.node, "NKI1225")
            minus_one = Const(-1.0, "-1.0")
            return binary(
                ctx, site.node, "multiply", data, minus_one, dtype or data.dtype, region, target
            )
        return unary(ctx, site.node, name, data, dtype, region, target)

    return rewrite


def rewrite_mod(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.mod(x, n)` of a tile of integers and a positive number."""
    node = site.node
    x, y = site.get("x"), site.get("y")
    tile = as_tensor(ctx, ctx.value_of(x)) if x is not None else None
    divisor = ctx.value_of(y) if y is not None else None
    if tile is None or not isinstance(divisor, Sym | Const | Parameter):
        raise Cannot("NKI1236", "a remainder of other things than a tile and a number", node)
    scalar, text, is_float = scalar_of(ctx, divisor, node)
    own = own_dtype(ctx, tile)
    if is_float is not False:
        raise Cannot("NKI1236", f"a remainder by `{text}`, which may not be a whole number", node)
    if own.is_float is not False:
        seen = seen_dtypes(ctx, own, float32(ctx).text)
        if not seen or any(d.is_float is not False for d in seen):
            raise Cannot("NKI1236", f"a remainder of `{own.text}`, which may be floating", node)
        require_dtype(ctx, own, seen)
    ctx.report("NKI1236", node, "the remainder of whole numbers is computed in float32")
    _be_positive(ctx, divisor, text, node)
    region = mask_region(ctx, site, tile.shape) or Region(valid_limits(ctx, tile), [])
    dtype = as_dtype(ctx, site.get("dtype")) or with_number(
        ctx, "mod", own, is_float, is_truth=is_truth_value(divisor)
    )
    return _remainder(ctx, node, tile, (scalar, text), dtype, region, target)


def _be_positive(ctx: Context, divisor: object, text: str, node: ast.AST) -> None:
    number = divisor.value if isinstance(divisor, Sym | Const) else None
    if number is None:
        guard(ctx, f"{text} > 0", "needed")
    elif number <= 0:
        raise Cannot("NKI1236", f"a remainder by {text}", node)


def _remainder(
    ctx: Context,
    node: ast.AST,
    tile: Tensor,
    divisor: tuple[str, str],
    dtype: DType | None,
    region: Region,
    target: Target | None,
) -> Tensor:
    nl = ctx.alias("nl")
    scalar, n = divisor
    minus = f"-{scalar}"
    shape, rank = whole_shape(ctx, tile), len(tile.shape) if tile.shape is not None else 2
    hint = tile.storage.name if tile.storage.name.isidentifier() else "value"
    whole = DType(f"{nl}.int32", "int32")
    times = temporary(ctx, f"{hint}_times", shape, whole, "sbuf", node)
    rest = temporary(ctx, f"{hint}_rest", shape, float32(ctx), "sbuf", node)
    for number in (tile, rest):
        operands: list[tuple[str, Tensor | str]] = [
            *(("data", number), ("op0", f"{nl}.multiply"), ("operand0", f"1.0 / {scalar}")),
        ]
        emit(ctx, "tensor_scalar", times, operands, region, rank=rank)
        operands = [
            *(("data", times), ("op0", f"{nl}.multiply"), ("operand0", minus)),
            *(("op1", f"{nl}.add"), ("operand1", number)),
        ]
        emit(ctx, "scalar_tensor_tensor", rest, operands, region, rank=rank)
    more = temporary(ctx, f"{hint}_more", shape, float32(ctx), "sbuf", node)
    result = rest
    for test, bound, step in (("less", "0.0", n), ("greater_equal", n, minus)):
        operands = [
            *(("data", rest), ("op0", f"{nl}.{test}"), ("operand0", bound)),
            *(("op1", f"{nl}.multiply"), ("operand1", step)),
        ]
        emit(ctx, "tensor_scalar", more, operands, region, rank=rank)
        if test != "less":
            result = destination(ctx, target, shape, dtype, "sbuf", node, hint=f"{hint}_mod")
        operands = [("data1", rest), ("data2", more), ("op", f"{nl}.add")]
        emit(ctx, "tensor_tensor", result, operands, region, rank=rank)
    return result


HOOKS = {
    "NKI1220": Hooks(calls={f"nl.{name}": _rewrite(name) for name in _FUNCTIONS}),
    "NKI1225": Hooks(calls={f"nl.{name}": activation_of(name) for name in _FUNCTIONS_unary}),
    "NKI1226": Hooks(calls={"nl.square": activation_of("square", "NKI1226")}),
    "NKI1227": Hooks(calls={"nl.rsqrt": activation_of("rsqrt", "NKI1227")}),
    "NKI1236": Hooks(calls={"nl.mod": rewrite_mod}),
}
