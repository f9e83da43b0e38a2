"""NKI1195: `nisa.nc_transpose` writes to PSUM."""

from __future__ import annotations

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.inference.observations import unlike_dtypes
from nki_migrate.rewriting.operations.matmul import tile_operand, transpose
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks


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


HOOKS = Hooks(calls={"nisa.nc_transpose": rewrite_nc_transpose})
