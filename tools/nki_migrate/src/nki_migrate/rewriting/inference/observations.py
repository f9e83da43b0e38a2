"""Observed facts as the last source: they fill what the source, local inference and the user left.

Of a shape only the rank is taken: its sizes are spelled `x.shape[k]`, for any values in the run.
Which sizes and dtypes are equal is taken from the runs where the new instruction rejects
others by itself, or under an `assert` that is written in front of it: with other arguments the new
kernel stops, it never computes something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from nki_migrate.facts.observed import Observation
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Container, Parameter, Storage, Sym, Tensor, Unknown, Value
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.views.tensors import as_tensor, home, own_dtype

_NAMES = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*|\[[\w., :+*/%'\"-]*\])*")  # no call


def refined(ctx: Context, node: ast.expr, value: Value) -> Value:
    """The value with what the runs showed of the expression put in where nothing else told."""
    if ctx.observed is None or not isinstance(value, Unknown | Parameter | Tensor | Sym):
        return value
    if (seen := ctx.seen_at(node)) is None:
        return value
    if isinstance(value, Sym):
        _note_number(ctx, value.poly, seen)
        return value
    if seen.is_tensor and seen.rank == 0 and seen.memory is None:
        return _host_number(ctx, value, seen)
    if seen.is_tensor:
        return _tensor(ctx, node, value, seen)
    if seen.numbers is None and seen.kind is None:
        return _container(value, seen)
    return _number(ctx, node, value, seen)


# -- numbers


def _note_number(ctx: Context, poly: Poly, seen: Observation) -> None:
    atom, numbers = poly.single_atom, seen.numbers
    if atom is None or seen.kind is not int:
        return
    ctx.numbers.setdefault(atom, set()).update(v for run in seen.runs for v in run.values)
    if numbers is not None:
        ctx.sizes.setdefault(atom, {run: (int(n),) for run, n in numbers.items()})


def _number(ctx: Context, node: ast.expr, value: Value, seen: Observation) -> Value:
    """A compile-time number: the expression's own text, not its value in the run."""
    if isinstance(value, Parameter):
        atom = f"{value.name}@{value.version}"
        if seen.kind is not None:
            ctx.kinds[atom] = seen.kind
        _note_number(ctx, Poly.atom(atom), seen)
        return value
    if isinstance(value, Tensor) and seen.kind is not None:  # `mean[c]` of a list of numbers
        value = Unknown(text_of(ctx, node))
    if not isinstance(value, Unknown) or seen.kind is None or not value.text:
        return value
    if not _NAMES.fullmatch(value.text):
        return value
    names = ctx.mentioned(value.text)
    versions = ",".join(f"{n}@{v}" for n, v in sorted(names))
    poly = Poly.atom(f"{value.text} {versions}")
    _note_number(ctx, poly, seen)
    _say(ctx, f"`{value.text}` is of type {seen.kind.__name__}", seen)
    ctx.kinds[str(poly.single_atom)] = seen.kind
    return Sym(poly, value.text, is_float=seen.kind is float, names=names)


def _container(value: Value, seen: Observation) -> Value:
    """A parameter that was a string or a tuple in every run is not a tile."""
    is_host = all(run.values and not run.shapes for run in seen.runs)
    return Container(value.name) if isinstance(value, Parameter) and is_host else value


def _host_number(ctx: Context, value: Value, seen: Observation) -> Value:
    """A number of NumPy's, `np.float32(1 / n)`: its own text, of the kind that it was."""
    kinds = {d.startswith(("float", "bfloat")) for d in (seen.dtypes or {}).values()}
    if isinstance(value, Parameter) and len(kinds) == 1:
        ctx.kinds[f"{value.name}@{value.version}"] = float if kinds.pop() else int
    return value


def is_seen_float(ctx: Context, atom: str | None) -> bool | None:
    """Whether a parameter was a float in every run, or an int; None if nothing was seen."""
    kind = ctx.kinds.get(atom or "")
    if kind is None:
        return None
    ctx.basis.append(f"observed: `{(atom or '').partition('@')[0]}` is of type {kind.__name__}")
    return kind is float


# -- tensors


def _tensor(ctx: Context, node: ast.expr, value: Value, seen: Observation) -> Value:
    if isinstance(value, Parameter):
        return _parameter(ctx, value, seen)
    if isinstance(value, Tensor) and (value.dims is None or value.shape is not None):
        return _filled(ctx, value, seen)
    return _element(ctx, node, seen) or value


def _parameter(ctx: Context, value: Parameter, seen: Observation) -> Tensor:
    if _has_rank(seen) and seen.rank is not None:
        ctx.before.ranks[value.name] = seen.rank  # what subscripts told was a lower bound
    tensor = as_tensor(ctx, value)
    assert tensor is not None
    if _has_rank(seen) and not tensor.storage.basis:
        tensor.storage.basis = _say(ctx, f"`{value.name}` has {seen.rank} dimensions", seen)
    filled = _filled(ctx, tensor, seen)
    for name, bound in list(ctx.scope.values.items()):
        if bound is tensor:
            ctx.scope.values[name] = filled
    return filled


def _element(ctx: Context, node: ast.expr, seen: Observation) -> Tensor | None:
    """A tile in a list, a tuple or an object: `tiles[i]`, `state.tile`."""
    text = text_of(ctx, node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        base = ctx.seen_at(node.value)
        if base is not None and base.is_tensor and _may_be_list(base):
            return None  # `blocks[i, j]` of a list of lists
    if not _NAMES.fullmatch(text) or _may_be_list(seen):
        return None
    storage = Storage(text, None, None, None, mentions=ctx.mentioned(text), given=True)
    return _filled(ctx, Tensor(storage, None), seen)


def _may_be_list(seen: Observation) -> bool:
    """On chip more than two dimensions may begin with block dimensions, which become a list."""
    return seen.memory != "hbm" and (seen.rank is None or seen.rank > 2)


def _has_rank(seen: Observation) -> bool:
    return bool(seen.rank) and not _may_be_list(seen)


def _text_here(ctx: Context, storage: Storage) -> str | None:
    try:
        return home(ctx, storage)
    except Cannot:
        return None


def _filled(ctx: Context, tensor: Tensor, seen: Observation) -> Tensor:
    storage = tensor.storage
    text = _text_here(ctx, storage)
    if text and tensor.dims is None and tensor.shape is None and _has_rank(seen):
        mentions = ctx.mentioned(text)
        shape = tuple(
            Sym(Poly.atom(f"{text}.shape[{k}]"), f"{text}.shape[{k}]", names=mentions)
            for k in range(seen.rank or 0)
        )
        ctx.facts.positive |= {s.text for s in shape}
        storage.shape = shape
        storage.basis = _say(ctx, f"`{text}` has {seen.rank} dimensions", seen)
        tensor = replace(tensor, shape=shape)
    if tensor.dims is None and storage.buffer is None and seen.memory is not None:
        storage.buffer = seen.memory
        storage.basis = _say(ctx, f"`{storage.name}` is in {seen.memory}", seen)
    if seen.dtypes is not None:
        with suppress(Cannot):
            ctx.seen_dtypes.setdefault(own_dtype(ctx, tensor).key, seen.dtypes)
    if storage.basis and storage.basis not in ctx.basis:
        ctx.basis.append(storage.basis)
    note_sizes(ctx, tensor, seen)
    return tensor


def note_sizes(ctx: Context, tensor: Tensor, seen: Observation) -> None:
    """Remember which sizes the dimensions had that have a name."""
    if tensor.shape is None or len(tensor.shape) != seen.rank:
        return
    for axis, size in enumerate(tensor.shape):
        atom = size.poly.single_atom
        if atom is not None:
            ctx.sizes.setdefault(atom, seen.sizes(axis))


# -- what was equal


def seen_same(ctx: Context, a: Poly, b: Poly) -> bool:
    """Whether two sizes were equal in every run, or are in every call in the file."""
    if _representative(ctx, a) == _representative(ctx, b):
        return True
    x, y = _values(ctx, a), _values(ctx, b)
    shared = x.keys() & y.keys()
    return bool(shared) and all(x[run] == y[run] for run in shared)


def _representative(ctx: Context, poly: Poly) -> Poly:
    """The same number for all that every call in the file makes equal."""
    poly = ctx.facts.reduced(poly)
    for atom in sorted(poly.atoms() & ctx.alike.keys()):
        poly = poly.substitute(atom, ctx.alike[atom])
    return poly


def in_representatives(ctx: Context, value: Value) -> Value:
    """A tile or a number with its sizes so written that equal ones are the same."""
    if isinstance(value, Sym):
        return replace(value, poly=_representative(ctx, value.poly))
    if not isinstance(value, Tensor):
        return value
    with suppress(Cannot):
        own_dtype(ctx, value)
    if value.shape is None:
        return value
    sizes = (replace(s, poly=_representative(ctx, s.poly)) for s in value.shape)
    return value.with_shape(tuple(sizes))


def differing_sizes(ctx: Context, a: Poly, b: Poly) -> str | None:
    """Two sizes in a run where they differ; None where no run shows it."""
    x, y = _values(ctx, a), _values(ctx, b)
    if all(x[run] == y[run] for run in x.keys() & y.keys()):
        return None
    numbers = [sorted({n for values in seen.values() for n in values}) for seen in (x, y)]
    return " and ".join(" or ".join(map(str, each)) for each in numbers)


def seen_one(ctx: Context, size: Poly) -> bool:
    """Whether a size was 1 in every run."""
    if _representative(ctx, size).constant == 1:
        return True
    values = _values(ctx, size)
    return bool(values) and all(v == (1,) for v in values.values())


def seen_programs(ctx: Context, node: ast.Call) -> int:
    """How many programs a grid had at least, by what a program id was; 0 if no run came by."""
    return max((n + 1 for n in seen_counts(ctx, node)), default=0)


def seen_counts(ctx: Context, node: ast.Call) -> tuple[int, ...]:
    """Results of a call that gives a compile-time number, in the runs."""
    seen = ctx.seen_at(node)
    values = [v for run in seen.runs for v in run.values] if seen is not None else []
    return tuple(v for v in values if isinstance(v, int))


def is_seen_core(ctx: Context, node: ast.Call) -> bool:
    """Whether a program id was 0 or 1 in every run: the number of one of the two cores."""
    seen = ctx.seen_at(node)
    if seen is None:
        return was_without_grid(ctx)
    if not all(run.values and set(run.values) <= {0, 1} for run in seen.runs):
        return False
    _say(ctx, "a grid of one axis with at most two programs", seen)
    return True


def was_without_grid(ctx: Context) -> bool:
    """Whether `nl.program_ndim()` was 0 in every run of the function."""
    calls = [n for n in ast.walk(ctx.function.node) if isinstance(n, ast.Call)]
    asked = (n for n in calls if ctx.index.canonical(n.func) == "nl.program_ndim")
    axes = [count for node in asked for count in seen_counts(ctx, node)]
    return bool(axes) and not any(axes)


def most_seen(ctx: Context, size: Poly) -> int:
    """The largest that a number is, or was in a run; 0 if that is unknown."""
    known = ctx.facts.reduced(size).constant
    if known is not None:
        return known
    found = seen_maximum(ctx, size)
    if found is not None:
        ctx.basis.append(f"{ctx.witness}: up to {found} tiles")
    return found or 0


def seen_maximum(ctx: Context, size: Poly) -> int | None:
    """The largest that a number was in the runs."""
    return max((n for numbers in _values(ctx, size).values() for n in numbers), default=None)


def _values(ctx: Context, poly: Poly) -> Mapping[int, tuple[int, ...]]:
    """Values of a number, per document; empty where an atom of it was not seen."""
    poly = ctx.facts.reduced(poly)
    atom = poly.single_atom
    if atom is not None and atom in ctx.sizes:
        return ctx.sizes[atom]
    runs = {run for sizes in ctx.sizes.values() for run in sizes}
    found = {run: _value(ctx, poly, run) for run in sorted(runs)}
    return {run: (number,) for run, number in found.items() if number is not None}


def _value(ctx: Context, poly: Poly, run: int) -> int | None:
    total = 0
    for monomial, coefficient in poly.terms:
        product = coefficient
        for atom in monomial:
            number = _atom_value(ctx, atom, run)
            if number is None:
                return None
            product *= number
        total += product
    return total


def _atom_value(ctx: Context, atom: str, run: int) -> int | None:
    quotient = ctx.facts.quotients.get(atom)
    if quotient is not None:
        n, d = _value(ctx, quotient.numerator, run), _value(ctx, quotient.divisor, run)
        return None if n is None or not d else -(-n // d) if quotient.up else n // d
    values = ctx.sizes.get(atom, {}).get(run, ())
    return values[0] if len(values) == 1 else None


# -- asserts


def guard(ctx: Context, condition: str, source: str | None = None) -> None:
    """`assert condition` in front of the statement, once per block."""
    ctx.basis.append(f"{source or ctx.witness}: {condition}")
    key = f"{condition} {sorted(ctx.mentioned(condition))}"
    if not any(key in block for block in ctx.guards):
        ctx.guards[-1].add(key)
        ctx.emit(f"assert {condition}")


def _say(ctx: Context, fact: str, seen: Observation) -> str:
    text = f"observed in {len(seen.runs)} run{'s' * (len(seen.runs) > 1)}: {fact}"
    if text not in ctx.basis:
        ctx.basis.append(text)
    return text
