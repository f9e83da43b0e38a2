"""NKI1229: composite functions are several instructions."""

from __future__ import annotations

from nki_migrate.facts.values import Sym, Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import mask_region, valid_limits
from nki_migrate.rewriting.inference.promotion import float32, reject_truth_values
from nki_migrate.rewriting.operations.instructions import axes_of, product
from nki_migrate.rewriting.operations.operators import binary
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.nki1228_reductions import reduce_tile, reduced_operand
from nki_migrate.rules.rule import Hooks


def rewrite_mean(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.mean(x, axis)`: the sum in float32, then 1 / n."""
    ctx.report("NKI1229", site.node, "`nl.mean` is a sum and a multiplication")
    data = reduced_operand(ctx, site)
    if data.shape is None or mask_region(ctx, site, data.shape) or valid_limits(ctx, data):
        raise Cannot("NKI1229", "a mean over a tile of unknown or partly filled shape", site.node)
    axes = axes_of(ctx, site.get("axis"), data, site.node)
    count = product(tuple(s for i, s in enumerate(data.shape) if i in axes))
    total = reduce_tile(ctx, site, "add", None, dtype=float32(ctx))
    dtype = as_dtype(ctx, site.get("dtype"))
    reject_truth_values(own_dtype(ctx, data), dtype, "the mean", site.node, "NKI1229")
    dtype = dtype or data.dtype
    factor = Sym(count.poly, f"1.0 / {ctx.spell(count, 3)}", 2, is_float=True)
    return binary(ctx, site.node, "multiply", total, factor, dtype, None, target)


def _message(canonical: str) -> str:
    return f"`{canonical}` is several instructions; from 0.3 on the call itself runs, too"


HOOKS = Hooks(calls={"nl.mean": rewrite_mean}, message=_message)
