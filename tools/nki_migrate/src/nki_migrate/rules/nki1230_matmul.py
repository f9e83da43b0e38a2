"""NKI1230: `nl.matmul` is `nisa.nc_matmul`."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.operations.matmul import product_of, tile_operand, transpose
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rules.rule import Hooks


def rewrite_nl_matmul(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.matmul(x, y, transpose_x)`: without `transpose_x` a transpose comes first."""
    ctx.report("NKI1230", site.node, "`nl.matmul` is nc_matmul, which takes x transposed")
    x, y = tile_operand(ctx, site.get("x"), site), tile_operand(ctx, site.get("y"), site)
    if site.get("mask") is not None:
        raise Cannot(Reason.PRODUCT_MASK, "a mask on a matrix product", site.node)
    flag = site.get("transpose_x")
    if flag is not None and not isinstance(flag, ast.Constant):
        raise Cannot("NKI1230", "`transpose_x` is not a literal", flag)
    if flag is None or not flag.value:  # type: ignore[union-attr]
        x = _transpose_to_sbuf(ctx, site, x)
    return product_of(ctx, site, x, y, target, [])


def _transpose_to_sbuf(ctx: Context, site: CallSite, data: Tensor) -> Tensor:
    """The transposed tile as a matmul operand."""
    transposed = transpose(ctx, site, data, None, [])
    return copy_into(ctx, site.node, transposed, data.dtype, None, None, hint="sbuf")


HOOKS = Hooks(calls={"nl.matmul": rewrite_nl_matmul})
