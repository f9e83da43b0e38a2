"""Instructions that took their destination in 0.1 already: only how operands are written changes.

`nc_stream_shuffle` changed its order as well: (src, dst, mask) of 0.1 is (dst, src, mask).
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nki_migrate.facts.values import Const, Tensor, Value
from nki_migrate.rewriting.context.call_site import DONE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.destination import emit, mask_region, valid_limits
from nki_migrate.rewriting.operations.operator_names import operator_text
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor

_OPERATORS = {"reduce_op"}
_GOES = {"mask", "dtype"}


def into_given(rule: str, said: str) -> Callable[[Context, CallSite, Target | None], Value]:
    """The rewriting of such an instruction, reported under a rule."""

    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Value:
        dst_node = site.get("dst")
        dst = as_tensor(ctx, ctx.value_of(dst_node)) if dst_node is not None else None
        if dst is None or not isinstance(ctx.index.parent(site.node), ast.Expr):
            if _GOES & site.arguments.keys() or _is_positional(site):
                raise Cannot(rule, "the destination is not known to be a tile", site.node)
            return Const(None, "as it is")  # the form of 0.2
        if _is_positional(site) and ctx.is_mixed:
            raise Cannot(rule, "arguments of 0.1 or of 0.2: name them manually", site.node)
        _check_dtype(ctx, rule, site, dst)
        ctx.report(rule, site.node, said)
        operands = [
            (k, _operand(ctx, k, v)) for k, v in site.arguments.items() if k not in {"dst", *_GOES}
        ]
        region = mask_region(ctx, site, dst.shape) or Region(valid_limits(ctx, dst), [])
        rank = len(dst.shape) if dst.shape is not None else 2
        emit(ctx, site.name.partition(".")[2], dst, operands, region, rank=rank)
        return DONE

    return rewrite


def _is_positional(site: CallSite) -> bool:
    return len(site.node.args) > 1


def _check_dtype(ctx: Context, rule: str, site: CallSite, dst: Tensor) -> None:
    """A dtype of its own would round before the destination does."""
    dtype = as_dtype(ctx, site.get("dtype"))
    if dtype is not None and (dst.dtype is None or dst.dtype.key != dtype.key):
        raise Cannot(rule, f"`dtype={dtype.text}` beside a destination of another dtype", site.node)


def _operand(ctx: Context, name: str, node: ast.expr) -> Tensor | str:
    if name in _OPERATORS:
        return operator_text(ctx, node)
    found = ctx.value_of(node)
    tile = found if isinstance(found, Tensor) else None
    return tile if tile is not None else text_of(ctx, node)
