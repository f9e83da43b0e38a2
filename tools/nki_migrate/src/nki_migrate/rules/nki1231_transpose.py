"""NKI1231: `nl.transpose` is `nisa.nc_transpose` and a copy."""

from __future__ import annotations

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.operations.matmul import tile_operand, transpose
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rules.rule import Hooks


def rewrite_nl_transpose(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.transpose(x)`: through PSUM into SBUF."""
    ctx.report("NKI1231", site.node, "`nl.transpose` is nc_transpose into PSUM and a copy")
    data = tile_operand(ctx, site.get("x"), site)
    dtype = as_dtype(ctx, site.get("dtype")) or data.dtype
    transposed = transpose(ctx, site, data, None, [])
    return copy_into(ctx, site.node, transposed, dtype, None, target)


HOOKS = Hooks(calls={"nl.transpose": rewrite_nl_transpose})
