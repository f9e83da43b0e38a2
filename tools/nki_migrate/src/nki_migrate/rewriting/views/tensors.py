"""Tensors of a kernel under migration, and which part of their storage a view covers."""

from __future__ import annotations

import re

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    Dim,
    Parameter,
    Storage,
    Sym,
    Tensor,
    Unknown,
    Value,
)
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason

_PATH = re.compile(r"[A-Za-z_]\w*([.\[][\w.\[\], +*-]*)?")  # `tiles[k]`, `state.tile`
_ONE, _ZERO = Sym.number(1), Sym.number(0)


def as_tensor(ctx: Context, value: Value) -> Tensor | None:
    """The value as a tensor; a parameter becomes one by being used as one."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Unknown) and _PATH.fullmatch(value.text):
        storage = Storage(
            value.text, None, None, None, mentions=ctx.mentioned(value.text), given=True
        )
        return Tensor(storage, None)
    if not isinstance(value, Parameter):
        return None
    ctx.seen.tensors.add(value.name)
    tensor = _from_parameter(ctx, value)
    for name, bound in ctx.scope.values.items():
        if bound == value:  # the parameter and names that alias it
            ctx.scope.values[name] = tensor
            ctx.scope.hold(name, tensor)
    return tensor


def tile_of(ctx: Context, site: CallSite, name: str) -> Tensor | None:
    """An argument of a call as a tensor; None if it was not given, or is nothing of the kind."""
    node = site.get(name)
    return as_tensor(ctx, ctx.value_of(node)) if node is not None else None


def rank_of(tensor: Tensor) -> int:
    """How many axes a tensor has; two where that is not known."""
    return len(tensor.shape) if tensor.shape is not None else 2


def hint_of(tensor: Tensor, word: str) -> str:
    """A name for what is made of a tensor, or of a part of one: after the tensor."""
    name = tensor.storage.name
    return f"{name}_{word}" if tensor.dims is None or name.isidentifier() else word


_SHORT_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "f32": "float32"}
_SHORT_DTYPES |= {"fp32": "float32"}


def _from_parameter(ctx: Context, value: Parameter) -> Tensor:
    """The tensor of a parameter: its rank from its uses, the rest from `--assume`."""
    name = value.name
    assumed = ctx.assumption(name)
    rank = ctx.before.ranks.get(name)
    dtype = ctx.before.dtypes.get(name)
    shape = (
        None if rank is None else tuple(dimension(ctx, name, k, value.version) for k in range(rank))
    )
    buffer = value.buffer
    if assumed is not None:
        ctx.basis.append(f"--assume {assumed.text}")
        buffer = assumed.buffer or buffer
        if assumed.shape is not None:
            shape = tuple(_assumed_size(ctx, name, k, s) for k, s in enumerate(assumed.shape))
        if assumed.dtype is not None:
            short = assumed.dtype.rpartition(".")[2]
            dtype = ctx.dtype(f"{name}.dtype", _SHORT_DTYPES.get(short, short))
    mentions = frozenset({(name, value.version)})
    storage = Storage(name, shape, dtype, buffer, flat_name=name, mentions=mentions, given=True)
    return Tensor(storage, shape)


def _assumed_size(ctx: Context, name: str, axis: int, text: str) -> Sym:
    if text.isdigit():
        return Sym.number(int(text))
    return dimension(ctx, name, axis)


def dimension(ctx: Context, name: str, axis: int, version: int | None = None) -> Sym:
    """`x.shape[axis]` of a parameter, as `x` is bound here or was at `version`."""
    atom = f"{name}.shape[{axis}]"
    ctx.facts.positive.add(atom)
    version = ctx.scope.versions.get(name, 0) if version is None else version
    return Sym(Poly.atom(atom), atom, names=frozenset({(name, version)}))


def view_of(base: Tensor, new: tuple[Dim, ...], shape: tuple[Sym, ...]) -> Tensor:
    """The view of a view: `new` addresses the axes of `base`."""
    if base.dims is None:
        return Tensor(base.storage, shape, new)
    dims = []
    for dim in base.dims:
        offset, terms = dim.offset, dict[int, Sym]()
        for axis, coefficient in dim.terms:
            inner = new[axis] if axis < len(new) else Dim(_ZERO)
            offset = offset + coefficient * inner.offset
            for a, c in inner.terms:
                scaled = coefficient * c
                terms[a] = terms[a] + scaled if a in terms else scaled
        dims.append(Dim(offset, tuple(sorted(terms.items()))))
    return Tensor(base.storage, shape, tuple(dims))


def storage_dims(tensor: Tensor) -> tuple[Dim, ...] | None:
    """The view's dims; of a whole tensor the identity."""
    if tensor.dims is not None:
        return tensor.dims
    if tensor.shape is None:
        return None
    return tuple(Dim(_ZERO, ((k, _ONE),)) for k in range(len(tensor.shape)))


def is_whole(ctx: Context, tensor: Tensor) -> bool:
    """Whether the view covers its whole storage, axis by axis."""
    if tensor.dims is None:
        return True
    full = tensor.storage.shape
    if full is None or tensor.shape is None or len(full) != len(tensor.dims):
        return False
    return all(
        covers(ctx, dim, size, tensor.shape, k)
        for k, (dim, size) in enumerate(zip(tensor.dims, full, strict=True))
    )


def covers_tile(ctx: Context, tensor: Tensor) -> bool:
    """Whether the view covers one whole tile: of block tensors, one block."""
    blocks, full = tensor.storage.blocks, tensor.storage.shape
    if not blocks or tensor.dims is None or full is None or tensor.shape is None:
        return is_whole(ctx, tensor)
    pairs = list(zip(tensor.dims, full, strict=False))[blocks:]
    return all(covers(ctx, d, size, tensor.shape, k) for k, (d, size) in enumerate(pairs))


def covers(ctx: Context, dim: Dim, size: Sym, shape: tuple[Sym, ...], axis: int) -> bool:
    """Whether an axis of a view runs over a whole dimension of the storage, element by element."""
    if not dim.terms:
        return size.value == 1
    return (
        dim.offset.value == 0
        and len(dim.terms) == 1
        and dim.terms[0][0] == axis
        and dim.terms[0][1].value == 1
        and ctx.facts.same(shape[axis].poly, size.poly)
    )


def home(ctx: Context, storage: Storage) -> str:
    """A name that holds the storage here; Cannot if all that did are bound to others by now."""
    held = ctx.scope.held
    if held.get(storage.name) is storage or storage.name in ctx.temporaries:
        return storage.name
    for name, what in held.items():
        if what is storage:
            return name
    if storage.mentions is not None and ctx.still_valid(storage.mentions):
        return storage.name
    raise Cannot(
        Reason.COMPOUND_TARGET,
        f"`{storage.name}` names something else by now, and no other name has the tile",
    )


def own_dtype(ctx: Context, tensor: Tensor) -> DType:
    """The tensor's dtype: as it is known, or in the words `x.dtype`."""
    storage = tensor.storage
    if storage.dtype is None:
        first = "" if storage.folded or storage.alone else "[0]" * storage.blocks
        storage.dtype = ctx.dtype(f"{home(ctx, storage)}{first}.dtype")
    return storage.dtype
