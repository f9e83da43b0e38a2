"""Value-returning `nisa` calls as destination-passing ones, from a table.

Per instruction: which operands are tiles, the shape, dtype and buffer of the result (migration
rules, section 4), and whether its first tile may also be the destination.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Seq, Sym, Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, as_number, text_of
from nki_migrate.rewriting.destinations.destination import (
    cut,
    destination,
    emit,
    mask_region,
    note_write,
    valid_limits,
    whole_shape,
)
from nki_migrate.rewriting.inference.promotion import float32, met, one_of_two
from nki_migrate.rewriting.operations.operator_names import NUMPY_OPERATORS, operator_text
from nki_migrate.rewriting.operations.operators import copy_into, two_tiles
from nki_migrate.rewriting.views.index_tensors import Region
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype, spell

Shape = tuple[Sym, ...] | str
_ONE = Sym.number(1)


@dataclass(frozen=True, slots=True)
class Instruction:
    """How to rewrite one `nisa` function; `shape` gets its tiles by parameter name."""

    tiles: tuple[str, ...]  # operands that are tiles, the first gives dtype and masks
    optional: tuple[str, ...] = ()  # operands that may be a tile or a number
    operators: tuple[str, ...] = ()
    shape: Callable[[Context, CallSite, dict[str, Tensor]], Shape] | None = None  # default: first
    promotes: bool = False
    buffer: str = "sbuf"
    in_place: bool = True
    full_reduction: bool = False  # the mask's free axes do not limit the result
    hint: str = "result"
    dtype: str | None = None  # of the result, where it is not the first tile's
    defaults: tuple[tuple[str, str], ...] = ()  # of 0.1, where 0.2 has others


def product(sizes: tuple[Sym, ...]) -> Sym:
    """The product of sizes; 1 for none."""
    total = _ONE
    for size in sizes:
        total = total * size
    return total


def flat_size(tensor: Tensor) -> Sym:
    """Elements per partition."""
    if tensor.shape is None:
        return Sym(Poly.atom(f"{tensor.storage.name}.shape[1]"), f"{tensor.storage.name}.shape[1]")
    return product(tensor.shape[1:])


def reduced_shape(
    ctx: Context, data: Tensor, axis: ast.expr | None, keepdims: bool, node: ast.AST
) -> Shape:
    """The shape after a reduction over free axes, at least (P, 1)."""
    axes = axes_of(ctx, axis, data, node)
    if data.shape is None:
        return f"({data.storage.name}.shape[0], 1)"
    if 0 in axes:
        raise Cannot(Reason.REDUCTION, "a reduction over the partition axis", node)
    kept = [_ONE if i in axes else s for i, s in enumerate(data.shape) if keepdims or i not in axes]
    return tuple(kept) if len(kept) > 1 else (kept[0], _ONE)


def axes_of(ctx: Context, axis: ast.expr | None, data: Tensor, node: ast.AST) -> set[int]:
    """The reduced axes as non-negative numbers."""
    if axis is None:
        raise Cannot(Reason.REDUCTION, "a reduction without an axis", node)
    value = ctx.value_of(axis)
    items = value.items if isinstance(value, Seq) else (value,)
    numbers = [as_number(ctx, v) for v in items]
    if any(n is None or n.value is None for n in numbers):
        raise Cannot(Reason.REDUCTION, "a reduction axis that is not a literal", node)
    rank = len(data.shape) if data.shape is not None else 2
    return {n.value % rank for n in numbers if n is not None and n.value is not None}


def _keepdims(site: CallSite) -> bool:
    node = site.get("keepdims")
    return isinstance(node, ast.Constant) and bool(node.value)


def _reduce(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    return reduced_shape(ctx, tiles["data"], site.get("axis"), _keepdims(site), site.node)


def _eight(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    first = next(iter(tiles.values()))
    return (_partitions(first), Sym.number(8))


def _partitions(tile: Tensor) -> Sym:
    if tile.shape is not None:
        return tile.shape[0]
    return Sym(Poly.atom(f"{tile.storage.name}.shape[0]"), f"{tile.storage.name}.shape[0]")


def _columns(count: int) -> Callable[[Context, CallSite, dict[str, Tensor]], Shape]:
    return lambda ctx, site, tiles: (_partitions(next(iter(tiles.values()))), Sym.number(count))


def _one_partition(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    data = tiles["data"]
    return (_ONE, *data.shape[1:]) if data.shape is not None else (_ONE, flat_size(data))


def _bounds(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    data = tiles["segment_ids"]
    if data.shape is None:
        raise Cannot(Reason.RESULT_SHAPE, "bounds of segments of unknown shape", site.node)
    return (data.shape[0], Sym.number(2), *data.shape[1:])


INSTRUCTIONS: dict[str, Instruction] = {
    "activation": Instruction(("data",), ("bias", "scale", "reduce_res"), ("op", "reduce_op")),
    "activation_reduce": Instruction(
        ("data",), ("bias", "scale", "reduce_res"), ("op", "reduce_op")
    ),
    "reciprocal": Instruction(("data",)),
    "tensor_copy": Instruction(("src",), in_place=False),
    "tensor_scalar": Instruction(("data",), ("operand0", "operand1"), ("op0", "op1")),
    "tensor_tensor": Instruction(("data1", "data2"), (), ("op",), promotes=True),
    "scalar_tensor_tensor": Instruction(
        ("data", "operand1"), ("operand0",), ("op0", "op1"), in_place=False
    ),
    "tensor_scalar_reduce": Instruction(
        ("data",), ("operand0", "reduce_res"), ("op0", "reduce_op"), in_place=False
    ),
    "tensor_tensor_scan": Instruction(
        ("data0", "data1"), ("initial",), ("op0", "op1"), promotes=True, in_place=False
    ),
    "tensor_reduce": Instruction(
        ("data",), (), ("op",), shape=_reduce, in_place=False, full_reduction=True, hint="reduced"
    ),
    "tensor_partition_reduce": Instruction(
        ("data",), (), ("op",), shape=_one_partition, in_place=False, hint="reduced"
    ),
    "max8": Instruction(("src",), shape=_columns(8), in_place=False, full_reduction=True),
    "nc_find_index8": Instruction(
        ("data", "vals"), shape=_eight, in_place=False, dtype="uint32", hint="places"
    ),
    "nc_match_replace8": Instruction(("data", "vals"), in_place=False, hint="replaced"),
    "bn_stats": Instruction(("data",), shape=_columns(6), in_place=False, full_reduction=True),
    "bn_aggr": Instruction(("data",), shape=_columns(2), in_place=False, full_reduction=True),
    "dropout": Instruction(("data",), ("prob",)),
    "range_select": Instruction(
        ("on_true_tile",), ("bound0", "bound1", "reduce_res"),
        ("comp_op0", "comp_op1", "reduce_op"), in_place=False,
        defaults=(("reduce_cmd", "nisa.reduce_cmd.idle"),),
    ),
    "sequence_bounds": Instruction(("segment_ids",), shape=_bounds, in_place=False),
}  # fmt: skip


def instruction(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """Rewrite one call of the table."""
    name = site.name.partition(".")[2]
    how = INSTRUCTIONS[name]
    tiles = _tiles(ctx, site, how)
    first = next(iter(tiles.values()))
    region = mask_region(ctx, site, first.shape)
    rule = (
        Reason.ASSIGNED_CALL
        if target is not None and target.view is not None
        else Reason.RETURNED_VALUE
    )
    rule = (
        Reason.TENSOR_REDUCE if rule == Reason.RETURNED_VALUE and name == "tensor_reduce" else rule
    )
    ctx.report(rule, site.node, f"`nisa.{name}` writes to a destination")
    if name == "tensor_tensor" and (op := _broadcast(ctx, site, tiles)):
        a, b, dtype = tiles["data1"], tiles["data2"], as_dtype(ctx, site.get("dtype"))
        return two_tiles(ctx, site.node, op, a, b, dtype, region, target)
    dtype = _dtype(ctx, site, how, tiles)
    shape = how.shape(ctx, site, tiles) if how.shape else whole_shape(ctx, first)
    operands = [(k, _operand(ctx, site, how, tiles, k, v)) for k, v in site.arguments.items()]
    kept = [(k, o) for k, o in operands if k not in {"mask", "dtype"}]
    kept += [(k, _of_isa(ctx, text)) for k, text in how.defaults if k not in site.arguments]
    if region is None:
        limits: dict[int, Sym] = {}
        for tile in tiles.values():
            limits |= valid_limits(ctx, tile)
        region = Region(limits, [])
    dtypes = [own_dtype(ctx, t) for t in tiles.values()]
    dst = destination(
        ctx,
        target,
        shape,
        dtype,
        how.buffer,
        site.node,
        hint=_hint(how, first, name),
        in_place=how.in_place,
        guess=one_of_two(ctx, dtypes[0], dtypes[1]) if how.promotes and len(dtypes) > 1 else None,
        computes=not region.guards and not region.limits if how.buffer == "sbuf" else None,
    )
    rank = len(first.shape) if first.shape is not None else 2
    _emit_masked(ctx, name, dst, kept, region, rank, how)
    return dst


def _of_isa(ctx: Context, text: str) -> str:
    return text.replace("nisa.", f"{ctx.alias('nisa')}.", 1)


def _broadcast(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> str | None:
    """The operator of a tensor_tensor with one (P, 1) operand, which 0.2 does not repeat."""
    a, b = tiles["data1"].shape, tiles["data2"].shape
    if a is None or b is None or len(a) != len(b):
        return None
    columns = [all(s.value == 1 for s in shape[1:]) for shape in (a, b)]
    if columns[0] == columns[1]:
        return None
    node = site.get("op")
    module, _, name = (ctx.index.canonical(node) or "").partition(".") if node else ("", "", "")
    if module == "np":
        name = NUMPY_OPERATORS.get(name, "")
    return name if module in {"np", "nl"} else None


def _hint(how: Instruction, first: Tensor, name: str) -> str:
    word = name.removeprefix("tensor_")
    return f"{first.storage.name}_{word}" if first.dims is None else word


def _emit_masked(
    ctx: Context,
    name: str,
    dst: Tensor,
    operands: list[tuple[str, Tensor | str]],
    region: Region,
    rank: int,
    how: Instruction,
) -> None:
    if not how.full_reduction or not region.limits or dst.shape is None:
        emit(ctx, name, dst, operands, region, rank=rank)
        return

    own = {a: n for a, n in region.limits.items() if a == 0}
    arguments = [("dst", spell(ctx, dst, cut(dst, own, len(dst.shape))))]
    for key, operand in operands:
        if isinstance(operand, Tensor):
            ctx.use(operand, "op")
            arguments.append((key, spell(ctx, operand, cut(operand, region.limits, rank))))
        else:
            arguments.append((key, operand))
    ctx.emit_call(f"{ctx.alias('nisa')}.{name}", arguments, region.guards)
    note_write(ctx, dst, own, "other")


def _tiles(ctx: Context, site: CallSite, how: Instruction) -> dict[str, Tensor]:
    tiles = {}
    for name in how.tiles:
        node = site.get(name)
        tensor = as_tensor(ctx, ctx.value_of(node)) if node is not None else None
        if tensor is None:
            raise Cannot(
                Reason.RETURNED_VALUE, f"`{name}` is not known to be a tile", node or site.node
            )
        tiles[name] = tensor
    return tiles


def _operand(
    ctx: Context,
    site: CallSite,
    how: Instruction,
    tiles: dict[str, Tensor],
    name: str,
    node: ast.expr,
) -> Tensor | str:
    if name in tiles:
        return tiles[name]
    if name in how.operators:
        if isinstance(node, ast.Constant) and node.value is None:
            return "None"
        return operator_text(ctx, node)
    if name in {"mask", "dtype"}:
        return ""
    value = ctx.value_of(node)
    if name in how.optional and isinstance(value, Tensor):
        return _float32_operand(ctx, site, name, value)
    if isinstance(value, Tensor):
        return value
    return text_of(ctx, node)


_FLOAT32_OPERANDS = {
    ("tensor_scalar", "operand0"),
    ("tensor_scalar", "operand1"),
    ("activation", "scale"),
}


def _float32_operand(ctx: Context, site: CallSite, name: str, value: Tensor) -> Tensor:
    """(P, 1) operands that the instruction takes in float32 only."""
    dtype = value.dtype
    if (site.name[5:], name) not in _FLOAT32_OPERANDS or dtype is None or dtype.key == "float32":
        return value
    return copy_into(ctx, site.node, value, float32(ctx), None, None, hint="f32")


def _dtype(
    ctx: Context, site: CallSite, how: Instruction, tiles: dict[str, Tensor]
) -> DType | None:
    given = as_dtype(ctx, site.get("dtype"))
    if given is not None:
        ctx.report(Reason.RESULT_DTYPE, site.node, "`dtype=` is the dtype of the destination")
        return given
    if how.dtype is not None:
        return DType(f"{ctx.alias('nl')}.{how.dtype}", how.dtype)
    dtypes = [t.dtype for t in tiles.values()]
    if not how.promotes or len(dtypes) < 2:
        return own_dtype(ctx, next(iter(tiles.values())))
    a, b = (own_dtype(ctx, t) for t in list(tiles.values())[:2])
    return met(ctx, a, b)
