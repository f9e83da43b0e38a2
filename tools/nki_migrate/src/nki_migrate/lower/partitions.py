"""A (1, F) row of the chip in several partitions: a shuffle per quadrant (NKI1164).

No view repeats a partition. `nisa.nc_stream_shuffle` moves bits between the 32 partitions of a
quadrant, for any dtype: with a mask of zeros all of them get the first one of the source.
"""

from __future__ import annotations

import ast

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Dim, Sym, Tensor
from nki_migrate.lower.context import Cannot, Context, call_text
from nki_migrate.lower.destination import temporary, valid_limits
from nki_migrate.lower.views import Limits, own_dtype, spell, storage_dims

__all__ = ["repeat_row"]

QUADRANT = 32
_ONE = Sym.number(1)


def repeat_row(ctx: Context, node: ast.AST, row: Tensor, count: Sym) -> Tensor:
    """The row in `count` partitions of a new tile."""
    name = row.storage.name
    if row.buffer not in {"sbuf", "psum"} or row.shape is None or storage_dims(row) is None:
        raise Cannot("NKI1164", f"`{name}` is not known to be a row on chip", node)
    ctx.report("NKI1164", node, f"`{name}` is shuffled into every partition")
    limits = {axis: size for axis, size in valid_limits(ctx, row).items() if axis > 0}
    row = _in_first_partition(ctx, node, row, limits)
    shape = (count, *row.shape[1:])  # type: ignore[index]
    hint = f"{name}_bcast" if name.isidentifier() else "bcast"
    wide = temporary(ctx, hint, shape, own_dtype(ctx, row), "sbuf", node)
    ctx.use(row, "op")
    if count.value is not None and count.value <= QUADRANT:
        _shuffle(ctx, wide, row, limits, "")
    else:
        start = Sym(Poly.atom(variable := ctx.fresh_name("quadrant")), variable)
        ctx.emit(f"for {variable} in range(0, {ctx.spell(count)}, {QUADRANT}):")
        _shuffle(ctx, _part(ctx, wide, start, count), row, limits, "    ")
    ctx.wrote(wide.storage, "other")
    wide.storage.written, wide.storage.valid = True, dict(limits)
    return wide


def _part(ctx: Context, wide: Tensor, start: Sym, count: Sym) -> Tensor:
    """At most a quadrant of the tile from `start` on."""
    assert wide.shape is not None
    size = Sym.number(QUADRANT)
    if not ctx.facts.divides(QUADRANT, count.poly):
        text = f"min({QUADRANT}, {ctx.spell(count, 1)} - {start.text})"
        size = Sym(Poly.atom(text), text, names=count.names)
    dims = list(storage_dims(wide) or ())
    dims[0] = Dim(start, ((0, _ONE),))
    return Tensor(wide.storage, (size, *wide.shape[1:]), tuple(dims))


def _shuffle(ctx: Context, wide: Tensor, row: Tensor, limits: Limits, pad: str) -> None:
    arguments = [
        ("dst", spell(ctx, wide, limits)),
        ("src", spell(ctx, row, limits)),
        ("shuffle_mask", f"[0] * {QUADRANT}"),
    ]
    line = call_text(f"{ctx.alias('nisa')}.nc_stream_shuffle", arguments, ctx.width - len(pad))
    ctx.emit(pad + line.replace("\n", f"\n{pad}"))


def _in_first_partition(ctx: Context, node: ast.AST, row: Tensor, limits: Limits) -> Tensor:
    """The row itself, or a copy of it where it starts at another partition."""
    dims = storage_dims(row)
    assert dims is not None and row.shape is not None
    if dims[row.storage.blocks].offset.value == 0:
        return row
    if row.buffer != "sbuf":
        raise Cannot("NKI1164", f"a row of `{row.storage.name}`, in PSUM, other than 0", node)
    first = temporary(ctx, "row", (_ONE, *row.shape[1:]), own_dtype(ctx, row), "sbuf", node)
    ctx.use(row, "op")
    arguments = [("dst", spell(ctx, first, limits)), ("src", spell(ctx, row, limits))]
    ctx.emit_call(f"{ctx.alias('nisa')}.dma_copy", arguments, [])
    ctx.wrote(first.storage, "other")
    first.storage.written, first.storage.valid = True, dict(limits)
    return first
