"""Writing a view down: nothing, a subscript of slices, or `.ap(pattern, offset)`.

Of the forms that say the same the plainest is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import mul

from nki_migrate.facts.values import (
    Dim,
    Part,
    Slice,
    Storage,
    Sym,
    Tensor,
)
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.views.gathers import Gather, Shift
from nki_migrate.rewriting.views.tensors import home, storage_dims

_ONE, _ZERO = Sym.number(1), Sym.number(0)
Limits = Mapping[int, Part]  # result axis → which elements of it


def spell(ctx: Context, tensor: Tensor, limits: Limits | None = None) -> str:
    """The view as 0.2 text, cut to `limits` elements on the given axes."""
    tensor, counts = _from_first(tensor, limits or {})
    storage = tensor.storage
    ctx.wrote(storage, "other")
    if storage.gather is not None:
        if tensor.dims is not None:
            raise Cannot(Reason.GATHER, "part of an access whose rows a tile picks")
        spell_part = _spell_gathered if isinstance(storage.gather, Gather) else _spell_shifted
        return spell_part(ctx, storage.gather, counts)  # type: ignore[arg-type]
    if not counts and (text := _unchanged(ctx, tensor)) is not None:
        return text
    dims = storage_dims(tensor) or None
    if dims is None or tensor.shape is None:
        raise Cannot(Reason.RETURNED_VALUE, f"the shape of `{storage.name}` is not known")
    shape = tuple(counts.get(a, e) for a, e in enumerate(tensor.shape))
    head, body, sizes = _split_blocks(ctx, storage, dims)
    if not _is_plain(body, shape):
        return head + pattern(ctx, storage, body, sizes, shape)
    parts = _slices(ctx, storage, body, sizes, shape)
    return head if all(p == ":" for p in parts) else f"{head}[{', '.join(parts)}]"


def _from_first(tensor: Tensor, limits: Limits) -> tuple[Tensor, dict[int, Sym]]:
    """The view from the first elements of the limits on, and how many there are of each axis."""
    starts = {a: part.start for a, part in limits.items() if isinstance(part, Slice)}
    counts = {a: p.extent if isinstance(p, Slice) else p for a, p in limits.items()}
    if not starts:
        return tensor, counts
    if tensor.storage.gather is not None:
        raise Cannot(Reason.GATHER, "some of the rows that a tile picks")
    dims = storage_dims(tensor)
    if dims is None:
        raise Cannot(Reason.RETURNED_VALUE, f"the shape of `{tensor.storage.name}` is not known")
    moved = tuple(_moved(dim, starts) for dim in dims)
    return replace(tensor, dims=moved, written=None), counts


def _moved(dim: Dim, starts: Mapping[int, Sym]) -> Dim:
    """A dimension that begins at other elements of the axes."""
    offset = dim.offset
    for axis, step in dim.terms:
        offset = offset + step * starts[axis] if axis in starts else offset
    return replace(dim, offset=offset)


def _slices(
    ctx: Context,
    storage: Storage,
    dims: tuple[Dim, ...],
    sizes: tuple[Sym | None, ...],
    shape: tuple[Sym, ...],
) -> list[str]:
    last = len(dims) - 1  # one element of a tile is (1, 1)
    on_chip, kept = storage.buffer != "hbm", sum(bool(d.terms) for d in dims)
    return [
        _slice_text(
            ctx, dim, size, shape, on_chip and (k == 0 or kept == 1 or (not kept and k == last)), k
        )
        for k, (dim, size) in enumerate(zip(dims, sizes, strict=True))
    ]


def _unchanged(ctx: Context, tensor: Tensor) -> str | None:
    """A whole tensor, a view under a name of its own, or a subscript as the source has it."""
    storage, held = tensor.storage, ctx.scope.held
    if tensor.dims is None:
        return home(ctx, storage)
    if held.get(storage.name) is not storage:
        for name, what in held.items():
            if what is tensor:
                return name
    return None if tensor.written is None else home(ctx, storage) + tensor.written


def _split_blocks(
    ctx: Context, storage: Storage, dims: tuple[Dim, ...]
) -> tuple[str, tuple[Dim, ...], tuple[Sym | None, ...]]:
    """(text of the tile, its dims, its sizes); blocks become list indices or go behind P."""
    sizes: tuple[Sym | None, ...] = (
        storage.shape if storage.shape is not None else (None,) * len(dims)
    )
    b = storage.blocks
    if not b:
        _reject_unknown_blocks(storage, dims)
        return home(ctx, storage), dims, sizes
    if storage.folded:
        order = [b, *range(b), *range(b + 1, len(dims))]
        return home(ctx, storage), tuple(dims[i] for i in order), tuple(sizes[i] for i in order)
    if storage.alone:
        return home(ctx, storage), dims[b:], sizes[b:]
    if any(d.terms for d in dims[:b]):
        ctx.seen.folds.add(storage.site)
        raise Cannot(
            Reason.BLOCK_DIMENSIONS,
            f"`{storage.name}` is sliced along a block dimension, which a list of tiles cannot be;"
            " --block-dims fold (or auto) makes it one tile",
        )
    head = home(ctx, storage) + "".join(f"[{ctx.spell(d.offset)}]" for d in dims[:b])
    return head + storage.suffix, dims[b:], sizes[b:]


def _reject_unknown_blocks(storage: Storage, dims: tuple[Dim, ...]) -> None:
    """A tensor of another function whose partition dimension is not the first: it has blocks."""
    axes = [[axis for axis, _ in dim.terms] for dim in dims]
    if storage.buffer is None and sum(map(len, axes)) > 1 and not axes[0] and [0] in axes:
        raise Cannot(
            Reason.BLOCK_DIMENSIONS,
            f"`{storage.name}` has block dimensions, and nothing in view makes it: name the file"
            " that does, too",
        )


def _is_plain(dims: tuple[Dim, ...], shape: tuple[Sym, ...]) -> bool:
    """Whether slices say it: one axis per dimension, in order, none left out."""
    if any(len(d.terms) > 1 for d in dims):
        return False
    terms = [d.terms[0] for d in dims if d.terms]
    used = [axis for axis, _ in terms]
    if used != sorted(set(used)) or any((step.value or 0) < 1 for _, step in terms):
        return False
    return all(e.value == 1 for a, e in enumerate(shape) if a not in used)


def _slice_text(
    ctx: Context, dim: Dim, size: Sym | None, shape: tuple[Sym, ...], keeps: bool, position: int
) -> str:
    """One index. `keeps`: a number is written as a slice of one, so that rank two stays."""
    start = dim.offset
    if not dim.terms:
        if keeps:
            return _range_text(ctx, start, _ONE)
        return ctx.spell(start)
    axis, step = dim.terms[0]
    extent = shape[axis]
    if step.value == 1:
        if start.value == 0 and size is not None and ctx.facts.same(extent.poly, size.poly):
            return ":"
        return _range_text(ctx, start, extent)
    if keeps and position == 0:
        raise Cannot(
            Reason.SCALED_INDEX, "a step over the partition dimension is not possible on chip"
        )
    stop = start + step * (extent - _ONE) + _ONE
    return f"{ctx.spell(start)}:{ctx.spell(stop)}:{step.value}"


def _range_text(ctx: Context, start: Sym, extent: Sym) -> str:
    """`a:b` when that is short, `nl.ds(start, size)` when the sum would repeat a long start."""
    if start.value == 0:
        return f"0:{ctx.spell(extent)}"
    if start.value is not None and extent.value is not None:
        return f"{start.value}:{start.value + extent.value}"
    return f"{ctx.alias('nl')}.ds({ctx.spell(start)}, {ctx.spell(extent)})"


def pattern(
    ctx: Context,
    storage: Storage,
    dims: tuple[Dim, ...],
    sizes: tuple[Sym | None, ...],
    shape: tuple[Sym, ...],
) -> str:
    """`.ap(pattern=[[step, count], …], offset=…)` on the storage, row-major (trap T14)."""
    strides = _strides(ctx, storage, sizes)
    axes = [_ZERO] * len(shape)
    offset = _ZERO
    for dim, stride in zip(dims, strides, strict=True):
        offset = offset + dim.offset * stride
        for axis, coefficient in dim.terms:
            axes[axis] = axes[axis] + coefficient * stride
    if storage.buffer != "hbm":
        _require_partition_axis(storage, dims)
    pairs = ", ".join(f"[{ctx.spell(s)}, {ctx.spell(e)}]" for s, e in zip(axes, shape, strict=True))
    return f".ap(pattern=[{pairs}], offset={ctx.spell(offset)})"


def _strides(ctx: Context, storage: Storage, sizes: tuple[Sym | None, ...]) -> list[Sym]:
    """Elements from one index of a dimension to the next."""
    strides = [_ONE]
    for size in reversed(sizes[1:]):
        if size is None:
            text = f"the sizes of `{storage.name}` are not known: no access pattern"
            raise Cannot(Reason.FOLDED_AXES, text)
        strides.insert(0, ctx.respelled(size) * strides[0])
    return strides


def _require_partition_axis(storage: Storage, dims: tuple[Dim, ...]) -> None:
    """On chip axis 0 of a pattern addresses the partition dimension, and nothing else."""
    if [(axis, step.value) for axis, step in dims[0].terms] != [(0, 1)]:
        raise Cannot(
            Reason.PERMUTED_AXES,
            f"`{storage.name}` is on chip, and its partition dimension is not indexed by axis 0"
            " alone: that needs a transpose",
        )
    if any(a == 0 for d in dims[1:] for a, _ in d.terms):
        text = f"axis 0 addresses two dimensions of `{storage.name}`"
        raise Cannot(Reason.REPEATED_AXIS, text)


def _spell_gathered(ctx: Context, gather: Gather, limits: Mapping[int, Sym]) -> str:
    """`x.ap(pattern=[…], offset=…, vector_offset=rows, indirect_dim=0)`."""
    base, rows = gather.base.storage, gather.rows
    assert base.shape is not None and rows.shape is not None
    shape = tuple(limits.get(axis, size) for axis, size in enumerate(gather.shape))
    text = pattern(ctx, base, gather.dims, base.shape, shape)
    picked = spell(ctx, rows, {0: limits[0]} if 0 in limits else None)
    whole = home(ctx, base)
    if gather.at:  # only the first dimension takes a vector
        sizes = [reduce(mul, base.shape[: gather.at + 1]), *base.shape[gather.at + 1 :]]
        whole += f".reshape(({', '.join(ctx.spell(s) for s in sizes)}))"
    return f"{whole}{text[:-1]}, vector_offset={picked}, indirect_dim=0)"


def _spell_shifted(ctx: Context, shift: Shift, limits: Mapping[int, Sym]) -> str:
    """`x.ap(pattern=[…], offset=…, scalar_offset=number, indirect_dim=d)`."""
    view, storage = shift.view, shift.view.storage
    dims = storage_dims(view)
    if view.shape is None or storage.shape is None or dims is None:
        raise Cannot(Reason.UNKNOWN_RANK, f"the sizes of `{storage.name}` are not known")
    shape = tuple(limits.get(axis, size) for axis, size in enumerate(view.shape))
    text = pattern(ctx, storage, dims, storage.shape, shape)
    number = spell(ctx, shift.number)
    return f"{home(ctx, storage)}{text[:-1]}, scalar_offset={number}, indirect_dim={shift.at})"
