"""Copies, casts, reshapes and broadcasts of tiles."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace

from nki_migrate.facts.dtypes import DType, item_size
from nki_migrate.facts.values import Dim, Seq, Storage, Sym, Tensor, Value
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, as_number, text_of
from nki_migrate.rewriting.destinations.destination import Result, result_of
from nki_migrate.rewriting.destinations.psum_accumulation import note_given
from nki_migrate.rewriting.operations.broadcasting import broadcast_to
from nki_migrate.rewriting.operations.operators import copy_into
from nki_migrate.rewriting.views.tensors import as_tensor, covers, covers_tile, home, own_dtype
from nki_migrate.rewriting.views.view_text import spell
from nki_migrate.rules.rule import Hooks


def _tensor(ctx: Context, base: Value, node: ast.Call) -> Tensor:
    tensor = as_tensor(ctx, base)
    if tensor is None:
        raise Cannot("NKI1162", "a method of something that is not known to be a tile", node)
    return tensor


def _shape_arguments(node: ast.Call) -> list[ast.expr]:
    return node.args or [k.value for k in node.keywords if k.arg == "shape"]


def _shape(ctx: Context, node: ast.Call) -> tuple[Sym, ...] | None:
    arguments = _shape_arguments(node)
    value = ctx.value_of(arguments[0]) if len(arguments) == 1 else None
    items = value.items if isinstance(value, Seq) else tuple(ctx.value_of(a) for a in arguments)
    return _numbers(ctx, items)


def _numbers(ctx: Context, items: tuple[Value, ...]) -> tuple[Sym, ...] | None:
    """All of them, if they are numbers."""
    numbers = tuple(n for v in items if (n := as_number(ctx, v)) is not None)
    return numbers if len(numbers) == len(items) else None


def _rewrite_broadcast_to(ctx: Context, site: CallSite) -> Tensor:
    """`nl.broadcast_to(x, shape=…)`: a tile of its own (NKI1235)."""
    tile = as_tensor(ctx, ctx.value_of(site.arguments["src"]))
    shape_node = site.get("shape")
    if tile is None or shape_node is None:
        raise Cannot(
            "NKI1235", "a broadcast of something that is not known to be a tile", site.node
        )
    value = ctx.value_of(shape_node)
    shape = _numbers(ctx, value.items if isinstance(value, Seq) else ())
    ctx.report("NKI1235", site.node, "a broadcast is a copy of a view")
    own = own_dtype(ctx, tile)
    dtype = as_dtype(ctx, site.get("dtype")) or own
    target = site.target if dtype.key == own.key else NOWHERE
    wide = broadcast_to(ctx, site.node, tile, shape, target)
    if target.view is None and wide.storage.name == target.name and wide.dims is None:
        return wide
    return copy_into(ctx, wide, Result(site.node, site.target, dtype, hint="broadcast"))


def _broadcast(ctx: Context, node: ast.Call, base: Value, target: Target) -> Value:
    return broadcast_to(ctx, node, _tensor(ctx, base, node), _shape(ctx, node), target)


def _astype(ctx: Context, node: ast.Call, base: Value, target: Target) -> Value:
    ctx.report("NKI1162", node, "`.astype` is a copy into a tile of that dtype")
    dtype = as_dtype(ctx, node.args[0] if node.args else None)
    return copy_into(ctx, _tensor(ctx, base, node), Result(node, target, dtype, hint="cast"))


def _reshape(ctx: Context, node: ast.Call, base: Value, target: Target) -> Value:
    """0.2 has `.reshape`; in HBM the storage under it stays the same."""
    tensor = _tensor(ctx, base, node)
    shape = _shape(ctx, node)
    if (part := _reshaped_part(ctx, tensor, shape)) is not None:
        return part
    _check_reshape(node, tensor, shape)
    if node.keywords:
        ctx.report("NKI1162", node, "the shape of `.reshape` is given by position")
    arguments = ", ".join(text_of(ctx, a) for a in _shape_arguments(node))
    text = f"{spell(ctx, tensor)}.reshape({arguments})"
    storage = Storage(
        text, shape, tensor.dtype, tensor.buffer, tensor.storage.loops, tensor.storage.site,
        flat_name=tensor.storage.flat_name, mentions=ctx.mentioned(text), given=True,
    )  # fmt: skip
    note_given(ctx, tensor.storage)  # through either name
    return Tensor(storage, shape)


def _check_reshape(node: ast.Call, tensor: Tensor, shape: tuple[Sym, ...] | None) -> None:
    if tensor.dims is not None or tensor.storage.blocks or tensor.storage.gather is not None:
        raise Cannot("NKI1162", "a reshape of part of a tensor", node)
    if any(k.arg != "shape" for k in node.keywords):
        raise Cannot("NKI1162", "arguments of a reshape that 0.2 does not take", node)
    if shape is not None and len(shape) > _MOST_DIMS and tensor.buffer != "hbm":
        text = f"a view of {len(shape)} dimensions: at most {_MOST_DIMS} on chip, merge some"
        raise Cannot("NKI1162", text, node)


def _view(ctx: Context, node: ast.Call, base: Value, target: Target) -> Value | None:
    """`x.view(dtype)` stays; of a list of blocks it is the view of the block that is indexed."""
    arguments: list[ast.expr] = [*node.args, *(k.value for k in node.keywords)]
    dtype = as_dtype(ctx, arguments[0]) if arguments else None
    if dtype is None or not isinstance(base, Tensor) or not _is_tile(ctx, base):
        return None
    shape = _shape_as(base, dtype)
    return Tensor(_read_as(ctx, node, base, dtype, shape), shape) if shape is not None else None


def _read_as(
    ctx: Context, node: ast.Call, base: Tensor, dtype: DType, shape: tuple[Sym, ...]
) -> Storage:
    storage, view, is_whole = base.storage, f".view({dtype.text})", base.dims is None
    is_list = is_whole and bool(storage.blocks) and not (storage.folded or storage.alone)
    if is_list:
        _require_index(ctx, node, storage)
    text = home(ctx, storage) if is_list else spell(ctx, base) + view
    ctx.wrote(storage, "other")
    seen = replace(
        storage, name=text, shape=shape, dtype=dtype, flat_name=None, given=True, loaded_from=None,
        mentions=ctx.mentioned(text), suffix=view if is_list else "",
    )  # fmt: skip
    if not is_whole:
        seen.blocks, seen.folded = 0, False
    note_given(ctx, seen)  # through either name
    return seen


def _require_index(ctx: Context, node: ast.Call, storage: Storage) -> None:
    """A list has no `.view`: one of its tiles is indexed, or it becomes one tile."""
    if not isinstance(ctx.index.parent(node), ast.Subscript):
        ctx.seen.folds.add(storage.site)
        text = f"`{storage.name}` is a list of tiles, which has no `.view`"
        raise Cannot(Reason.BLOCK_DIMENSIONS, f"{text}; --block-dims fold makes it one tile", node)


def _is_tile(ctx: Context, tensor: Tensor) -> bool:
    """Whether a tensor is the whole of one, or a whole block, with all of its last dimension."""
    storage = tensor.storage
    if storage.gather is not None or not tensor.shape:
        return False
    if tensor.dims is None:
        return len(tensor.shape) - 1 not in storage.valid
    return bool(storage.blocks) and not storage.valid and covers_tile(ctx, tensor)


def _shape_as(tensor: Tensor, dtype: DType) -> tuple[Sym, ...] | None:
    """The sizes of a tensor whose bytes are read as `dtype`; None where they are unknown."""
    old, new = item_size(tensor.dtype), item_size(dtype)
    if old is None or new is None:
        return None
    *others, last = tensor.shape or ()
    if old >= new:
        return (*others, last * Sym.number(old // new))
    size, rest = divmod(last.value or 0, new // old)
    return (*others, Sym.number(size)) if size and not rest else None


def _leading_numbers(ctx: Context, part: Tensor) -> tuple[Dim, ...]:
    """The numbers that index the first dimensions of a tensor in HBM; none for other parts."""
    storage, dims, sizes = part.storage, part.dims or (), part.storage.shape or ()
    numbers = tuple(itertools.takewhile(lambda d: not d.terms, dims))
    at, shape = len(numbers), part.shape or ()
    if storage.buffer != "hbm" or storage.gather is not None:
        return ()
    if len(dims) != len(sizes) or len(shape) != len(sizes) - at:
        return ()
    rest = zip(dims[at:], sizes[at:], range(len(shape)), strict=True)
    return numbers if all(covers(ctx, d, s, shape, axis) for d, s, axis in rest) else ()


def _reshaped_part(ctx: Context, part: Tensor, shape: tuple[Sym, ...] | None) -> Tensor | None:
    """`x[b].reshape((m, n))` of a tensor in HBM is `x.reshape((k, m, n))[b]`; None for others."""
    storage, sizes = part.storage, part.storage.shape or ()
    numbers = _leading_numbers(ctx, part)
    if not numbers or shape is None:
        return None
    whole = (*sizes[: len(numbers)], *shape)
    text = f"{home(ctx, storage)}.reshape({ctx.shape_text(whole)})"
    new = Storage(
        text, whole, own_dtype(ctx, part), "hbm", storage.loops, storage.site,
        flat_name=storage.flat_name, mentions=ctx.mentioned(text), given=True,
    )  # fmt: skip
    kept = tuple(Dim(Sym.number(0), ((axis, Sym.number(1)),)) for axis in range(len(shape)))
    return Tensor(new, shape, (*numbers, *kept))


def _rewrite_copy(ctx: Context, site: CallSite) -> Tensor:
    """`nl.copy(x, dtype)` → `nisa.tensor_copy`; no copy of a copy into the same place."""
    source = as_tensor(ctx, ctx.value_of(site.arguments["src"]))
    if source is None:
        raise Cannot("NKI1232", "what is copied is not known to be a tile", site.node)
    ctx.report("NKI1232", site.node, "`nl.copy` is tensor_copy")
    result = result_of(ctx, site, source.shape)
    return copy_into(ctx, source, replace(result, dtype=result.dtype or own_dtype(ctx, source)))


_MOST_DIMS = 5
"""Dimensions of a view on chip from 0.2 on [NKI API documents]."""

HOOKS = {
    "NKI1162": Hooks(
        methods={
            "broadcast_to": _broadcast,
            "astype": _astype,
            "reshape": _reshape,
            "view": _view,
        }
    ),
    "NKI1232": Hooks(calls={"nl.copy": _rewrite_copy}),
    "NKI1235": Hooks(calls={"nl.broadcast_to": _rewrite_broadcast_to}),
}
