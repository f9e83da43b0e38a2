"""NKI1196: `nisa.dma_transpose` takes a destination."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.destination import (
    destination,
    emit,
    mask_region,
    valid_limits,
)
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks

_AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}  # rank → axes, the only ones there are


def _rewrite(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    node = site.get("src")
    source = as_tensor(ctx, ctx.value_of(node)) if node is not None else None
    if source is None or source.shape is None:
        raise Cannot("NKI1196", "the shape of what is transposed is not known", site.node)
    axes = _AXES.get(len(source.shape))
    if axes is None or not _names(site.get("axes"), axes):
        raise Cannot("NKI1196", f"axes other than {axes} of a DMA transpose", site.node)
    if source.buffer == "psum" or source.storage.gather is not None:
        raise Cannot("NKI1196", "a DMA transpose of PSUM or of rows that a tile picks", site.node)
    if mask_region(ctx, site, source.shape) is not None or valid_limits(ctx, source):
        raise Cannot("NKI1196", "a DMA transpose of part of a tile", site.node)
    ctx.report("NKI1196", site.node, "`nisa.dma_transpose` writes to a destination")
    shape = tuple(source.shape[axis] for axis in axes)
    own = own_dtype(ctx, source)
    dtype = as_dtype(ctx, site.get("dtype")) or own
    view = target.view if target is not None else None
    fits = dtype.key == own.key and (
        view is None
        or (view.buffer == "sbuf" and view.dtype is not None and view.dtype.key == own.key)
    )
    dst = destination(
        ctx, target if fits else None, shape, own, "sbuf", site.node, hint="transposed"
    )
    rest = [
        (k, text_of(ctx, v)) for k, v in site.arguments.items() if k not in {"src", "mask", "dtype"}
    ]
    emit(ctx, "dma_transpose", dst, [("src", source), *rest], None, rank=len(shape))
    return dst if fits else copy_into(ctx, site.node, dst, dtype, None, target)


def _names(node: ast.expr | None, axes: tuple[int, ...]) -> bool:
    if node is None:
        return True
    items = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    return tuple(i.value if isinstance(i, ast.Constant) else None for i in items) == axes


HOOKS = Hooks(calls={"nisa.dma_transpose": _rewrite})
