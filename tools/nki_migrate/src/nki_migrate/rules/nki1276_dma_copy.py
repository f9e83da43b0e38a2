"""NKI1276: `nisa.dma_copy` keeps its names."""

from __future__ import annotations

from nki_migrate.facts.values import Const, Value
from nki_migrate.rewriting.context.call_site import DONE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.destinations.destination import cut, mask_region, note_write
from nki_migrate.rewriting.operations.operator_names import operator_text
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import spell
from nki_migrate.rules.rule import Hooks


def rewrite_dma_copy(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """`nisa.dma_copy(dst=…, src=…)`: only its operands' subscripts and mask change."""
    if site.node.args:
        text = "operands by position: 0.1 took the source first, later versions the destination"
        raise Cannot("NKI1276", f"{text}; name them", site.node)
    dst_node, src_node = site.get("dst"), site.get("src")
    if dst_node is None or src_node is None:
        raise Cannot("NKI1276", "a dma_copy without dst or src", site.node)
    dst, src = (as_tensor(ctx, ctx.value_of(n)) for n in (dst_node, src_node))
    if (dst is None or src is None) and "mask" not in site.arguments:
        return Const(None, "as it is")  # already 0.2's form
    if dst is None or src is None:
        raise Cannot("NKI1276", "an operand of dma_copy is not known to be a tensor", site.node)
    region = mask_region(ctx, site, dst.shape)
    ctx.report("NKI1276", site.node, "the operands of dma_copy are slices, without a mask")
    limits = region.limits if region else {}
    rank = len(dst.shape) if dst.shape is not None else 2
    ctx.use(src, "op")
    arguments = [
        ("dst", spell(ctx, dst, limits)),
        ("src", spell(ctx, src, cut(src, limits, rank))),
    ]
    others = {k: v for k, v in site.arguments.items() if k not in {"dst", "src", "mask"}}
    arguments += [
        (k, operator_text(ctx, v) if k == "dst_rmw_op" else text_of(ctx, v))
        for k, v in others.items()
    ]  # an operator stays for 0.2 (NKI2003)
    ctx.emit_call(f"{ctx.alias('nisa')}.dma_copy", arguments, region.guards if region else [])
    note_write(ctx, dst, limits, "other")
    return DONE


HOOKS = Hooks(calls={"nisa.dma_copy": rewrite_dma_copy})
