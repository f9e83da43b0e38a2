"""NKI1146: `nl.shared_identity_matrix` is a tile on chip."""

from __future__ import annotations

import ast

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Storage, Tensor, Unknown, Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.source_text import as_dtype, as_number, text_of
from nki_migrate.rewriting.destinations.destination import mask_region
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks


def _rewrite(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """The statement stays; what 0.1 had in HBM and loaded is on chip already."""
    node = site.get("n")
    size = as_number(ctx, ctx.value_of(node)) if node is not None else None
    dtype = as_dtype(ctx, site.get("dtype")) or DType(f"{ctx.alias('nl')}.uint8", "uint8")
    named = target.name if target is not None and target.view is None else None
    if size is None or named is None or not isinstance(ctx.index.parent(site.node), ast.Assign):
        return Unknown(text_of(ctx, site.node))
    ctx.kept.add(site.node)
    storage = Storage(
        named, (size, size), dtype, "sbuf", ctx.loops, ctx.site(site.node), flat_name=named,
        is_value=False, written=True, is_resident=True,
    )  # fmt: skip
    return Tensor(storage, storage.shape)


def use_resident(ctx: Context, site: CallSite, source: Tensor, target: Target | None) -> Tensor:
    """A constant that is on chip from 0.2 on needs no load; a tile that changes is a copy."""
    ctx.report("NKI1146", site.node, f"`{source.storage.name}` is on chip: no load")
    region = mask_region(ctx, site, source.shape)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    name = target.name if target is not None else None
    plain = region is None and dtype.key == own_dtype(ctx, source).key
    if plain and name is not None and not _changes(ctx, {name, source.storage.name}):
        ctx.aliased.add(source.storage.site)
        return source
    return copy_into(ctx, site.node, source, dtype, region, target)


def _changes(ctx: Context, names: set[str]) -> bool:
    """Whether the function writes to what one of the names, or another name of it, represents."""
    bindings = [n for n in ast.walk(ctx.function.node) if isinstance(n, ast.Assign)]
    for _ in bindings:  # names of names of …
        names = names | {
            t.id
            for b in bindings
            if isinstance(b.value, ast.Name) and b.value.id in names
            for t in b.targets
            if isinstance(t, ast.Name)
        }
    for node in ast.walk(ctx.function.node):
        written = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        target = node.target if isinstance(node, ast.AugAssign) else node if written else None
        if isinstance(node, ast.keyword) and node.arg == "dst":
            target = node.value
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and target.id in names:
            return True
    return False


HOOKS = Hooks(calls={"nl.shared_identity_matrix": _rewrite})
