"""Reading subscripts: from index tensors, slices and numbers to a view.

A view maps each dimension of its storage to an affine function of result axes (`Dim`);
`views` writes it down. Rules NKI1150–NKI1159 (migration rules, section 1.4).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from nki_migrate.facts.values import (
    Const,
    Dim,
    Grid,
    Index,
    Parameter,
    Ref,
    Storage,
    Sym,
    Tensor,
    Unknown,
    Value,
)
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.gathers import gathered

__all__ = ["access", "as_tensor", "dimension", "slice_of", "view_of"]

_PATH = re.compile(r"[A-Za-z_]\w*([.\[][\w.\[\], +*-]*)?")  # `tiles[k]`, `state.tile`
_ONE, _ZERO = Sym.number(1), Sym.number(0)


def as_tensor(ctx: Context, value: Value) -> Tensor | None:
    """The value as a tensor; a parameter becomes one by being used as one."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Unknown) and value.rule is None and _PATH.fullmatch(value.text):
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
    from nki_migrate.facts.symbols import Poly

    atom = f"{name}.shape[{axis}]"
    ctx.facts.positive.add(atom)
    version = ctx.scope.versions.get(name, 0) if version is None else version
    return Sym(Poly.atom(atom), atom, names=frozenset({(name, version)}))


# -- reading a subscript


def access(ctx: Context, base: Tensor, node: ast.Subscript) -> Tensor:
    """The view that `base[...]` is."""
    from nki_migrate.lower.evaluate import value_of
    from nki_migrate.lower.source_text import text_of

    if base.dims is not None and isinstance(node.value, ast.Subscript):
        ctx.report("NKI1158", node, "nested subscripts become one")
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    values: list[Value | ast.Slice]
    values = [p if isinstance(p, ast.Slice) else value_of(ctx, p) for p in parts]
    if len(values) == 1 and isinstance(grid := values[0], Grid):  # `x[nl.mgrid[0:4, 0:8]]`
        ctx.report("NKI1154", node, "a grid of index tensors becomes slices")
        values = list(grid.axes)
    if any(isinstance(v, Const) and v.value is Ellipsis for v in values):
        spread = _without_ellipsis(base, values, node)
        if spread is None:
            return replace(base, written=base.written)
        values = spread
    _note_rank(ctx, base, values)
    if base.shape is not None and len(values) > len(base.shape):
        rank = len(base.shape)
        raise Cannot("NKI1157", f"{len(values)} indices for a tensor of rank {rank}", node)
    if base.storage.gather is not None:
        raise Cannot("NKI1271", "part of an access whose rows a tile picks", node)
    if (picked := gathered(ctx, base, values, node)) is not None:
        return picked
    if any(isinstance(v, Index) for v in values):
        return _advanced(ctx, base, values, node)
    try:
        result = _basic(ctx, base, values, node)
    except Cannot as problem:
        if (
            base.dims is not None
            or base.storage.blocks
            or problem.rule not in {"NKI1157", "NKI1152"}
        ):
            raise
        result = Tensor(
            base.storage, None, ()
        )  # slices of something of unknown size stay as written
    if base.dims is None and not base.storage.blocks:
        text = text_of(ctx, node)
        return replace(result, written=text[len(text_of(ctx, node.value)) :])
    return result


def _note_rank(ctx: Context, base: Tensor, values: list[Value | ast.Slice]) -> None:
    """A parameter has as many dimensions as indices, if there are several and not all are numbers.

    `x[i]` says nothing: it may be an element, a row or a matrix.
    """
    name = base.storage.name
    if base.dims is not None or base.storage.flat_name != name or len(values) < 2:
        return
    if base.storage.mentions is None:  # `x = x.reshape(…)`: the name, but not the parameter
        return
    if any(isinstance(v, ast.Slice | Index) or _is_ds(v) for v in values):
        ctx.seen.ranks[name] = max(len(values), ctx.seen.ranks.get(name, 0))


def _is_ds(value: Value | ast.Slice) -> bool:
    return isinstance(value, Const) and isinstance(value.value, tuple)


def _without_ellipsis(
    base: Tensor, values: list[Value | ast.Slice], node: ast.Subscript
) -> list[Value | ast.Slice] | None:
    """`...` written out as whole slices; None if the subscript is nothing else."""
    if len(values) == 1:
        return None
    if base.shape is None:
        raise Cannot("NKI1157", "`...` in a subscript of a tensor of unknown rank", node)
    at = next(i for i, v in enumerate(values) if isinstance(v, Const) and v.value is Ellipsis)
    fill = len(base.shape) - (len(values) - 1)
    return [*values[:at], *[ast.Slice()] * fill, *values[at + 1 :]]


def _advanced(
    ctx: Context, base: Tensor, values: list[Value | ast.Slice], node: ast.Subscript
) -> Tensor:
    """A subscript with index tensors: the result has the axes of their broadcast."""
    ctx.require("NKI1150")
    indices = [v for v in values if isinstance(v, Index)]
    rank = max(len(i.extents) for i in indices)
    shape = tuple(
        _broadcast_extent(ctx, [_axis(i, a, rank) for i in indices], node) for a in range(rank)
    )
    new: list[Dim] = []
    for value in values:
        if isinstance(value, Index):
            shift = rank - len(value.extents)
            new.append(Dim(value.offset, tuple((a + shift, c) for a, c in value.terms)))
        elif isinstance(number := _number(ctx, value), Sym):
            new.append(Dim(number))
        elif isinstance(value, ast.Slice) and _is_colon(value) and base.shape is not None:
            axis = len(shape)
            size = base.shape[len(new)]
            shape = (*shape, size)
            new.append(Dim(_ZERO, ((axis, _ONE),)))
        else:
            raise _not_affine(value, node)
    _report_index_rules(ctx, new, shape, node)
    missing = 0 if base.shape is None else len(base.shape) - len(new)
    for k in range(missing):
        assert base.shape is not None
        shape = (*shape, base.shape[len(base.shape) - missing + k])
        new.append(Dim(_ZERO, ((len(shape) - 1, _ONE),)))
    return view_of(base, tuple(new), shape)


def _axis(index: Index, axis: int, rank: int) -> Sym:
    own = axis - (rank - len(index.extents))
    return index.extents[own] if own >= 0 else _ONE


def _broadcast_extent(ctx: Context, extents: list[Sym], node: ast.AST) -> Sym:
    large = [e for e in extents if e.value != 1] or [_ONE]
    if not all(ctx.facts.same(e.poly, large[0].poly) for e in large):
        sizes = ", ".join(e.text for e in large)
        raise Cannot("NKI1150", f"index tensors of different extents in one axis: {sizes}", node)
    return large[0]


def _is_colon(node: ast.Slice) -> bool:
    return node.lower is None and node.upper is None and node.step is None


def _not_affine(value: Value | ast.Slice, node: ast.AST) -> Cannot:
    if isinstance(value, Tensor):
        return Cannot("NKI1271", "an index that is itself a tensor (gather or scatter)", node)
    if isinstance(value, Unknown) and value.rule:
        return Cannot(value.rule, value.text, node)
    return Cannot("NKI1150", "an index that is not affine in index tensors and numbers", node)


def _number(ctx: Context, value: Value | ast.Slice) -> Sym | None:
    from nki_migrate.lower.source_text import as_number

    return None if isinstance(value, ast.Slice) else as_number(ctx, value)


@dataclass(frozen=True, slots=True)
class _IndexRule:
    """Under which rule a subscript with such dimensions is rewritten; `order` is of their axes."""

    id: str
    message: str
    holds: Callable[[list[Dim], list[int]], bool]


_INDEX_RULES = (
    _IndexRule(
        "NKI1153",
        "two index tensors folded into one dimension",
        lambda dims, order: any(len(d.terms) > 1 for d in dims),
    ),
    _IndexRule(
        "NKI1156",
        "the same index axis in two dimensions",
        lambda dims, order: len(set(order)) < len(order),
    ),
    _IndexRule(
        "NKI1155",
        "index tensors in permuted order",
        lambda dims, order: order != sorted(order),
    ),
    _IndexRule(
        "NKI1152",
        "a scaled index tensor is a strided slice",
        lambda dims, order: any(c.value != 1 for d in dims for _, c in d.terms),
    ),
    _IndexRule(
        "NKI1151",
        "an index tensor with an offset is a slice",
        lambda dims, order: any(d.offset.value != 0 and d.terms for d in dims),
    ),
    _IndexRule("NKI1150", "index tensors are slices", lambda dims, order: True),
)
"""The first that holds is reported."""


def _report_index_rules(
    ctx: Context, dims: list[Dim], shape: tuple[Sym, ...], node: ast.Subscript
) -> None:
    """Say under which rules the subscript is rewritten."""
    order = [a for d in dims for a, _ in d.terms]
    rule = next(r for r in _INDEX_RULES if r.holds(dims, order))
    ctx.report(rule.id, node, rule.message)


def _basic(
    ctx: Context, base: Tensor, values: list[Value | ast.Slice], node: ast.Subscript
) -> Tensor:
    """A subscript of slices and integers."""
    dims: list[Dim] = []
    shape: list[Sym] = []
    known = base.shape is not None
    for k, value in enumerate(values):
        size = base.shape[k] if base.shape is not None else None
        sliced = slice_of(ctx, value, size, node)
        if sliced is not None:
            start, extent, step = sliced
            dims.append(Dim(start, ((len(shape), step),)))
            shape.append(extent)
            continue
        number = _number(ctx, value)
        if number is None:
            raise _not_affine(value, node)
        dims.append(Dim(number))
    if known:
        for size in (base.shape or ())[len(values) :]:
            dims.append(Dim(_ZERO, ((len(shape), _ONE),)))
            shape.append(size)
    if not known and not shape:  # numbers only, of something whose rank nobody told
        return Tensor(base.storage, None, tuple(dims))
    return view_of(base, tuple(dims), _at_least_2d(base, dims, shape))


def _at_least_2d(base: Tensor, dims: list[Dim], shape: list[Sym]) -> tuple[Sym, ...]:
    """On chip an integer keeps size 1 where the result would have fewer than two axes (NKI1149).

    0.1 gives a loaded row of HBM the same (P, 1) form, so 1-D results are written (n, 1) here.
    """
    if base.storage.blocks and len(dims) <= base.storage.blocks:
        return tuple(shape)
    while len(shape) < 2:
        shape = [*shape, _ONE]
    return tuple(shape)


def slice_of(
    ctx: Context, value: Value | ast.Slice, size: Sym | None, node: ast.AST
) -> tuple[Sym, Sym, Sym] | None:
    """(start, extent, step) of `a:b:c` or `nl.ds(start, size)`; None if it is neither."""
    from nki_migrate.lower.evaluate import value_of
    from nki_migrate.lower.source_text import as_number

    if isinstance(value, Ref) and value.name == "nl.ds":
        return None
    if isinstance(value, Const) and isinstance(value.value, tuple):  # nl.ds, evaluated
        start, extent = value.value
        return start, extent, _ONE
    if not isinstance(value, ast.Slice):
        return None

    def number(part: ast.expr | None, default: Sym | None) -> Sym:
        if part is None:
            if default is None:
                raise Cannot("NKI1157", "an open slice of a dimension of unknown size", node)
            return default
        found = as_number(ctx, value_of(ctx, part))
        if found is None:
            raise Cannot("NKI1270", "a slice bound that is not a compile-time number", node)
        return found

    start, step = number(value.lower, _ZERO), number(value.step, _ONE)
    stop = number(value.upper, size)
    if stop.value is not None and stop.value < 0 and size is not None:
        stop = size + stop
    if step.value == 1:
        return start, stop - start, _ONE
    width = stop - start
    if step.value is None or step.value < 1:
        raise Cannot("NKI1152", "a slice with a step that is not a positive literal", node)
    extent = Sym(
        ctx.facts.quotient(width.poly, step.poly, up=True),
        f"({(width + Sym.number(step.value - 1)).text}) // {step.value}",
        level=2,
        names=width.names,
    )
    return start, extent if extent.poly.constant is None else Sym.number(extent.poly.constant), step


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
