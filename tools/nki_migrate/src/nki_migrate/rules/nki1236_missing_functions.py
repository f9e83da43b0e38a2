"""`nl.mod` of whole numbers: the machine has no such operation (NKI1236).

x - q·n with q = x · (1 / n) as an integer, twice: the first step leaves less than 2 n, the second
at most n, however a version rounds q. One correction on either side puts it into [0, n). All steps
are exact in float32 while |x| + 2 n ≤ 2**24, which is as far as 0.1's own float32 arithmetic goes.
"""

from __future__ import annotations

import ast

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Const, Parameter, Sym, Tensor
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
from nki_migrate.rewriting.inference.promotion import float32, with_number
from nki_migrate.rewriting.operations.operands import is_truth_value, scalar_of
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks


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


HOOKS = Hooks(calls={"nl.mod": rewrite_mod})
