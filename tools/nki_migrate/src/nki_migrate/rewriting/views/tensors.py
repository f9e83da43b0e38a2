"""Tensors as views of a storage, and what is known of a parameter that is one."""

from __future__ import annotations

import re

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Dim, Parameter, Storage, Sym, Tensor, Unknown, Value
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context

_PATH = re.compile(r"[A-Za-z_]\w*([.\[][\w.\[\], +*-]*)?")  # `tiles[k]`, `state.tile`
_ZERO = Sym.number(0)


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
    """A name for what is made of a tensor: after the whole tensor, if it is one."""
    return f"{tensor.storage.name}_{word}" if tensor.dims is None else word


_SHORT_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "f32": "float32"}
_SHORT_DTYPES |= {"fp32": "float32"}


def _from_parameter(ctx: Context, value: Parameter) -> Tensor:
    """What is known of a tensor parameter: its rank from its uses, the rest from `--assume`."""
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
