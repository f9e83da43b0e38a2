"""Value-returning `nisa` calls as destination-passing ones, from a table.

Per instruction: which operands are tiles, the shape, dtype and buffer of the result (migration
rules, section 4), and whether its first tile may also be the destination.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from neuroncore.targets import GPSIMD_PARTITIONS
from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Seq, Sym, Tensor
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype, as_number, text_of
from nki_migrate.rewriting.destinations.destination import (
    Operand,
    Result,
    destination,
    emit,
    whole_shape,
)
from nki_migrate.rewriting.destinations.regions import mask_region, valid_region
from nki_migrate.rewriting.inference.observations import seen_one
from nki_migrate.rewriting.inference.promotion import met, one_of_two
from nki_migrate.rewriting.operations.broadcasting import form_of
from nki_migrate.rewriting.operations.operands import NUMPY_OPERATORS, operator_text
from nki_migrate.rewriting.operations.operators import in_form, role_of, to_float32
from nki_migrate.rewriting.views.tensors import hint_of, own_dtype, rank_of, tile_of

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
    in_place: bool = True
    reduces: bool = False  # the mask's free axes do not limit the result
    reason: Reason = Reason.RETURNED_VALUE
    dtype: str | None = None  # of the result, where it is not the first tile's
    defaults: tuple[tuple[str, str], ...] = ()  # of 0.1, where 0.2 has others


def product(sizes: tuple[Sym, ...]) -> Sym:
    """The product of sizes; 1 for none."""
    return reduce(operator.mul, sizes, _ONE)


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
    rank = rank_of(data)
    known = {n.value % rank for n in numbers if n is not None and n.value is not None}
    if data.shape is None:
        _check_axes_of_unknown_rank(numbers, data, node)
    if _is_one_unknown(numbers) and rank == 2:
        return {1}  # 0.1 reduces no other
    if len(known) < len(numbers):
        raise Cannot(Reason.REDUCTION, "a reduction axis that is not a literal", node)
    return known


def _check_axes_of_unknown_rank(numbers: Sequence[Sym | None], data: Tensor, node: ast.AST) -> None:
    if any(n is not None and (n.value or 0) >= rank_of(data) for n in numbers):
        text = f"`{data.storage.name}` is of unknown rank: no access pattern puts its axes last"
        raise Cannot(Reason.REDUCTION, text, node)


def _is_one_unknown(numbers: Sequence[Sym | None]) -> bool:
    return len(numbers) == 1 and numbers[0] is not None and numbers[0].value is None


def _reduce(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    keepdims = site.is_set("keepdims")
    return reduced_shape(ctx, tiles["data"], site.get("axis"), keepdims, site.node)


def _columns(count: int) -> Callable[[Context, CallSite, dict[str, Tensor]], Shape]:
    return lambda ctx, site, tiles: (_partitions(next(iter(tiles.values()))), Sym.number(count))


def _partitions(tile: Tensor) -> Sym:
    if tile.shape is not None:
        return tile.shape[0]
    return Sym(Poly.atom(f"{tile.storage.name}.shape[0]"), f"{tile.storage.name}.shape[0]")


def _one_partition(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    data = tiles["data"]
    return (_ONE, *data.shape[1:]) if data.shape is not None else (_ONE, flat_size(data))


def _bounds(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    data = tiles["segment_ids"]
    if data.shape is None:
        raise Cannot(Reason.RESULT_SHAPE, "bounds of segments of unknown shape", site.node)
    return (data.shape[0], Sym.number(2), *data.shape[1:])


def _gathered(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> Shape:
    """Of `nisa.local_gather`: as the result is annotated, or one column per index and element."""
    if sizes := _annotated_sizes(ctx, site.node):
        return sizes
    count, each = site.get("num_valid_indices"), site.get("num_elem_per_idx")
    every = flat_size(tiles["index"]) * Sym.number(GPSIMD_PARTITIONS)
    numbers = (_number_or(ctx, count, every), _number_or(ctx, each, _ONE))
    return (_partitions(tiles["src_buffer"]), *numbers)


def _number_or(ctx: Context, node: ast.expr | None, default: Sym) -> Sym:
    number = default if node is None else as_number(ctx, ctx.value_of(node))
    if number is None:
        text = "how many elements are gathered is not known"
        raise Cannot(Reason.RESULT_SHAPE, text, node)
    return number


def _annotated_sizes(ctx: Context, node: ast.AST) -> tuple[Sym, ...]:
    """The sizes of `t: tensor[128, 16] = …`; none where they are not known."""
    statement = ctx.index.parent(node)
    if not isinstance(statement, ast.AnnAssign):
        return ()
    if not isinstance(statement.annotation, ast.Subscript):
        return ()
    sizes = ctx.value_of(statement.annotation.slice)
    numbers = [as_number(ctx, v) for v in sizes.items] if isinstance(sizes, Seq) else []
    return tuple(n for n in numbers if n is not None)


INSTRUCTIONS: dict[str, Instruction] = {
    "nisa.activation": Instruction(("data",), ("bias", "scale", "reduce_res"), ("op", "reduce_op")),
    "nisa.activation_reduce": Instruction(
        ("data",), ("bias", "scale", "reduce_res"), ("op", "reduce_op")
    ),
    "nisa.reciprocal": Instruction(("data",)),
    "nisa.tensor_copy": Instruction(("src",), in_place=False),
    "nisa.tensor_scalar": Instruction(("data",), ("operand0", "operand1"), ("op0", "op1")),
    "nisa.tensor_tensor": Instruction(("data1", "data2"), (), ("op",), promotes=True),
    "nisa.scalar_tensor_tensor": Instruction(
        ("data", "operand1"), ("operand0",), ("op0", "op1"), in_place=False
    ),
    "nisa.tensor_scalar_reduce": Instruction(
        ("data",), ("operand0", "reduce_res"), ("op0", "reduce_op"), in_place=False
    ),
    "nisa.tensor_tensor_scan": Instruction(
        ("data0", "data1"), ("initial",), ("op0", "op1"), promotes=True, in_place=False
    ),
    "nisa.tensor_reduce": Instruction(
        ("data",), (), ("op",), shape=_reduce, in_place=False, reduces=True,
        reason=Reason.TENSOR_REDUCE,
    ),
    "nisa.tensor_partition_reduce": Instruction(
        ("data",), (), ("op",), shape=_one_partition, in_place=False
    ),
    "nisa.max8": Instruction(("src",), shape=_columns(8), in_place=False, reduces=True),
    "nisa.nc_find_index8": Instruction(
        ("data", "vals"), shape=_columns(8), in_place=False, dtype="uint32"
    ),
    "nisa.nc_match_replace8": Instruction(("data", "vals"), in_place=False),
    "nisa.bn_stats": Instruction(("data",), shape=_columns(6), in_place=False, reduces=True),
    "nisa.bn_aggr": Instruction(("data",), shape=_columns(2), in_place=False, reduces=True),
    "nisa.dropout": Instruction(("data",), ("prob",)),
    "nisa.range_select": Instruction(
        ("on_true_tile",), ("bound0", "bound1", "reduce_res"),
        ("comp_op0", "comp_op1", "reduce_op"), in_place=False,
        defaults=(("reduce_cmd", "nisa.reduce_cmd.idle"),),
    ),
    "nisa.local_gather": Instruction(
        ("src_buffer", "index"), shape=_gathered, in_place=False, reduces=True
    ),
    "nisa.sequence_bounds": Instruction(("segment_ids",), shape=_bounds, in_place=False),
}  # fmt: skip


def instruction(ctx: Context, site: CallSite) -> Tensor:
    """Rewrite one call of the table."""
    name, how = site.name.removeprefix("nisa."), INSTRUCTIONS[site.name]
    tiles = _tiles(ctx, site, how)
    first = next(iter(tiles.values()))
    region = mask_region(ctx, site, first.shape)
    reason = Reason.ASSIGNED_CALL if site.target.view is not None else how.reason
    ctx.report(reason, site.node, f"`{site.name}` writes to a destination")
    result = Result(site.node, site.target, None, region)
    op, form = _broadcast(ctx, site, tiles) if name == "tensor_tensor" else ("", "")
    if op:
        result = replace(result, dtype=as_dtype(ctx, site.get("dtype")))
        a, b = tiles["data1"], tiles["data2"]
        return in_form(ctx, op, a, b, result, form or form_of(ctx, a, b, site.node))
    dtype = _dtype(ctx, site, how, tiles)
    shape = how.shape(ctx, site, tiles) if how.shape else whole_shape(ctx, first)
    operands = [(k, _operand(ctx, site, how, tiles, k, v)) for k, v in site.arguments.items()]
    kept = [(k, o) for k, o in operands if k not in {"mask", "dtype"}]
    kept += [(k, _of_isa(ctx, text)) for k, text in how.defaults if k not in site.arguments]
    region = region or valid_region(ctx, *tiles.values())
    dtypes = [own_dtype(ctx, t) for t in tiles.values()]
    guess = one_of_two(ctx, *dtypes[:2]) if how.promotes and len(dtypes) > 1 else None
    hint = hint_of(first, _role(ctx, site, name, of_two=len(tiles) > 1))
    result = replace(result, dtype=dtype, guess=guess, hint=hint)
    part = region.of_rows(shape) if how.reduces else region
    dst = destination(ctx, result, shape, in_place=how.in_place, computed=part)
    emit(ctx, name, dst, kept, region, reduces=how.reduces)
    return dst


def _role(ctx: Context, site: CallSite, name: str, *, of_two: bool) -> str:
    """What a result is called: by the operator, or by the instruction."""
    node = site.get("op") or site.get("op0")
    _, _, op = (ctx.index.canonical(node) or "").partition(".")
    return role_of(NUMPY_OPERATORS.get(op, op), of_two=of_two) or name.removeprefix("tensor_")


def _of_isa(ctx: Context, text: str) -> str:
    return text.replace("nisa.", f"{ctx.alias('nisa')}.", 1)


def _broadcast(ctx: Context, site: CallSite, tiles: dict[str, Tensor]) -> tuple[str, str]:
    """The operator of a tensor_tensor with one (P, 1) operand, which 0.2 does not repeat, and how
    the shapes fit if one is unknown; ("", "") for other operands.
    """
    columns = [_is_column(ctx, tiles[name]) for name in ("data1", "data2")]
    if columns[0] == columns[1]:
        return "", ""
    is_open = None in (tiles["data1"].shape, tiles["data2"].shape)
    form = f"column {'left' if columns[0] else 'right'}" if is_open else ""
    module, _, name = (ctx.index.canonical(site.get("op")) or "").partition(".")
    if module == "np":
        return NUMPY_OPERATORS.get(name, ""), form
    return (name if module == "nl" else ""), form


def _is_column(ctx: Context, tile: Tensor) -> bool:
    sizes = tile.shape[1:] if tile.shape is not None else ()
    return bool(sizes) and all(s.value == 1 or seen_one(ctx, s.poly) for s in sizes)


def _tiles(ctx: Context, site: CallSite, how: Instruction) -> dict[str, Tensor]:
    tiles = {}
    for name in how.tiles:
        tensor = tile_of(ctx, site, name)
        if tensor is None:
            text, node = f"`{name}` is not known to be a tile", site.get(name) or site.node
            raise Cannot(Reason.RETURNED_VALUE, text, node)
        tiles[name] = tensor
    return tiles


def _operand(
    ctx: Context,
    site: CallSite,
    how: Instruction,
    tiles: dict[str, Tensor],
    name: str,
    node: ast.expr,
) -> Operand:
    if name in tiles:
        return tiles[name]
    if name in how.operators:
        return operator_text(ctx, node) if site.get(name) is not None else "None"
    if name in {"mask", "dtype"}:
        return ""
    value = ctx.value_of(node)
    if not isinstance(value, Tensor):
        return text_of(ctx, node)
    takes_float32 = name in how.optional and (site.name, name) in _FLOAT32_OPERANDS
    dtype = value.dtype if takes_float32 else None
    if dtype is None or dtype.key == "float32":
        return value
    return to_float32(ctx, site.node, value)


_FLOAT32_OPERANDS = {
    ("nisa.tensor_scalar", "operand0"),
    ("nisa.tensor_scalar", "operand1"),
    ("nisa.activation", "scale"),
}
"""(P, 1) operands that the instruction takes in float32 only."""


def _dtype(
    ctx: Context, site: CallSite, how: Instruction, tiles: dict[str, Tensor]
) -> DType | None:
    given = as_dtype(ctx, site.get("dtype"))
    if given is not None:
        ctx.report(Reason.RESULT_DTYPE, site.node, "`dtype=` is the dtype of the destination")
        return given
    if how.dtype is not None:
        return DType(f"{ctx.alias('nl')}.{how.dtype}", how.dtype)
    first, *others = tiles.values()
    if not how.promotes or not others:
        return own_dtype(ctx, first)
    return met(ctx, own_dtype(ctx, first), own_dtype(ctx, others[0]))
