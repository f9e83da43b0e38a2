"""Matrix products and transposes: results in PSUM (NKI1182, NKI1183, NKI1195, NKI1230, NKI1231)."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import Sym, Tensor
from nki_migrate.lower.access import as_tensor
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import (
    Target,
    destination,
    emit,
    float32,
    note_write,
    temporary,
    valid_limits,
)
from nki_migrate.lower.evaluate import as_dtype, value_of
from nki_migrate.lower.instructions import flat_size
from nki_migrate.lower.observations import unlike_dtypes
from nki_migrate.lower.operators import copy_into
from nki_migrate.lower.signatures import CallSite
from nki_migrate.lower.source_text import text_of
from nki_migrate.lower.sums import first_kind, is_sum
from nki_migrate.lower.views import covers_tile, own_dtype, spell

__all__ = ["lower_nc_matmul", "lower_nc_transpose", "lower_nl_matmul", "lower_nl_transpose"]


def _tile(ctx: Context, node: ast.expr | None, site: CallSite) -> Tensor:
    tensor = as_tensor(ctx, value_of(ctx, node)) if node is not None else None
    if tensor is None:
        raise Cannot(
            "NKI1180", "an operand of the product is not known to be a tile", node or site.node
        )
    return tensor


def lower_nc_matmul(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nisa.nc_matmul(stationary, moving)` → `nisa.nc_matmul(dst, stationary, moving)`."""
    stationary = _tile(ctx, site.get("stationary"), site)
    moving = _tile(ctx, site.get("moving"), site)
    if site.get("mask") is not None:
        raise Cannot("NKI1175", "a mask on a matrix product", site.node)
    extra = [
        (k, _mode(ctx, v) if k == "perf_mode" else text_of(ctx, v))
        for k, v in site.arguments.items()
        if k not in {"stationary", "moving", "mask"}
    ]
    if site.get("perf_mode") is not None and (target is None or target.view is None):
        raise Cannot("NKI1180", "a product in a mode of its own that gets no tile", site.node)
    return _product(ctx, site, stationary, moving, target, extra)


# The one mode that kernels of 0.1 name (nki-samples, double_row_matmul), as 0.2 spells it
_MODES = {"double_row_gen3": "double_row"}


def _mode(ctx: Context, node: ast.expr) -> str:
    """`perf_mode="double_row_gen3"` → `nisa.matmul_perf_mode.double_row`."""
    if not isinstance(node, ast.Constant) or node.value is None:
        return text_of(ctx, node)
    mode = _MODES.get(str(node.value))
    if mode is None:
        raise Cannot("NKI1180", f"`perf_mode={node.value!r}` has no counterpart", node)
    return f"{ctx.alias('nisa')}.matmul_perf_mode.{mode}"


def lower_nl_matmul(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.matmul(x, y, transpose_x)`: without `transpose_x` a transpose comes first."""
    ctx.report("NKI1230", site.node, "`nl.matmul` is nc_matmul, which wants x transposed")
    x, y = _tile(ctx, site.get("x"), site), _tile(ctx, site.get("y"), site)
    if site.get("mask") is not None:
        raise Cannot("NKI1175", "a mask on a matrix product", site.node)
    flag = site.get("transpose_x")
    if flag is not None and not isinstance(flag, ast.Constant):
        raise Cannot("NKI1230", "`transpose_x` is not a literal", flag)
    if flag is None or not flag.value:  # type: ignore[union-attr]
        x = transpose_to_sbuf(ctx, site, x)
    return _product(ctx, site, x, y, target, [])


def _product(
    ctx: Context,
    site: CallSite,
    stationary: Tensor,
    moving: Tensor,
    target: Target | None,
    extra: list[tuple[str, str]],
) -> Tensor:
    stationary, moving = (
        copy_into(ctx, site.node, t, t.dtype, None, None) if t.buffer == "psum" else t
        for t in (stationary, moving)
    )
    shape = (flat_size(stationary), flat_size(moving))
    if target is not None and target.view is not None and not _writes_directly(ctx, target):
        ctx.report(
            "NKI1183",
            site.node,
            "a product that replaces what its tile holds gets a tile of its own",
        )
        view = target.view
        dtype = own_dtype(ctx, view) if view.buffer == "psum" else float32(ctx)
        dst = temporary(ctx, "product", shape, dtype, "psum", site.node)
        _emit(ctx, dst, stationary, moving, extra)
        emit(ctx, "tensor_copy", target.view, [("src", dst)], None, rank=2)
        return target.view
    if target is None or target.view is None:
        ctx.report("NKI1180", site.node, "`nisa.nc_matmul` writes to a destination in PSUM")
    dst = destination(ctx, target, shape, float32(ctx), "psum", site.node, hint="product")
    _emit(ctx, dst, stationary, moving, extra)
    return dst


def _writes_directly(ctx: Context, target: Target) -> bool:
    """Whether the product may go straight to the view (trap T4).

    Adding may; assigning may to PSUM that is fresh in this iteration and has not been written.
    """
    view = target.view
    assert view is not None
    if view.buffer != "psum":
        return False
    if target.accumulate:
        return True
    storage = view.storage
    return storage.loops == ctx.loops and not storage.written and is_sum(ctx, storage)


def _emit(
    ctx: Context, dst: Tensor, stationary: Tensor, moving: Tensor, extra: list[tuple[str, str]]
) -> None:
    """The call; a partly filled contraction axis is cut on both operands (trap T5)."""
    left, right = valid_limits(ctx, stationary), valid_limits(ctx, moving)
    rows = {k: v for k, v in (left | right).items() if k == 0}
    cuts = {0: left[1]} if 1 in left and len(stationary.shape or ()) == 2 else {}
    cuts |= {1: right[1]} if 1 in right and len(moving.shape or ()) == 2 else {}
    ctx.use(stationary, "op")
    ctx.use(moving, "op")
    ctx.use(dst, "product")
    is_whole = not cuts and covers_tile(ctx, dst)
    ctx.wrote(dst.storage, first_kind(ctx, dst.storage, is_whole=is_whole))
    arguments = [
        ("dst", spell(ctx, dst, cuts)),
        ("stationary", spell(ctx, stationary, {**rows, **_free(left)})),
        ("moving", spell(ctx, moving, {**rows, **_free(right)})),
        *extra,
    ]
    ctx.emit_call(f"{ctx.alias('nisa')}.nc_matmul", arguments, [])
    note_write(ctx, dst, cuts, "product")


def _free(limits: dict[int, Sym]) -> dict[int, Sym]:
    return {k: v for k, v in limits.items() if k > 0}


def lower_nc_transpose(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nisa.nc_transpose(data)`: the tensor engine writes PSUM, in the dtype of its input."""
    data = _tile(ctx, site.get("data"), site)
    if site.get("mask") is not None:
        raise Cannot("NKI1175", "a mask on a transpose", site.node)
    ctx.report("NKI1195", site.node, "`nisa.nc_transpose` writes to a destination in PSUM")
    extra = [(k, text_of(ctx, v)) for k, v in site.arguments.items() if k == "engine"]
    dtype = as_dtype(ctx, site.get("dtype"))
    same = dtype is None or data.dtype is None or dtype.key == data.dtype.key
    direct = target is None or target.view is None or target.view.buffer == "psum"
    if target is not None and target.view is not None and direct:
        direct = not unlike_dtypes(ctx, own_dtype(ctx, target.view), own_dtype(ctx, data))
    if same and direct:
        return _transpose(ctx, site, data, target, extra)
    turned = _transpose(ctx, site, data, None, extra)
    return copy_into(ctx, site.node, turned, dtype or data.dtype, None, target)


def _transpose(
    ctx: Context, site: CallSite, data: Tensor, target: Target | None, extra: list[tuple[str, str]]
) -> Tensor:
    if data.buffer == "psum":
        data = copy_into(ctx, site.node, data, data.dtype, None, None)
    rows = data.shape[0] if data.shape else Sym.number(0)
    if data.shape is None:
        raise Cannot("NKI1195", "a transpose of a tile of unknown shape", site.node)
    name = f"{data.storage.name}_T" if data.dims is None else "transposed"
    dst = destination(
        ctx, target, (flat_size(data), rows), data.dtype, "psum", site.node, hint=name
    )
    limits = valid_limits(ctx, data)
    swapped = {1 - a: n for a, n in limits.items() if a < 2} if len(data.shape) == 2 else {}
    ctx.use(data, "op")
    arguments = [("dst", spell(ctx, dst, swapped)), ("data", spell(ctx, data, limits)), *extra]
    ctx.emit_call(f"{ctx.alias('nisa')}.nc_transpose", arguments, [])
    note_write(ctx, dst, swapped, "other")
    return dst


def lower_nl_transpose(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """`nl.transpose(x)`: through PSUM into SBUF."""
    ctx.report("NKI1231", site.node, "`nl.transpose` is nc_transpose into PSUM and a copy")
    data = _tile(ctx, site.get("x"), site)
    dtype = as_dtype(ctx, site.get("dtype")) or data.dtype
    turned = _transpose(ctx, site, data, None, [])
    return copy_into(ctx, site.node, turned, dtype, None, target)


def transpose_to_sbuf(ctx: Context, site: CallSite, data: Tensor) -> Tensor:
    """The transposed tile as a matmul operand."""
    turned = _transpose(ctx, site, data, None, [])
    return copy_into(ctx, site.node, turned, data.dtype, None, None, hint="sbuf")
