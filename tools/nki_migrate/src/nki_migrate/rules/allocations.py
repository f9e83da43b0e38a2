"""Calls that create tensors, with or without a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from neuroncore.findings import Finding
from nki_migrate.facts.values import Tensor, Value
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.creation import create, create_filled
from nki_migrate.rewriting.destinations.destination import Result, destination, emit, whole_shape
from nki_migrate.rewriting.destinations.memory import memory_of
from nki_migrate.rewriting.views.tensors import as_tensor, own_dtype
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


def _filled(value: str, ctx: Context, site: CallSite) -> Value:
    """NKI1135: `nl.zeros`, `nl.ones`, `nl.full` are an allocation and a memset."""
    dtype = site.get("dtype")
    name = text_of(ctx, dtype).rpartition(".")[2] if dtype is not None else "float32"
    is_float = not name.startswith(("int", "uint"))
    return create_filled(ctx, site, f"{value}.0" if is_float else value)


def _full(ctx: Context, site: CallSite) -> Value:
    fill = site.get("fill_value")
    if fill is None:
        raise Cannot("NKI1135", "`nl.full` without a fill value", site.node)
    return create_filled(ctx, site, _number(ctx, fill, "NKI1135"))


def _number(ctx: Context, fill: ast.expr, rule: str) -> str:
    """What a tensor is filled with, as text; Cannot for a tile."""
    if isinstance(ctx.value_of(fill), Tensor):
        text = "a tensor is filled with a number: `tile.broadcast_to(shape)` repeats a tile"
        raise Cannot(rule, text, fill)
    return text_of(ctx, fill)


def _like(ctx: Context, site: CallSite) -> Tensor:
    """`nl.zeros_like(x)`, `nl.empty_like(x)`: shape and dtype of x (NKI1137)."""
    message = f"`{site.name}` is an allocation with the shape of its argument"
    ctx.report("NKI1137", site.node, message)
    source = as_tensor(ctx, ctx.value_of(site.arguments["a"]))
    if source is None:
        raise Cannot("NKI1137", "the argument is not known to be a tensor", site.node)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    buffer = memory_of(ctx, site).buffer if site.get("buffer") else (source.buffer or "sbuf")
    result = Result(site.node, site.target, dtype, hint=f"{source.storage.name}_like")
    dst = destination(ctx, result, whole_shape(ctx, source), buffer)
    if site.name == "nl.zeros_like":
        emit(ctx, "memset", dst, [("value", "0")])
    return dst


def _memset(ctx: Context, site: CallSite) -> Value:
    """NKI1190: `nisa.memset` fills a destination."""
    ctx.report("NKI1190", site.node, "`nisa.memset` fills a destination")
    fill = site.arguments.pop("value")
    return create_filled(ctx, site, _number(ctx, fill, "NKI1190"))


HOOKS = {
    "NKI1130": Hooks(nodes=(ast.Attribute, ast.Name), check=_check, calls={"nl.ndarray": create}),
    "NKI1135": Hooks(
        calls={
            "nl.zeros": partial(_filled, "0"),
            "nl.ones": partial(_filled, "1"),
            "nl.full": _full,
        }
    ),
    "NKI1137": Hooks(calls={"nl.zeros_like": _like, "nl.empty_like": _like}),
    "NKI1190": Hooks(calls={"nisa.memset": _memset}),
}
