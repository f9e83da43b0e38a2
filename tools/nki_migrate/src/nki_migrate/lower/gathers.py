"""Rows of an HBM tensor that a tile of numbers picks: `x[rows[ip, 0], jf]` (NKI1271).

From 0.2 on that is an access pattern with a vector offset: one number per partition, in units of
rows of the whole tensor. Only the first dimension can be indexed so.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from nki_migrate.facts.values import Dim, Index, Storage, Sym, Tensor, Value
from nki_migrate.lower.context import Cannot, Context

__all__ = ["Gather", "gathered", "spell_gathered"]

_ONE, _ZERO = Sym.number(1), Sym.number(0)
_INDEX_DTYPES = {"int32", "uint32"}


@dataclass(frozen=True, slots=True)
class Gather:
    """What a picked access consists of: the whole tensor, the (P, 1) numbers, all axes."""

    base: Tensor
    rows: Tensor
    dims: tuple[Dim, ...]
    shape: tuple[Sym, ...]


def gathered(
    ctx: Context, base: Tensor, values: list[Value | ast.Slice], node: ast.AST
) -> Tensor | None:
    """The access as a tensor of its own; None if it is none of this kind."""
    rows = values[0]
    if not isinstance(rows, Tensor) or base.shape is None or base.dims is not None:
        return None
    if base.buffer != "hbm" or len(values) != len(base.shape) or base.storage.gather is not None:
        return None
    if rows.buffer != "sbuf" or rows.shape is None or len(rows.shape) != 2:
        return None
    if rows.shape[1].value != 1:
        return None
    if rows.dtype is not None and rows.dtype.is_known and rows.dtype.key not in _INDEX_DTYPES:
        raise Cannot("NKI1271", f"rows picked by numbers of `{rows.dtype.text}`", node)
    shape, dims = _others(ctx, base, rows, values[1:], node)
    ctx.report("NKI1271", node, "rows picked by a tile of numbers are a vector offset")
    if rows.dims is not None:
        ctx.report("NKI1272", node, "the column of numbers is a slice of their tile")
    from nki_migrate.lower.views import own_dtype

    name = f"{base.storage.name}_rows"
    storage = Storage(
        name, shape, own_dtype(ctx, base), "hbm", flat_name=base.storage.flat_name,
        mentions=frozenset(), gather=Gather(base, rows, dims, shape),
    )  # fmt: skip
    return Tensor(storage, shape)


def _others(
    ctx: Context, base: Tensor, rows: Tensor, values: list[Value | ast.Slice], node: ast.AST
) -> tuple[tuple[Sym, ...], tuple[Dim, ...]]:
    """Shape of the access, and how its axes address the dimensions, the first one included."""
    assert rows.shape is not None
    indices = [v for v in values if isinstance(v, Index)]
    if not indices and any(isinstance(v, ast.Slice) for v in values):
        return _slices(ctx, base, rows, values, node)
    rank = max([2, *(len(i.extents) for i in indices)])
    shape = [rows.shape[0], *[_ONE] * (rank - 1)]
    dims = [Dim(_ZERO, ((0, _ONE),))]
    for value in values:
        if isinstance(value, Index):
            shift = rank - len(value.extents)
            if any(axis + shift == 0 for axis, _ in value.terms):
                raise Cannot("NKI1271", "the partition axis indexes two dimensions", node)
            for axis, extent in enumerate(value.extents):
                if extent.value != 1 and axis + shift > 0:
                    shape[axis + shift] = extent
            dims.append(Dim(value.offset, tuple((a + shift, c) for a, c in value.terms)))
        elif isinstance(value, Sym):
            dims.append(Dim(value))
        else:
            raise Cannot("NKI1271", "rows picked by a tile, and a slice beside them", node)
    return tuple(shape), tuple(dims)


def _slices(
    ctx: Context, base: Tensor, rows: Tensor, values: list[Value | ast.Slice], node: ast.AST
) -> tuple[tuple[Sym, ...], tuple[Dim, ...]]:
    """Every slice beside the rows is an axis behind the partition axis."""
    from nki_migrate.lower.access import slice_of

    assert rows.shape is not None and base.shape is not None
    if rows.dims is not None and not any(d.terms for d in rows.dims):  # a number, not rows
        raise Cannot("NKI1270", "a number in a tile picks part of a tensor", node)
    shape, dims = [rows.shape[0]], [Dim(_ZERO, ((0, _ONE),))]
    for value, size in zip(values, base.shape[1:], strict=True):
        if isinstance(value, Sym):
            dims.append(Dim(value))
            continue
        found = slice_of(ctx, value, size, node)
        if found is None:
            raise Cannot("NKI1271", "rows picked by a tile, and another tile beside them", node)
        start, extent, step = found
        dims.append(Dim(start, ((len(shape), step),)))
        shape.append(extent)
    return (*shape, *[_ONE] * (2 - len(shape))), tuple(dims)


def spell_gathered(ctx: Context, gather: Gather, limits: Mapping[int, Sym]) -> str:
    """`x.ap(pattern=[…], offset=…, vector_offset=rows, indirect_dim=0)`."""
    from nki_migrate.lower.views import home, pattern, spell

    base, rows = gather.base.storage, gather.rows
    assert base.shape is not None and rows.shape is not None
    shape = list(gather.shape)
    for axis, count in limits.items():
        shape[axis] = count
    text = pattern(ctx, base, gather.dims, base.shape, tuple(shape))
    picked = spell(ctx, rows, {0: limits[0]} if 0 in limits else None)
    return f"{home(ctx, base)}{text[:-1]}, vector_offset={picked}, indirect_dim=0)"
