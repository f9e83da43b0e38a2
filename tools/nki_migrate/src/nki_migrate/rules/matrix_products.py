"""Matrix products and transposes: results in PSUM."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from neuroncore.targets import resolve_target
from nki_migrate.facts.values import Mask, Part, Sym, Tensor
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, text_of
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import Result, destination, emit, note_write
from nki_migrate.rewriting.destinations.psum_accumulation import first_kind, is_sum
from nki_migrate.rewriting.destinations.regions import valid_limits
from nki_migrate.rewriting.inference.observations import most_seen
from nki_migrate.rewriting.inference.observed_dtypes import unlike_dtypes
from nki_migrate.rewriting.inference.promotion import float32
from nki_migrate.rewriting.operations.instructions import flat_size
from nki_migrate.rewriting.operations.operators import copied, copy_into
from nki_migrate.rewriting.views.masks import Region, guards_of, region_of, unsupported_part
from nki_migrate.rewriting.views.tensors import covers_tile, hint_of, own_dtype, tile_of
from nki_migrate.rewriting.views.view_text import spell
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.transfers import load

_Arguments = list[tuple[str, str]]
_ONE = Sym.number(1)
# The one mode that kernels of 0.1 name (nki-samples, double_row_matmul), as 0.2 spells it
_MODES = {"double_row_gen3": "double_row"}


def _rewrite_nc_matmul(ctx: Context, site: CallSite) -> Tensor:
    """`nisa.nc_matmul(stationary, moving)` → `nisa.nc_matmul(dst, stationary, moving)`."""
    stationary, moving = _operand(ctx, site, "stationary"), _operand(ctx, site, "moving")
    part = _selected(ctx, site, stationary, moving)
    extra = [
        (k, _mode(ctx, v) if k == "perf_mode" else text_of(ctx, v))
        for k, v in site.arguments.items()
        if k not in {"stationary", "moving", "mask"}
    ]
    if site.get("perf_mode") is not None and site.target.view is None:
        text = "a product in a mode of its own that gets no tile"
        raise Cannot(Reason.RETURNED_VALUE, text, site.node)
    return _product(ctx, site, stationary, moving, extra, part)


def _mode(ctx: Context, node: ast.expr) -> str:
    """`perf_mode="double_row_gen3"` → `nisa.matmul_perf_mode.double_row`."""
    if not isinstance(node, ast.Constant) or node.value is None:
        return text_of(ctx, node)
    mode = _MODES.get(str(node.value))
    if mode is None:
        raise Cannot(Reason.RETURNED_VALUE, f"`perf_mode={node.value!r}` has no counterpart", node)
    return f"{ctx.alias('nisa')}.matmul_perf_mode.{mode}"


def _rewrite_nl_matmul(ctx: Context, site: CallSite) -> Tensor:
    """`nl.matmul(x, y, transpose_x)`: without `transpose_x` a transpose comes first."""
    ctx.report("NKI1230", site.node, "`nl.matmul` is nc_matmul, which takes x transposed")
    x, y = _operand(ctx, site, "x"), _operand(ctx, site, "y")
    part = _selected(ctx, site, x, y)
    flag = site.get("transpose_x")
    if flag is not None and not isinstance(flag, ast.Constant):
        raise Cannot("NKI1230", "`transpose_x` is not a literal", flag)
    if not site.is_set("transpose_x"):
        transposed = _transposed(ctx, x, Result(site.node), [])
        x = copy_into(ctx, transposed, Result(site.node, dtype=own_dtype(ctx, x), hint="sbuf"))
    return _product(ctx, site, x, y, [], part)


def _rewrite_nl_transpose(ctx: Context, site: CallSite) -> Tensor:
    """`nl.transpose(x)`: through PSUM into SBUF."""
    ctx.report("NKI1231", site.node, "`nl.transpose` is nc_transpose into PSUM and a copy")
    data = _operand(ctx, site, "x")
    dtype = as_dtype(ctx, site.get("dtype")) or data.dtype
    transposed = _transposed(ctx, data, Result(site.node), [])
    return copy_into(ctx, transposed, Result(site.node, site.target, dtype))


def _rewrite_nc_transpose(ctx: Context, site: CallSite) -> Tensor:
    """`nisa.nc_transpose(data)`: the tensor engine writes PSUM, in the dtype of its input."""
    data = _operand(ctx, site, "data")
    _reject_mask(site, "transpose")
    ctx.report("NKI1195", site.node, "`nisa.nc_transpose` writes to a destination in PSUM")
    extra = [(k, text_of(ctx, v)) for k, v in site.arguments.items() if k == "engine"]
    dtype = as_dtype(ctx, site.get("dtype"))
    same = dtype is None or data.dtype is None or dtype.key == data.dtype.key
    if same and _takes_transpose(ctx, site.target, data):
        return _transposed(ctx, data, Result(site.node, site.target), extra)
    transposed = _transposed(ctx, data, Result(site.node), extra)
    return copy_into(ctx, transposed, Result(site.node, site.target, dtype or own_dtype(ctx, data)))


def _rewrite_load_transposed(ctx: Context, site: CallSite) -> Tensor:
    """`nl.load_transpose2d(src)`: a load, and a transpose on the tensor engine.

    The DMA that transposes takes dtypes of two bytes only; this takes every floating one.
    """
    if site.get("mask") is not None or site.get("src") is None:
        raise Cannot("NKI1233", "`nl.load_transpose2d` with a mask", site.node)
    ctx.report("NKI1233", site.node, "a transposing load is a load and a transpose")
    arguments = {"src": site.arguments["src"]}
    data = load(ctx, replace(site, name="nl.load", arguments=arguments, target=NOWHERE))
    if data.shape is None or len(data.shape) != 2 or not _fits_engine(ctx, data, site.node):
        text = "a transposing load of what is not known to fit the tensor engine, 128 by 128"
        raise Cannot("NKI1233", text, site.node)
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, data)
    transposed = _transposed(ctx, data, Result(site.node), [])
    return copy_into(ctx, transposed, Result(site.node, site.target, dtype, hint="sbuf"))


def _fits_engine(ctx: Context, data: Tensor, node: ast.expr) -> bool:
    """Whether a tile has at most 128 rows and columns, as far as the source or the runs tell.

    `node` is the transposing load, whose result the runs have where a size has no name of its own.
    """
    seen = ctx.seen_at(node)
    shown = [0, 0]
    if seen is not None and seen.rank == 2:
        shown = [max(max(n, default=0) for n in seen.sizes(axis).values()) for axis in (1, 0)]
    sizes = [most_seen(ctx, s.poly) or n for s, n in zip(data.shape or (), shown, strict=True)]
    return all(0 < size <= resolve_target("trn1").stationary_free_max for size in sizes)


def _takes_transpose(ctx: Context, target: Target, data: Tensor) -> bool:
    view = target.view
    if view is None:
        return True
    is_psum = view.buffer == "psum"
    return is_psum and not unlike_dtypes(ctx, own_dtype(ctx, view), own_dtype(ctx, data))


def _operand(ctx: Context, site: CallSite, name: str) -> Tensor:
    tensor = tile_of(ctx, site, name)
    if tensor is None:
        text = "an operand of the product is not known to be a tile"
        raise Cannot(Reason.RETURNED_VALUE, text, site.get(name) or site.node)
    return tensor


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a product that a mask selects: counts of K, M and N, and conditions around."""

    limits: dict[str, Part]
    guards: tuple[str, ...] = ()

    def of(self, rows: str, columns: str) -> dict[int, Part]:
        """The limits of an operand with these dimensions."""
        names = {0: rows, 1: columns}
        return {axis: self.limits[n] for axis, n in names.items() if n in self.limits}


def _selected(ctx: Context, site: CallSite, stationary: Tensor, moving: Tensor) -> _Part:
    """The part that `mask=` selects: a bound is about the dimension with its index's extent."""
    node = site.get("mask")
    if node is None:
        return _Part({})
    mask = ctx.value_of(node)
    shapes = stationary.shape, moving.shape
    if not isinstance(mask, Mask) or any(s is None or len(s) != 2 for s in shapes):
        raise Cannot(Reason.PRODUCT_MASK, "a mask on a matrix product", site.node)
    sizes = dict(
        zip(("K", "M", "N"), (*(stationary.shape or ()), *(moving.shape or ())[1:]), strict=True)
    )
    ctx.report(Reason.PRODUCT_MASK, node, "the mask of a product cuts its operands")
    part = _Part({}, tuple(mask.predicates))
    for bound in mask.bounds:
        part = _with_bound(
            ctx, part, replace(mask, bounds=(bound,), predicates=(), planes=()), sizes, node
        )
    if why := unsupported_part(mask):
        raise Cannot(Reason.PRODUCT_MASK, f"mask {why}", site.node)
    return part


def _with_bound(
    ctx: Context, part: _Part, mask: Mask, sizes: dict[str, Sym], node: ast.expr
) -> _Part:
    (bound,) = mask.bounds
    names = "KM" if bound.axis == -2 else "MN"  # rows or columns of an operand or of the result
    fitting = [n for n in names if ctx.facts.same(sizes[n].poly, bound.extent.poly)]
    if len(fitting) != 1 or bound.axis < -2:
        text = f"a mask on {bound.extent.text} elements, which fits no one dimension of a product"
        raise Cannot(Reason.PRODUCT_MASK, text, node)
    shape = (bound.extent, _ONE) if bound.axis == -2 else (_ONE, bound.extent)
    region = region_of(ctx, mask, shape, node, ctx.facts.same)
    if bound.is_lower or fitting[0] in part.limits:
        raise Cannot(Reason.PRODUCT_MASK, "a lower bound, or two bounds of a dimension", node)
    limits = dict(zip(fitting, region.limits.values(), strict=False))
    return _Part(part.limits | limits, (*part.guards, *region.guards))


def _reject_mask(site: CallSite, what: str) -> None:
    if site.get("mask") is not None:
        raise Cannot(Reason.PRODUCT_MASK, f"a mask on a {what}", site.node)


def _on_sbuf(ctx: Context, tile: Tensor, node: ast.AST) -> Tensor:
    return copied(ctx, node, tile) if tile.buffer == "psum" else tile


def _product(
    ctx: Context,
    site: CallSite,
    stationary: Tensor,
    moving: Tensor,
    extra: _Arguments,
    part: _Part,
) -> Tensor:
    node, view = site.node, site.target.view
    stationary, moving = (_on_sbuf(ctx, t, node) for t in (stationary, moving))
    shape = (flat_size(stationary), flat_size(moving))
    if view is not None and not _writes_directly(ctx, view, site.target):
        text = "a product that replaces what its tile holds gets a tile of its own"
        ctx.report(Reason.ASSIGNED_PRODUCT, node, text)
        dtype = own_dtype(ctx, view) if view.buffer == "psum" else float32(ctx)
        dst = temporary(ctx, "product", shape, dtype, "psum", node)
        _emit(ctx, dst, stationary, moving, extra, part)
        emit(ctx, "tensor_copy", view, [("src", dst)], Region(part.of("M", "N"), part.guards))
        return view
    if view is None:
        text = "`nisa.nc_matmul` writes to a destination in PSUM"
        ctx.report(Reason.RETURNED_VALUE, node, text)
    result = Result(node, site.target, float32(ctx), hint="product")
    dst = destination(ctx, result, shape, "psum")
    _emit(ctx, dst, stationary, moving, extra, part)
    return dst


def _writes_directly(ctx: Context, view: Tensor, target: Target) -> bool:
    """Whether the product may go straight to the view (trap T4).

    Adding may; assigning may to PSUM that is fresh in this iteration and has not been written.
    """
    storage = view.storage
    is_fresh = storage.loops == ctx.loops and not storage.written
    return view.buffer == "psum" and (target.accumulate or (is_fresh and is_sum(ctx, storage)))


def _emit(
    ctx: Context,
    dst: Tensor,
    stationary: Tensor,
    moving: Tensor,
    extra: _Arguments,
    part: _Part,
) -> None:
    """The call; a partly filled contraction axis is cut on both operands (trap T5)."""
    left = valid_limits(ctx, stationary) | part.of("K", "M")
    right = valid_limits(ctx, moving) | part.of("K", "N")
    rows = {k: v for k, v in (left | right).items() if k == 0}
    cuts = {0: left[1]} if 1 in left and len(stationary.shape or ()) == 2 else {}
    cuts |= {1: right[1]} if 1 in right and len(moving.shape or ()) == 2 else {}
    ctx.use(stationary, "op")
    ctx.use(moving, "op")
    ctx.use(dst, "product")
    is_whole = not cuts and not part.guards and covers_tile(ctx, dst)
    ctx.wrote(dst.storage, first_kind(ctx, dst.storage, is_whole=is_whole))
    arguments = [
        ("dst", spell(ctx, dst, cuts)),
        ("stationary", spell(ctx, stationary, {**rows, **_free(left)})),
        ("moving", spell(ctx, moving, {**rows, **_free(right)})),
        *extra,
    ]
    counts = {**rows, **cuts, **_free(left), **_free(right)}
    guards = [*part.guards, *guards_of(ctx, counts.values())]
    ctx.emit_call("nc_matmul", arguments, list(dict.fromkeys(guards)))
    note_write(ctx, dst, cuts, "product")


def _free(limits: dict[int, Part]) -> dict[int, Part]:
    return {k: v for k, v in limits.items() if k > 0}


def _transposed(ctx: Context, data: Tensor, result: Result, extra: _Arguments) -> Tensor:
    """`nisa.nc_transpose(dst, data)`."""
    data = _on_sbuf(ctx, data, result.node)
    if data.shape is None:
        raise Cannot(Reason.TRANSPOSE, "a transpose of a tile of unknown shape", result.node)
    hint = hint_of(data, "T") if data.dims is None else "transposed"
    result = replace(result, dtype=own_dtype(ctx, data), hint=hint)
    dst = destination(ctx, result, (flat_size(data), data.shape[0]), "psum")
    limits = valid_limits(ctx, data)
    swapped = {1 - a: n for a, n in limits.items() if a < 2} if len(data.shape) == 2 else {}
    ctx.use(data, "op")
    arguments = [("dst", spell(ctx, dst, swapped)), ("data", spell(ctx, data, limits)), *extra]
    ctx.emit_call("nc_transpose", arguments, guards_of(ctx, limits.values()))
    note_write(ctx, dst, swapped, "other")
    return dst


HOOKS = {
    "NKI1182": Hooks(calls={"nisa.nc_matmul": _rewrite_nc_matmul}),
    "NKI1195": Hooks(calls={"nisa.nc_transpose": _rewrite_nc_transpose}),
    "NKI1230": Hooks(calls={"nl.matmul": _rewrite_nl_matmul}),
    "NKI1231": Hooks(calls={"nl.transpose": _rewrite_nl_transpose}),
    "NKI1233": Hooks(calls={"nl.load_transpose2d": _rewrite_load_transposed}),
}
