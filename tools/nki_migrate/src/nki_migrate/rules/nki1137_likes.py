"""NKI1137: `nl.zeros_like`, `nl.empty_like` write out shape and dtype."""

from nki_migrate.facts.values import Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import destination, emit, whole_shape
from nki_migrate.rewriting.destinations.memory import memory_of
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks


def _create_like(ctx: Context, site: CallSite, fill: str | None, target: Target | None) -> Value:
    """`nl.zeros_like(x)`, `nl.empty_like(x)`: shape and dtype of x (NKI1137)."""
    ctx.report(
        "NKI1137", site.node, f"`{site.name}` is an allocation with the shape of its argument"
    )
    source = as_tensor(ctx, ctx.value_of(site.arguments["a"]))
    if source is None:
        raise Cannot("NKI1137", "the argument is not known to be a tensor", site.node)
    name = source.storage.name
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    buffer = memory_of(ctx, site).buffer if site.get("buffer") else (source.buffer or "sbuf")
    dst = destination(
        ctx, target, whole_shape(ctx, source), dtype, buffer, site.node, hint=f"{name}_like"
    )
    if fill is not None:
        emit(ctx, "memset", dst, [("value", fill)], None, rank=2)
    return dst


def _zeros(ctx: Context, site: CallSite, target: Target | None) -> Value:
    return _create_like(ctx, site, "0", target)


def _empty(ctx: Context, site: CallSite, target: Target | None) -> Value:
    return _create_like(ctx, site, None, target)


HOOKS = Hooks(calls={"nl.zeros_like": _zeros, "nl.empty_like": _empty})
