"""Reductions along free axes, and over loops."""

from __future__ import annotations

import ast
from dataclasses import replace

from nki_migrate.facts.values import Sym, Tensor
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import (
    Result,
    destination,
    emit,
    note_write,
    result_of,
)
from nki_migrate.rewriting.destinations.regions import cut, mask_region, valid_limits, valid_region
from nki_migrate.rewriting.inference.promotion import float32, is_truth, reject_truth_values
from nki_migrate.rewriting.operations.instructions import (
    axes_of,
    instruction,
    product,
    reduced_shape,
)
from nki_migrate.rewriting.operations.operands import operator_text
from nki_migrate.rewriting.operations.operators import binary, copy_into, two_tiles
from nki_migrate.rewriting.views.masks import Region
from nki_migrate.rewriting.views.tensors import (
    as_tensor,
    hint_of,
    is_whole,
    own_dtype,
    rank_of,
    storage_dims,
    tile_of,
)
from nki_migrate.rewriting.views.view_text import spell
from nki_migrate.rules.rule import Hooks

_OPERATORS = {
    "nl.sum": "add", "nl.max": "maximum", "nl.min": "minimum", "nl.prod": "multiply",
}  # fmt: skip


def _rewrite(ctx: Context, site: CallSite) -> Tensor:
    """NKI1228: `nl` reductions are `nisa.tensor_reduce`."""
    op = _OPERATORS[site.name]
    ctx.report("NKI1228", site.node, f"`{site.name}` is tensor_reduce with `nl.{op}`")
    data = _operand(ctx, site)
    result = result_of(ctx, site, data.shape)
    return _reduced(
        ctx, site, op, data, replace(result, dtype=result.dtype or own_dtype(ctx, data))
    )


def _rewrite_instruction(ctx: Context, site: CallSite) -> Tensor:
    """NKI1194: `nisa.tensor_reduce`; over axes with others between them as `nl.max` is."""
    data, op = tile_of(ctx, site, "data"), site.get("op")
    if data is None or op is None or data.shape is None or not _has_gaps(ctx, site, data):
        return instruction(ctx, site)
    ctx.report("NKI1194", site.node, "`nisa.tensor_reduce` reduces the last axes")
    result = result_of(ctx, site, data.shape)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, data)
    name = operator_text(ctx, op).rpartition(".")[2]
    return _reduced(ctx, site, name, data, replace(result, dtype=dtype))


def _has_gaps(ctx: Context, site: CallSite, data: Tensor) -> bool:
    axes, rank = axes_of(ctx, site.get("axis"), data, site.node), rank_of(data)
    return axes != set(range(rank - len(axes), rank))


def _reduced(ctx: Context, site: CallSite, op: str, data: Tensor, result: Result) -> Tensor:
    """`nisa.tensor_reduce(dst, op, data, axis)`; a mask cuts the data, its rows also the result."""
    region = result.region or valid_region(ctx, data)
    shown, place = _reduced_axes_last(ctx, site, data)
    keepdims, axis = site.is_set("keepdims"), site.get("axis")
    shape = reduced_shape(ctx, data, axis, keepdims, site.node)
    if op == "add" and is_truth(data.dtype) and is_truth(result.dtype):
        op = "maximum"  # a sum of truth values is a truth value in 0.1: whether any holds
    result = replace(result, hint=hint_of(data, site.name[3:]))
    dst = destination(ctx, result, shape, computed=region.of_rows(shape))
    limits = cut(data, region.limits, rank_of(data))
    ctx.use(data, "op")
    assert axis is not None
    arguments = [
        ("dst", spell(ctx, dst, region.rows)),
        ("op", f"{ctx.alias('nl')}.{op}"),
        ("data", spell(ctx, shown, {place[a]: n for a, n in limits.items()})),
        ("axis", text_of(ctx, axis) if shown is data else _last_axes(ctx, axis, data, site.node)),
    ]
    arguments += _flags(ctx, site, ("keepdims",) if shown is data else ())
    ctx.emit_call("tensor_reduce", arguments, region.guards)
    note_write(ctx, dst, region.rows, "other")
    return dst


def _flags(ctx: Context, site: CallSite, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """The flags of a reduction that are set, and whether it is negated."""
    given = {name: site.get(name) for name in (*names, "negate")}
    return [(k, text_of(ctx, v)) for k, v in given.items() if v is not None and site.is_set(k)]


def _operand(ctx: Context, site: CallSite) -> Tensor:
    data = tile_of(ctx, site, "x")
    if data is None:
        node = site.get("x") or site.node
        raise Cannot("NKI1228", "what is reduced is not known to be a tile", node)
    return data


def _reduced_axes_last(ctx: Context, site: CallSite, data: Tensor) -> tuple[Tensor, dict[int, int]]:
    """The machine reduces the last free axes only: others are moved there by the access pattern."""
    axes = axes_of(ctx, site.get("axis"), data, site.node)
    rank = rank_of(data)
    order = [*(a for a in range(rank) if a not in axes), *sorted(axes)]
    place = {a: i for i, a in enumerate(order)}
    if order == list(range(rank)):
        return data, place
    dims = storage_dims(data)
    if dims is None or data.shape is None:
        raise Cannot("NKI1228", "a reduction over axes of a tile of unknown shape", site.node)
    moved = tuple(replace(d, terms=tuple(sorted((place[a], c) for a, c in d.terms))) for d in dims)
    shape = tuple(data.shape[a] for a in order)
    return replace(data, shape=shape, dims=moved, written=None), place


def _last_axes(ctx: Context, axis: ast.expr, data: Tensor, node: ast.AST) -> str:
    count = len(axes_of(ctx, axis, data, node))
    rank = len(data.shape or ())
    return f"[{', '.join(str(a) for a in range(rank - count, rank))}]"


def _rewrite_mean(ctx: Context, site: CallSite) -> Tensor:
    """`nl.mean(x, axis)`: the sum in float32, then 1 / n."""
    ctx.report("NKI1229", site.node, "`nl.mean` is a sum and a multiplication")
    data = _operand(ctx, site)
    if data.shape is None:
        raise Cannot("NKI1229", "a mean over a tile of unknown shape", site.node)
    axes = axes_of(ctx, site.get("axis"), data, site.node)
    _reject_partial_rows(ctx, site, data, axes)
    count = product(tuple(s for i, s in enumerate(data.shape) if i in axes))
    region = mask_region(ctx, site, data.shape)
    total = _reduced(ctx, site, "add", data, Result(site.node, dtype=float32(ctx), region=region))
    dtype = as_dtype(ctx, site.get("dtype"))
    reject_truth_values(own_dtype(ctx, data), dtype, "the mean", site.node, "NKI1229")
    result = Result(site.node, site.target, dtype or own_dtype(ctx, data))
    factor = Sym(count.poly, f"1.0 / {ctx.spell(count, 3)}", 2, is_float=True)
    return binary(ctx, "multiply", total, factor, result)


def _rewrite_softmax(ctx: Context, site: CallSite) -> Tensor:
    """`nl.softmax(x, axis)`: exp(x - max(x)) / sum, in float32."""
    node, data = site.node, _rows_of(ctx, site)
    ctx.report("NKI1229", node, "`nl.softmax` is two reductions, an exponential and a product")
    if site.get("compute_dtype") is not None:
        raise Cannot("NKI1229", "`nl.softmax` with a dtype of its own to compute in", node)
    assert data.shape is not None
    region = mask_region(ctx, site, data.shape) or valid_region(ctx, data)
    column, nl = (data.shape[0], _ONE), ctx.alias("nl")

    def made(word: str, shape: tuple[Sym, ...]) -> Tensor:
        return temporary(ctx, hint_of(data, word), shape, float32(ctx), "sbuf", node)

    top, powers = made("neg_max", column), made("exp", data.shape)
    how = [("op", f"{nl}.maximum"), ("data", data), ("axis", "1"), ("negate", "True")]
    emit(ctx, "tensor_reduce", top, how, region, reduces=True)
    emit(ctx, "activation", powers, [("op", f"{nl}.exp"), ("data", data), ("bias", top)], region)
    total = made("sum", column)
    how = [("op", f"{nl}.add"), ("data", powers), ("axis", "1")]
    emit(ctx, "tensor_reduce", total, how, region, reduces=True)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, data)
    return two_tiles(ctx, "divide", powers, total, Result(node, site.target, dtype, region))


def _rewrite_rms_norm(ctx: Context, site: CallSite) -> Tensor:
    """`nl.rms_norm(x, w, axis, n, epsilon)`: x / sqrt(sum(x²) / n + epsilon) · w, in float32."""
    node, data, weight = site.node, _rows_of(ctx, site), tile_of(ctx, site, "w")
    count = site.get("n")
    if weight is None or count is None or site.get("compute_dtype") is not None:
        text = "`nl.rms_norm` without a weight, or with a dtype of its own to compute in"
        raise Cannot("NKI1229", text, node)
    ctx.report("NKI1229", node, "`nl.rms_norm` is a sum of squares, a root and two products")
    assert data.shape is not None
    region = mask_region(ctx, site, data.shape) or valid_region(ctx, data)
    nl, kind = ctx.alias("nl"), float32(ctx)

    def made(word: str, width: Sym) -> Tensor:
        shape = (data.shape[0], width)  # type: ignore[index]
        return temporary(ctx, hint_of(data, word), shape, kind, "sbuf", node)

    squares, scale = made("squares", data.shape[1]), made("rms", _ONE)
    emit(ctx, "activation", squares, [("op", f"{nl}.square"), ("data", data)], region)
    how = [("op", f"{nl}.add"), ("data", squares), ("axis", "1")]
    emit(ctx, "tensor_reduce", scale, how, region, reduces=True)
    epsilon = site.get("epsilon")
    shift = "1e-6" if epsilon is None else text_of(ctx, epsilon)
    rows = replace(region, limits=region.rows)
    mean = [("op0", f"{nl}.multiply"), ("operand0", f"1.0 / {_atom_text(ctx, count)}")]
    mean += [("op1", f"{nl}.add"), ("operand1", shift)]
    emit(ctx, "tensor_scalar", scale, [("data", scale), *mean], rows)
    emit(ctx, "activation", scale, [("op", f"{nl}.rsqrt"), ("data", scale)], rows)
    normal = two_tiles(ctx, "multiply", data, scale, Result(node, NOWHERE, kind, region))
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, data)
    return two_tiles(ctx, "multiply", normal, weight, Result(node, site.target, dtype, region))


def _atom_text(ctx: Context, node: ast.expr) -> str:
    """An expression as the divisor of a quotient."""
    text = text_of(ctx, node)
    return text if isinstance(node, ast.Name | ast.Constant) else f"({text})"


def _rows_of(ctx: Context, site: CallSite) -> Tensor:
    """A tile of two dimensions that is reduced along its rows."""
    data = _operand(ctx, site)
    if (
        data.shape is None
        or len(data.shape) != 2
        or axes_of(ctx, site.get("axis"), data, site.node) != {1}
    ):
        text = f"`{site.name}` of something else than the rows of a tile of known shape"
        raise Cannot("NKI1229", text, site.node)
    return data


def _rewrite_var(ctx: Context, site: CallSite) -> Tensor:
    """`nl.var(x, axis)`: the mean of the squared distances from the mean, in float32."""
    node, data = site.node, _rows_of(ctx, site)
    ctx.report("NKI1229", node, "`nl.var` is two means")
    assert data.shape is not None
    _reject_partial_rows(ctx, site, data, {1})
    region, kind = valid_region(ctx, data), float32(ctx)
    factor = Sym(data.shape[1].poly, f"1.0 / {ctx.spell(data.shape[1], 3)}", 2, is_float=True)
    axis = [("axis", "1")]

    def mean(of: Tensor, result: Result) -> Tensor:
        total = temporary(
            ctx,
            hint_of(of, "sum"),
            (data.shape[0], _ONE),
            kind,
            "sbuf",
            node,  # type: ignore[index]
        )
        how = [("op", f"{ctx.alias('nl')}.add"), ("data", of), *axis]
        emit(ctx, "tensor_reduce", total, how, region, reduces=True)
        return binary(ctx, "multiply", total, factor, result)

    center = mean(data, Result(node, dtype=kind, hint="mean"))
    distance = two_tiles(ctx, "subtract", data, center, Result(node, dtype=kind))
    square = two_tiles(ctx, "multiply", distance, distance, Result(node, dtype=kind))
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, data)
    return mean(square, Result(node, site.target, dtype))


def _reject_partial_rows(ctx: Context, site: CallSite, data: Tensor, axes: set[int]) -> None:
    """A count of elements is one of all rows: no row may be cut short."""
    masked = mask_region(ctx, site, data.shape)
    limits = {**valid_limits(ctx, data), **(masked.limits if masked else {})}
    if axes & limits.keys() or (masked is not None and masked.guards):
        raise Cannot("NKI1229", "a mean over partly filled rows", site.node)


def _message(canonical: str) -> str:
    return f"`{canonical}` is several instructions; from 0.3 on the call itself runs, too"


_ONE = Sym.number(1)
_KNOWN = {"x", "op", "loop_indices", "dtype", "mask", "name"}
_RULE = "NKI1253"


def _rewrite_loop_reduce(ctx: Context, site: CallSite) -> Tensor:
    """`t[…] = nl.loop_reduce(x, np.add, loop_indices=[i])` → `t[…] = x + t[…]`."""
    view = site.target.view
    x = as_tensor(ctx, ctx.value_of(site.arguments["x"]))
    op = site.get("op")
    if view is None or x is None or op is None:
        raise Cannot(_RULE, "`nl.loop_reduce` that is not assigned to part of a tensor", site.node)
    if site.get("mask") is not None or set(site.arguments) - _KNOWN:
        raise Cannot(_RULE, "`nl.loop_reduce` with a mask", site.node)
    is_set = view.storage.filled or _is_set_before(ctx, site.node)
    loop = None if is_set else _first_turn(ctx, site, view)
    if not is_set and loop is None:
        message = "`nl.loop_reduce` into a tensor that may hold nothing before its first turn"
        raise Cannot(_RULE, message, site.node)
    own = own_dtype(ctx, view)
    dtype = as_dtype(ctx, site.get("dtype"))
    if dtype is not None and dtype.key != own.key:
        raise Cannot(_RULE, "`nl.loop_reduce` that rounds to another dtype on the way", site.node)
    name = operator_text(ctx, op).rpartition(".")[2]
    ctx.report(_RULE, site.node, f"the destination is the other operand: `{name}` in place")
    ctx.use(x, "op")
    result = Result(site.node, Target(view=view), own)
    if loop is None:
        return two_tiles(ctx, name, x, view, result)
    rank = rank_of(view)
    copy_into(ctx, x, replace(result, region=Region({}, (f"{loop} == 0",), rank)))
    return two_tiles(ctx, name, x, view, replace(result, region=Region({}, (f"{loop} > 0",), rank)))


def _first_turn(ctx: Context, site: CallSite, view: Tensor) -> str | None:
    """The variable of the one loop over which a fresh tile is reduced; it counts from 0."""
    indices = site.get("loop_indices")
    statement = ctx.index.statement_of(site.node)
    loop = ctx.index.parent(statement) if statement is not None else None
    match loop, indices:
        case (
            ast.For(target=ast.Name(id=name), iter=ast.Call(args=[_])),
            ast.List(elts=[ast.Name(id=index)]) | ast.Tuple(elts=[ast.Name(id=index)]),
        ) if name == index and not view.storage.written and is_whole(ctx, view):
            is_outside = ctx.loops == (*view.storage.loops, ctx.site(loop))
            return name if is_outside and ctx.site(loop) in ctx.sure_loops else None
    return None


def _is_set_before(ctx: Context, node: ast.expr) -> bool:
    """Whether the statement right before the loops gives the destination a number."""
    statement = ctx.index.statement_of(node)
    target = getattr(statement, "targets", [None])[0]
    around = [a for a in ctx.index.ancestors(node) if isinstance(a, ast.For)]
    rebound = {
        n.id for loop in around[:1] for n in ast.walk(loop)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }  # fmt: skip
    if target is None or not around or rebound & {getattr(n, "id", "") for n in ast.walk(target)}:
        return False
    body = getattr(ctx.index.parent(around[0]), "body", [])
    at = body.index(around[0]) if around[0] in body else 0
    first = body[at - 1] if at else None
    return (
        isinstance(first, ast.Assign)
        and isinstance(first.value, ast.Constant)
        and ast.dump(first.targets[0]) == ast.dump(target)
    )


HOOKS = {
    "NKI1194": Hooks(calls={"nisa.tensor_reduce": _rewrite_instruction}),
    "NKI1228": Hooks(calls=dict.fromkeys(_OPERATORS, _rewrite)),
    "NKI1229": Hooks(
        calls={
            "nl.mean": _rewrite_mean,
            "nl.softmax": _rewrite_softmax,
            "nl.var": _rewrite_var,
            "nl.rms_norm": _rewrite_rms_norm,
        },
        message=_message,
    ),
    "NKI1253": Hooks(calls={"nl.loop_reduce": _rewrite_loop_reduce}),
}
