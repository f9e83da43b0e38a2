"""NKI1182: matmuls into PSUM accumulate by themselves."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.operations.matmul import product_of, tile_operand
from nki_migrate.rules.rule import Hooks

# The one mode that kernels of 0.1 name (nki-samples, double_row_matmul), as 0.2 spells it
_MODES = {"double_row_gen3": "double_row"}


def rewrite_nc_matmul(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nisa.nc_matmul(stationary, moving)` → `nisa.nc_matmul(dst, stationary, moving)`."""
    stationary = tile_operand(ctx, site.get("stationary"), site)
    moving = tile_operand(ctx, site.get("moving"), site)
    if site.get("mask") is not None:
        raise Cannot(Reason.PRODUCT_MASK, "a mask on a matrix product", site.node)
    extra = [
        (k, _mode(ctx, v) if k == "perf_mode" else text_of(ctx, v))
        for k, v in site.arguments.items()
        if k not in {"stationary", "moving", "mask"}
    ]
    if site.get("perf_mode") is not None and (target is None or target.view is None):
        raise Cannot(
            Reason.RETURNED_VALUE, "a product in a mode of its own that gets no tile", site.node
        )
    return product_of(ctx, site, stationary, moving, target, extra)


def _mode(ctx: Context, node: ast.expr) -> str:
    """`perf_mode="double_row_gen3"` → `nisa.matmul_perf_mode.double_row`."""
    if not isinstance(node, ast.Constant) or node.value is None:
        return text_of(ctx, node)
    mode = _MODES.get(str(node.value))
    if mode is None:
        raise Cannot(Reason.RETURNED_VALUE, f"`perf_mode={node.value!r}` has no counterpart", node)
    return f"{ctx.alias('nisa')}.matmul_perf_mode.{mode}"


HOOKS = Hooks(calls={"nisa.nc_matmul": rewrite_nc_matmul})
