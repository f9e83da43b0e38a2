"""Helpers in the words of their calls: what they are called with, and what they return."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    Const,
    Index,
    Parameter,
    Returned,
    Seq,
    Storage,
    Sym,
    Tensor,
    Value,
)
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Reason, Unsupported
from nki_migrate.rewriting.context.scope import Passed
from nki_migrate.rewriting.context.source_text import as_number, default_of
from nki_migrate.rewriting.views.tensors import as_tensor, own_dtype

_T = TypeVar("_T")
Calls = Sequence[Passed]


def parameter_value(ctx: Context, name: str, position: int, calls: Calls) -> Value:
    """A kernel's tensors are in HBM; a helper's parameters are what it is called with."""
    helper = ctx.function.called_from_device or not (ctx.function.entry or ctx.function.host_calls)
    value = Parameter(name, None if helper else "hbm", ctx.scope.versions[name])
    default = _default_number(ctx, name) if calls else None
    passed = [v for c in calls if (v := c[position] or default) is not None]
    if not passed:
        return value
    tensors = [v for v in passed if isinstance(v, Tensor)]
    if len(tensors) == len(passed):
        return _passed_tensor(ctx, value, tensors)
    if any(isinstance(v, Index) for v in passed):
        return _passed_index(name, passed)
    kinds = {_number_kind(v) for v in passed}
    if None not in kinds:
        if kinds == {float}:
            ctx.kinds[f"{name}@{value.version}"] = float
        return as_number(ctx, value) or value
    return value


def _passed_index(name: str, passed: Sequence[Value]) -> Value:
    """The index tensor that all calls pass, if it is made of numbers alone."""
    first = passed[0]
    if isinstance(first, Index) and all(v == first for v in passed):
        numbers = (*first.extents, *(factor for _, factor in first.terms), first.offset)
        if all(n.value is not None for n in numbers):
            return first
    text = f"`{name}` is an index tensor of the callers: pass numbers, and slice here"
    return Unsupported(text, Reason.INDEX_TENSOR)


def _number_kind(value: Value) -> type | None:
    """int, float, or None for what is not known to be a number."""
    if isinstance(value, Sym):
        return float if value.is_float else int
    is_float = isinstance(value, Const) and isinstance(value.value, float)
    return float if is_float else None


def _default_number(ctx: Context, name: str) -> Value | None:
    """The number that a parameter is where a call leaves it out."""
    node = default_of(ctx.function.node.args, name)
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return None
    return ctx.value_of(node)


def _passed_tensor(ctx: Context, value: Parameter, tensors: list[Tensor]) -> Value:
    buffer = _only({t.buffer for t in tensors})
    kinds = {(t.storage.blocks, t.storage.folded) for t in tensors if t.dims is None}
    if any(blocks for blocks, _ in kinds):
        return _passed_blocks(ctx, value, tensors, buffer) if len(kinds) == 1 else value
    rank = _only({len(t.shape) if t.shape is not None else None for t in tensors})
    if rank is not None:
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
    """Records the arguments of every call in the file, as a run would show them."""
    ctx.witness = "the calls in this file"
    for axis, size in enumerate(tensor.shape or ()):
        given = [_given(t, axis) for t in passed]
        atom = size.poly.single_atom
        if atom is not None and None not in given:
            ctx.sizes[atom] = {n: (g,) for n, g in enumerate(given) if g is not None}
    dtypes = [t.storage.dtype for t in passed]
    if all(d is not None and d.is_known for d in dtypes):
        key = own_dtype(ctx, tensor).key
        ctx.seen_dtypes[key] = {n: d.key for n, d in enumerate(dtypes) if d is not None}


def note_equal_sizes(ctx: Context, calls: Calls) -> None:
    """Note which sizes, numbers and dtypes are equal in every call of the file."""
    first: dict[tuple[Poly, ...], Poly] = {}
    for position, name in enumerate(ctx.function.parameters if calls else ()):
        passed = [c[position] for c in calls]
        for atom, numbers in _numbers(ctx, name, passed).items():
            ctx.alike[atom] = first.setdefault(numbers, _only_number(numbers) or Poly.atom(atom))
        dtypes = [v.storage.dtype for v in passed if isinstance(v, Tensor)]
        keys = tuple(d.key for d in dtypes if d is not None)
        if len(keys) == len(calls):
            ctx.passed_dtypes[f"{name}.dtype"] = keys


def _only_number(numbers: Sequence[Poly]) -> Poly | None:
    return numbers[0] if len(set(numbers)) == 1 and numbers[0].constant is not None else None


def _numbers(
    ctx: Context, name: str, passed: Sequence[Value | None]
) -> dict[str, tuple[Poly, ...]]:
    """Sizes of a parameter, or the parameter itself, in each call."""
    numbers = [v.poly for v in passed if isinstance(v, Sym)]
    if len(numbers) == len(passed):
        return {f"{name}@{ctx.scope.versions[name]}": tuple(numbers)}
    shapes = [v.shape for v in passed if isinstance(v, Tensor) and v.shape is not None]
    if len(shapes) < len(passed):
        return {}
    columns = enumerate(zip(*shapes, strict=False))
    return {f"{name}.shape[{k}]": tuple(s.poly for s in column) for k, column in columns}


def _only(values: set[_T | None]) -> _T | None:
    """The one value that all agree in."""
    return next(iter(values)) if len(values) == 1 else None


def _given(tensor: Tensor, axis: int) -> int | None:
    """A size, if it is a known number."""
    sizes = tensor.shape or ()
    return sizes[axis].value if axis < len(sizes) else None


def _passed_blocks(
    ctx: Context, value: Parameter, tensors: list[Tensor], buffer: str | None
) -> Value:
    """A tensor with block dimensions: the caller made a list of tiles of it, or folded them."""
    rank = len(tensors[0].shape or ())
    if buffer is None or any(t.dims is not None for t in tensors):
        return value
    if any(t.shape is None or len(t.shape) != rank for t in tensors):
        return value
    first = tensors[0].storage
    sizes = []
    for axis in range(rank):
        number = _only({_given(t, axis) for t in tensors})
        here = size_of_blocks(value, axis, first.blocks, folded=first.folded)
        sizes.append(here if number is None else replace(here, poly=Poly.number(number)))
    shape = tuple(sizes)
    mentions = frozenset({(value.name, value.version)})
    storage = Storage(
        value.name, shape, None, buffer, blocks=first.blocks, folded=first.folded,
        flat_name=value.name, is_value=False, mentions=mentions, given=True,
    )  # fmt: skip
    tensor = Tensor(storage, shape)
    ctx.scope.hold(value.name, tensor)
    return tensor


def size_of_blocks(value: Parameter, axis: int, blocks: int, *, folded: bool = False) -> Sym:
    """One size of a name with block dimensions."""
    text = _size_text(value.name, axis, blocks, folded)
    return Sym(Poly.atom(text), text, names=frozenset({(value.name, value.version)}))


def _size_text(name: str, axis: int, blocks: int, folded: bool) -> str:
    """One size in words that hold for a list of tiles, or for a tile with blocks behind P."""
    if folded:
        order = [blocks, *range(blocks)]
        return f"{name}.shape[{order.index(axis) if axis in order else axis}]"
    if axis < blocks:
        return f"len({name}{'[0]' * axis})"
    return f"{name}{'[0]' * blocks}.shape[{axis - blocks}]"


# -- what they return


def summary(ctx: Context) -> Value | None:
    """The common value of all `return` statements of a function; None where they differ."""
    found = [_described(ctx, value) for value in ctx.seen.returned]
    return found[0] if found and all(f == found[0] for f in found) else None


def _described(ctx: Context, value: Value) -> Value | None:
    if isinstance(value, Seq):
        items = [_described(ctx, item) for item in value.items]
        known = tuple(item for item in items if item is not None)
        return Seq(known, "") if len(known) == len(items) else None
    if isinstance(value, Returned):  # by another helper
        value = bound_to(ctx, value, "result")
    if not isinstance(value, Tensor) or (value.storage.blocks and value.dims is not None):
        return None
    return _tile(ctx, value)


def _tile(ctx: Context, tile: Tensor) -> Returned:
    sizes = tuple(_from_outside(ctx, s) for s in tile.shape or ())
    storage = tile.storage
    dtype = None if storage.dtype is None else storage.dtype.key
    buffer = storage.buffer or _parameter_of(ctx, storage.name)
    is_fresh = storage.is_value and tile.dims is None and storage.mentions is None
    is_value = True if is_fresh else None
    return Returned(
        sizes or None, dtype, buffer or "", is_value, blocks=storage.blocks, folded=storage.folded
    )


def _from_outside(ctx: Context, size: Sym) -> Poly | None:
    """A size in terms of parameters, if it is one of what the call gives."""
    poly = ctx.facts.reduced(size.poly)
    return poly if poly.atoms() <= _atoms(ctx.function.parameters, poly) else None


def _atoms(parameters: Sequence[str], poly: Poly) -> set[str]:
    """The atoms of a polynomial that name a parameter, or a size of one."""
    return {a for a in poly.atoms() if a.partition(".shape[")[0].partition("@")[0] in parameters}


def _parameter_of(ctx: Context, name: str) -> str | None:
    return f"={name}" if name in ctx.function.parameters else None


def at_call(
    ctx: Context, returned: Value | None, names: Sequence[str], passed: Passed
) -> Value | None:
    """A summary with the arguments of a call put in."""
    if isinstance(returned, Seq):
        items = [at_call(ctx, item, names, passed) for item in returned.items]
        return replace(returned, items=tuple(item for item in items if item is not None))
    if not isinstance(returned, Returned):
        return None
    given = dict(zip(names, passed, strict=True))
    atoms = _sizes_of(given)
    sizes = returned.sizes and tuple(_substituted(size, atoms) for size in returned.sizes)
    buffer = returned.buffer
    if buffer.startswith("="):
        tensor = given.get(buffer[1:])
        buffer = (tensor.buffer or "") if isinstance(tensor, Tensor) else ""
    return replace(returned, sizes=sizes, dtype=_dtype(ctx, returned.dtype, given), buffer=buffer)


def _sizes_of(given: Mapping[str, Value | None]) -> dict[str, Poly]:
    found: dict[str, Poly] = {}
    for name, value in given.items():
        if isinstance(value, Tensor) and value.shape is not None:
            found |= {f"{name}.shape[{k}]": s.poly for k, s in enumerate(value.shape)}
        elif isinstance(value, Sym):
            found[name] = value.poly
    return found


def _substituted(size: Poly | None, atoms: Mapping[str, Poly]) -> Poly | None:
    for atom in sorted(size.atoms()) if size is not None else ():
        known = atoms.get(atom.partition("@")[0])
        if known is None or size is None:
            return None
        size = size.substitute(atom, known)
    return size


def _dtype(ctx: Context, key: str | None, given: Mapping[str, Value | None]) -> str | None:
    name, _, attribute = (key or "").partition(".")
    if attribute != "dtype":
        return key if key and DType(key, key).is_known else None
    value = given.get(name)
    return own_dtype(ctx, value).key if isinstance(value, Tensor) else None


def bound_to(ctx: Context, returned: Returned, text: str) -> Tensor:
    """The result of a helper, under its present name."""
    mentions = ctx.mentioned(text)
    versions = ",".join(f"{n}@{v}" for n, v in sorted(mentions))
    sizes = tuple(
        _returned_size(
            size, _size_text(text, k, returned.blocks, returned.folded), versions, mentions
        )
        for k, size in enumerate(returned.sizes or ())
    )
    ctx.facts.positive |= {atom for size in sizes if (atom := size.poly.single_atom)}
    shape = sizes or None
    key = returned.dtype
    tile = text if returned.folded else f"{text}{'[0]' * returned.blocks}"
    dtype = None if key is None else _spelled(ctx, key, tile)
    storage = Storage(
        text, shape, dtype, returned.buffer or None, mentions=mentions, given=True, written=True,
        is_value=returned.is_value, blocks=returned.blocks, folded=returned.folded,
        flat_name=text,
    )  # fmt: skip
    ctx.aliased.add(storage.site)
    return Tensor(storage, shape)


def _spelled(ctx: Context, key: str, text: str) -> DType:
    if DType(key, key).is_known:
        return DType(f"{ctx.alias('nl')}.{key}", key)
    return ctx.dtype(f"{text}.dtype", key)


def _returned_size(
    size: Poly | None, text: str, versions: str, mentions: frozenset[tuple[str, int]]
) -> Sym:
    if size is None:
        return Sym(Poly.atom(f"{text} {versions}"), text, names=mentions)
    if size.constant is not None:
        return Sym.number(size.constant)
    return Sym(size, text, names=mentions)


def as_tile(ctx: Context, value: Value, text: str) -> Value:
    """An item of what a helper returned: `pair[0]`."""
    return bound_to(ctx, value, text) if isinstance(value, Returned) else value
