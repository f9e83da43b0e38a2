"""Matrix products and transposes: results in PSUM."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.inference.observations import unlike_dtypes
from nki_migrate.rewriting.operations.matmul import product_of, tile_operand, transpose
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.view_text import own_dtype
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


def rewrite_nc_transpose(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nisa.nc_transpose(data)`: the tensor engine writes PSUM, in the dtype of its input."""
    data = tile_operand(ctx, site.get("data"), site)
    if site.get("mask") is not None:
        raise Cannot(Reason.PRODUCT_MASK, "a mask on a transpose", site.node)
    ctx.report("NKI1195", site.node, "`nisa.nc_transpose` writes to a destination in PSUM")
    extra = [(k, text_of(ctx, v)) for k, v in site.arguments.items() if k == "engine"]
    dtype = as_dtype(ctx, site.get("dtype"))
    same = dtype is None or data.dtype is None or dtype.key == data.dtype.key
    direct = target is None or target.view is None or target.view.buffer == "psum"
    if target is not None and target.view is not None and direct:
        direct = not unlike_dtypes(ctx, own_dtype(ctx, target.view), own_dtype(ctx, data))
    if same and direct:
        return transpose(ctx, site, data, target, extra)
    transposed = transpose(ctx, site, data, None, extra)
    return copy_into(ctx, site.node, transposed, dtype or data.dtype, None, target)


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


def rewrite_nl_transpose(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.transpose(x)`: through PSUM into SBUF."""
    ctx.report("NKI1231", site.node, "`nl.transpose` is nc_transpose into PSUM and a copy")
    data = tile_operand(ctx, site.get("x"), site)
    dtype = as_dtype(ctx, site.get("dtype")) or data.dtype
    transposed = transpose(ctx, site, data, None, [])
    return copy_into(ctx, site.node, transposed, dtype, None, target)


HOOKS = {
    "NKI1182": Hooks(calls={"nisa.nc_matmul": rewrite_nc_matmul}),
    "NKI1195": Hooks(calls={"nisa.nc_transpose": rewrite_nc_transpose}),
    "NKI1230": Hooks(calls={"nl.matmul": rewrite_nl_matmul}),
    "NKI1231": Hooks(calls={"nl.transpose": rewrite_nl_transpose}),
}
