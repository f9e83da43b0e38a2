"""Calls that create tensors, with or without a value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from neuroncore.findings import Finding
from nki_migrate.facts.values import Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.creation import create, create_filled
from nki_migrate.rewriting.destinations.destination import destination, emit, whole_shape
from nki_migrate.rewriting.destinations.memory import memory_of
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    """In an annotation it was for a number: `Tuple[int, nl.par_dim, int]`."""
    if site.canonical(node) != "nl.par_dim" or isinstance(site.index.parent(node), ast.Attribute):
        return
    inner: ast.AST = node
    for outer in site.index.ancestors(node):
        if isinstance(outer, ast.arg | ast.AnnAssign) and outer.annotation is inner:
            message = "`nl.par_dim` in an annotation is a number"
            yield site.finding("NKI1130", node, message, edits=[site.replace(node, "int")])
        inner = outer


def _filled_with(value: str) -> Callable[[Context, CallSite, Target | None], Value]:
    """NKI1135: `nl.zeros`, `nl.ones`, `nl.full` are an allocation and a memset."""

    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Value:
        dtype = site.get("dtype")
        is_float = dtype is None or not text_of(ctx, dtype).rpartition(".")[2].startswith(
            ("int", "uint")
        )
        return create_filled(ctx, site, f"{value}.0" if is_float else value, target)

    return rewrite


def _full(ctx: Context, site: CallSite, target: Target | None) -> Value:
    fill = site.get("fill_value")
    if fill is None:
        raise Cannot("NKI1135", "`nl.full` without a fill value", site.node)
    ctx.value_of(fill)
    return create_filled(ctx, site, text_of(ctx, fill), target)


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
    """NKI1137: `nl.zeros_like`, `nl.empty_like` write out shape and dtype."""
    return _create_like(ctx, site, "0", target)


def _empty(ctx: Context, site: CallSite, target: Target | None) -> Value:
    return _create_like(ctx, site, None, target)


def _memset(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """NKI1190: `nisa.memset` fills a destination."""
    ctx.report("NKI1190", site.node, "`nisa.memset` fills a destination")
    fill = site.arguments.pop("value")
    return create_filled(ctx, site, text_of(ctx, fill), target)


HOOKS = {
    "NKI1130": Hooks(nodes=(ast.Attribute, ast.Name), check=_check, calls={"nl.ndarray": create}),
    "NKI1135": Hooks(
        calls={
            "nl.zeros": _filled_with("0"),
            "nl.ones": _filled_with("1"),
            "nl.full": _full,
        }
    ),
    "NKI1137": Hooks(calls={"nl.zeros_like": _zeros, "nl.empty_like": _empty}),
    "NKI1190": Hooks(calls={"nisa.memset": _memset}),
}
