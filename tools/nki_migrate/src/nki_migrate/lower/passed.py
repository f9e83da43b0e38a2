"""What a function's parameters stand for: a kernel's tensors in HBM, a helper's arguments."""

from __future__ import annotations

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Parameter, Storage, Sym, Tensor, Value
from nki_migrate.lower.access import as_tensor
from nki_migrate.lower.context import Context
from nki_migrate.lower.source_text import as_number
from nki_migrate.lower.views import own_dtype

__all__ = ["parameter_value"]


def parameter_value(
    ctx: Context, name: str, position: int, calls: list[tuple[Value, ...]] | None
) -> Value:
    """A kernel's tensors are in HBM; a helper's parameters are what it is called with."""
    helper = ctx.function.called_from_device or not (ctx.function.entry or ctx.function.host_calls)
    value = Parameter(name, None if helper else "hbm", ctx.scope.versions[name])
    passed = [c[position] for c in calls or () if position < len(c)]
    if not passed:
        return value
    tensors = [v for v in passed if isinstance(v, Tensor)]
    if len(tensors) == len(passed):
        return _passed_tensor(ctx, value, tensors)
    if all(isinstance(v, Sym) for v in passed):
        return as_number(ctx, value) or value
    return value


def _passed_tensor(ctx: Context, value: Parameter, tensors: list[Tensor]) -> Value:
    buffers = {t.buffer for t in tensors}
    buffer = buffers.pop() if len(buffers) == 1 else None
    kinds = {(t.storage.blocks, t.storage.folded) for t in tensors if t.dims is None}
    if any(blocks for blocks, _ in kinds):
        return _passed_blocks(ctx, value, tensors, buffer) if len(kinds) == 1 else value
    ranks = {len(t.shape) if t.shape is not None else None for t in tensors}
    if len(ranks) == 1 and (rank := ranks.pop()) is not None:
        ctx.before.ranks.setdefault(value.name, rank)
    if buffer not in {"sbuf", "psum"}:
        return Parameter(value.name, buffer, value.version)
    tensor = as_tensor(ctx, Parameter(value.name, buffer, value.version))
    assert tensor is not None
    ctx.scope.hold(value.name, tensor)
    if ctx.observed is None:
        _note_calls(ctx, tensor, tensors)
    return tensor


def _note_calls(ctx: Context, tensor: Tensor, passed: list[Tensor]) -> None:
    """What every call in the file hands over is seen, as a run would show it."""
    ctx.witness = "the calls in this file"
    for axis, size in enumerate(tensor.shape or ()):
        given = [t.shape[axis].value for t in passed if t.shape is not None]
        atom = size.poly.single_atom
        if atom is not None and len(given) == len(passed) and None not in given:
            ctx.sizes[atom] = {n: (g,) for n, g in enumerate(given) if g is not None}
    dtypes = [t.storage.dtype for t in passed]
    if all(d is not None and d.is_known for d in dtypes):
        key = own_dtype(ctx, tensor).key
        ctx.seen_dtypes[key] = {n: d.key for n, d in enumerate(dtypes) if d is not None}


def _passed_blocks(
    ctx: Context, value: Parameter, tensors: list[Tensor], buffer: str | None
) -> Value:
    """A tensor with block dimensions: the caller made a list of tiles of it, or folded them."""
    shapes = [t.shape for t in tensors]
    rank = len(shapes[0] or ())
    if buffer is None or any(t.dims is not None for t in tensors):
        return value
    if any(s is None or len(s) != rank for s in shapes):
        return value
    first = tensors[0].storage
    sizes = []
    for axis in range(rank):
        here = [s[axis] for s in shapes if s is not None]
        constant = here[0] if all(h.value == here[0].value for h in here) else None
        known = constant is not None and constant.value is not None
        sizes.append(here[0] if known else _size(value, axis, first.blocks, first.folded))
    shape = tuple(sizes)
    mentions = frozenset({(value.name, value.version)})
    storage = Storage(
        value.name, shape, None, buffer, blocks=first.blocks, folded=first.folded,
        flat_name=value.name, is_value=False, mentions=mentions, given=True,
    )  # fmt: skip
    tensor = Tensor(storage, shape)
    ctx.scope.hold(value.name, tensor)
    return tensor


def _size(value: Parameter, axis: int, blocks: int, folded: bool) -> Sym:
    """One size in words that hold for a list of tiles, or for a tile with blocks behind P."""
    names = frozenset({(value.name, value.version)})
    if folded:
        order = [blocks, *range(blocks)]
        text = f"{value.name}.shape[{order.index(axis) if axis in order else axis}]"
    elif axis < blocks:
        text = f"len({value.name}{'[0]' * axis})"
    else:
        text = f"{value.name}{'[0]' * blocks}.shape[{axis - blocks}]"
    return Sym(Poly.atom(text), text, names=names)
