"""NKI1232: `nl.copy` is `nisa.tensor_copy`."""

from __future__ import annotations

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import mask_region
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks


def rewrite_copy(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.copy(x, dtype)` → `nisa.tensor_copy`; no copy of a copy into the same place."""
    source = as_tensor(ctx, ctx.value_of(site.arguments["src"]))
    if source is None:
        raise Cannot("NKI1232", "what is copied is not known to be a tile", site.node)
    ctx.report("NKI1232", site.node, "`nl.copy` is tensor_copy")
    region = mask_region(ctx, site, source.shape)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    return copy_into(ctx, site.node, source, dtype, region, target)


HOOKS = Hooks(calls={"nl.copy": rewrite_copy})
