"""New tiles and tensors, under the assigned name or one of our own."""

from __future__ import annotations

import ast

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Storage, Sym, Tensor
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.line_breaks import call_text


def allocate(
    ctx: Context,
    name: str,
    shape: tuple[Sym, ...] | str,
    dtype: DType,
    buffer: str,
    node: ast.AST,
) -> Tensor:
    """Emit `name = nl.ndarray(shape, dtype=…, buffer=…)`."""
    nl = ctx.alias("nl")
    text = shape if isinstance(shape, str) else ctx.shape_text(shape)
    region = "shared_hbm" if buffer == "hbm" else buffer
    arguments = [("", text), ("dtype", ctx.dtype_text(dtype)), ("buffer", f"{nl}.{region}")]
    ctx.emit(f"{name} = {call_text(f'{nl}.ndarray', arguments, ctx.width - len(name) - 3)}")
    dims = None if isinstance(shape, str) else shape
    like = ctx.likes.get(shape) if isinstance(shape, str) else None
    storage = Storage(name, dims, dtype, buffer, ctx.loops, ctx.site(node))
    storage.is_value, storage.like = True, like
    ctx.scope.held[name] = storage  # from here on the name holds nothing else
    return Tensor(storage, dims)


def temporary(
    ctx: Context,
    hint: str,
    shape: tuple[Sym, ...] | str,
    dtype: DType,
    buffer: str,
    node: ast.AST,
) -> Tensor:
    """A tile under a name of our own."""
    name = ctx.fresh_name(hint)
    ctx.temporaries.add(name)
    return allocate(ctx, name, shape, dtype, buffer, node)
