"""Broadcasting of two tiles, and copies where an instruction does not broadcast."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import starmap
from operator import mul

from neuroncore.targets import QUADRANT
from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Dim, Sym, Tensor
from nki_migrate.rewriting.context.call_site import NOWHERE, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.line_breaks import call_text
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.destinations.destination import Result, destination
from nki_migrate.rewriting.destinations.regions import valid_limits
from nki_migrate.rewriting.inference.observations import differing_sizes, guard, seen_one, seen_same
from nki_migrate.rewriting.views.tensors import home, own_dtype, storage_dims
from nki_migrate.rewriting.views.view_text import Limits, pattern, spell


def form_of(ctx: Context, a: Tensor, b: Tensor, node: ast.AST) -> str:
    """How two shapes fit.

    same, column left/right ((P, 1)), row left/right ((1, F)), point left/right ((1, 1)), cross
    left/right: a (P, 1) column on that side, and a (1, F) row; or spread: along some axes one of
    them is repeated.
    """
    if a.shape is None or b.shape is None:
        if a.shape is not b.shape or not _of_one_shape(a, b):
            _assume_same(ctx, a, b, node)
        return "same"
    if len(a.shape) != len(b.shape):
        return _across_ranks(ctx, a, b, node)
    pairs = [(x.poly, y.poly) for x, y in zip(a.shape, b.shape, strict=True)]
    if all(same := list(starmap(ctx.facts.same, pairs))):
        return "same"
    alike = [s or seen_same(ctx, x, y) for s, (x, y) in zip(same, pairs, strict=True)]
    ones = [_are_ones(a.shape), _are_ones(b.shape)]
    return _one_sided(alike, ones) or _observed_form(ctx, a, b, alike, ones, node)


def _across_ranks(ctx: Context, a: Tensor, b: Tensor, node: ast.AST) -> str:
    """How tiles of two ranks fit: one is a column, or they have as many elements."""
    one, other = a.shape or (), b.shape or ()
    if _known_same(ctx, a, b, one[0], other[0]):
        for small, side in ((b, "right"), (a, "left")):
            if all(_seen_ones(ctx, small)[1:]):
                _guard_ones(ctx, small, f"column {side}")
                return f"column {side}"
        is_whole = not valid_limits(ctx, a) and not valid_limits(ctx, b)
        if is_whole and _known_same(ctx, a, b, _product(one[1:]), _product(other[1:])):
            return "same"
    text = f"tiles of ranks {len(one)} and {len(other)}: no instruction broadcasts so"
    raise Cannot(Reason.FREE_BROADCAST, text, node)


def _product(sizes: Sequence[Sym]) -> Sym:
    return reduce(mul, sizes, Sym.number(1))


def _known_same(ctx: Context, a: Tensor, b: Tensor, one: Sym, other: Sym) -> bool:
    """Whether two sizes are equal, by the source or in every run."""
    if ctx.facts.same(one.poly, other.poly):
        return True
    if not seen_same(ctx, one.poly, other.poly):
        return False
    ctx.basis.append(f"{ctx.witness}: {_sizes(a)} beside {_sizes(b)}")
    return True


def _observed_form(
    ctx: Context, a: Tensor, b: Tensor, alike: list[bool], ones: list[list[bool]], node: ast.AST
) -> str:
    """How two shapes fit that the source does not tell."""
    if all(alike):
        ctx.basis.append(f"{ctx.witness}: {_sizes(a)} is {_sizes(b)}")
        return "same"
    seen = [_seen_ones(ctx, t) for t in (a, b)]
    if form := _one_sided(alike, seen):
        _guard_ones(ctx, a if form.endswith("left") else b, form)
        return form
    if form := _two_sided(ones):
        return form
    if all(map(any, zip(alike, *seen, strict=True))):
        return "spread"
    if ones[0] != ones[1]:
        text = f"tiles of shapes {_sizes(a)} and {_sizes(b)} broadcast in a way no instruction has"
        raise Cannot(Reason.FREE_BROADCAST, text, node)
    _assume_same(ctx, a, b, node)
    return "same"


def _seen_ones(ctx: Context, tile: Tensor) -> list[bool]:
    return [s.value == 1 or seen_one(ctx, s.poly) for s in tile.shape or ()]


def _are_ones(shape: Sequence[Sym]) -> list[bool]:
    return [size.value == 1 for size in shape]


def _one_sided(alike: list[bool], ones: list[list[bool]]) -> str | None:
    """Whether one of two tiles is a column or a row of the other."""
    for own, name in ((ones[1], "right"), (ones[0], "left")):
        if alike[0] and all(own[1:]):
            return f"column {name}"
        if own[0] and all(alike[1:]):
            return f"row {name}"
    return None


def _two_sided(ones: list[list[bool]]) -> str | None:
    """Whether one of two tiles is a single element, or they are a column and a row."""
    for own, other, side in ((ones[0], ones[1], "left"), (ones[1], ones[0], "right")):
        if all(own):
            return f"point {side}"
        if all(own[1:]) and other[0]:
            return f"cross {side}"
    return None


def spread(ctx: Context, node: ast.AST, a: Tensor, b: Tensor, form: str) -> tuple[Tensor, Tensor]:
    """Both tiles, repeated along the axes where they have one element and the other has more."""
    if form == "same":
        return a, b
    shape = spread_shape(ctx, a, b)
    return broadcast_to(ctx, node, a, shape), broadcast_to(ctx, node, b, shape)


def spread_shape(ctx: Context, a: Tensor, b: Tensor) -> tuple[Sym, ...]:
    """The longer of both sizes along each axis."""
    pairs = zip(a.shape or (), b.shape or (), strict=True)
    return tuple(y if _is_repeated(ctx, x, y) else x for x, y in pairs)


def _is_repeated(ctx: Context, own: Sym, other: Sym) -> bool:
    """Whether a size is one, and the other one may be more."""
    if own.value == 1:
        return True
    known = ctx.facts.same(own.poly, other.poly) or seen_same(ctx, own.poly, other.poly)
    return other.value != 1 and not known and seen_one(ctx, own.poly)


def _guard_ones(ctx: Context, small: Tensor, form: str) -> None:
    """A size that was 1 in every run has to be 1: the new kernel stops where it is not."""
    axes = range(1, len(small.shape or ())) if form.startswith("column") else (0,)
    for axis in axes:
        size = (small.shape or ())[axis]
        if size.value != 1:
            guard(ctx, f"{ctx.spell(size)} == 1")


def _of_one_shape(a: Tensor, b: Tensor) -> bool:
    """Whether two whole tiles of unknown rank take their shape from the same tensor."""
    if a.dims is not None or b.dims is not None:
        return False
    return a.storage is b.storage or (a.storage.like or "a") == (b.storage.like or "b")


def _sizes(tensor: Tensor) -> str:
    return f"({', '.join(s.text for s in tensor.shape or ())})"


def _assume_same(ctx: Context, a: Tensor, b: Tensor, node: ast.AST) -> None:
    names, shapes = zip(*(_shown(ctx, t) for t in (a, b)), strict=True)
    for axis, (x, y) in enumerate(zip(a.shape or (), b.shape or (), strict=False)):
        if sizes := differing_sizes(ctx, x.poly, y.poly):
            text = f"{names[0]} and {names[1]} are of one shape in some calls and not in others"
            raise Cannot(Reason.TILE_ARITHMETIC, f"{text}: dimension {axis} was {sizes}", node)
    ctx.report(
        Reason.TILE_ARITHMETIC,
        node,
        f"the shapes of {names[0]} and {names[1]} are not known to be equal",
        assumption=f"{shapes[0]} == {shapes[1]}",
    )


def _shown(ctx: Context, tensor: Tensor) -> tuple[str, str]:
    """A tile and its shape in words; a temporary, which a left statement does not make, by what it
    was loaded from or by its sizes.
    """
    name, source = tensor.storage.name, tensor.storage.loaded_from
    if name in ctx.generated and source is not None and source.storage.shape == tensor.shape:
        name = source.storage.name
    if name not in ctx.generated:
        return f"`{name}`", f"{name}.shape"
    if tensor.shape is None:
        return "a tile of unknown shape", "its shape"
    return f"a tile of {_sizes(tensor)}", _sizes(tensor)


def broadcast_to(
    ctx: Context,
    node: ast.AST,
    tile: Tensor,
    shape: tuple[Sym, ...] | None,
    target: Target = NOWHERE,
) -> Tensor:
    """A tile repeated along its axes of size one, where a view or a DMA can do it.

    What needs a new tile for all of that gets it under the name of `target`.
    """
    if shape is None or tile.shape is None or len(shape) != len(tile.shape):
        raise Cannot(Reason.FREE_BROADCAST, "a broadcast between shapes that are not known", node)
    pairs = list(zip(tile.shape, shape, strict=True))
    same = [ctx.facts.same(a.poly, b.poly) for a, b in pairs]
    if all(same):
        return tile
    if not same[0] and _is_row(ctx, tile.shape[0]):
        own = target if all(same[1:]) else NOWHERE
        tile = broadcast_partitions(ctx, node, tile, (shape[0], *tile.shape[1:]), own)
    return _free_broadcast(ctx, node, tile, shape)


def _is_row(ctx: Context, partitions: Sym) -> bool:
    """Whether a tile has one partition, by the source or in every run under an assert."""
    if partitions.value == 1:
        return True
    if not seen_one(ctx, partitions.poly):
        return False
    guard(ctx, f"{ctx.spell(partitions)} == 1")
    return True


def _free_broadcast(ctx: Context, node: ast.AST, tile: Tensor, shape: tuple[Sym, ...]) -> Tensor:
    """A view with step 0 along the free axes of size one."""
    dims, repeated = storage_dims(tile), _repeated(ctx, node, tile, shape)
    if not repeated:
        return tile
    if dims is None or tile.storage.shape is None:
        raise Cannot(Reason.FREE_BROADCAST, "a broadcast of a tile of unknown shape", node)
    if tile.storage.valid:
        raise Cannot(Reason.FREE_BROADCAST, "a broadcast of a tile that is filled in part", node)
    ctx.report(Reason.FREE_BROADCAST, node, "a broadcast is a view with step 0")
    kept = tuple(Dim(d.offset, tuple(t for t in d.terms if t[0] not in repeated)) for d in dims)
    return Tensor(tile.storage, shape, kept)


def _repeated(ctx: Context, node: ast.AST, tile: Tensor, shape: tuple[Sym, ...]) -> set[int]:
    """The free axes of size one that the result repeats."""
    repeated = set()
    for axis, (own, wish) in enumerate(zip(tile.shape or (), shape, strict=True)):
        if ctx.facts.same(own.poly, wish.poly) or seen_same(ctx, own.poly, wish.poly):
            continue
        if axis == 0 or not (own.value == 1 or seen_one(ctx, own.poly)):
            text = "a broadcast along free dimensions that are not 1"
            raise Cannot(Reason.FREE_BROADCAST, text, node)
        if own.value != 1:
            guard(ctx, f"{ctx.spell(own)} == 1")
        repeated.add(axis)
    return repeated


def broadcast_partitions(
    ctx: Context, node: ast.AST, row: Tensor, shape: tuple[Sym, ...], target: Target = NOWHERE
) -> Tensor:
    """A (1, F) row in all partitions.

    Read again from HBM with partition stride 0 where it comes straight from a load, else shuffled.
    """
    origin = _reread(ctx, row)
    if origin is None or row.dtype is None:
        return repeat_row(ctx, node, row, shape[0], target)
    ctx.report(
        Reason.PARTITION_BROADCAST, node, f"`{row.storage.name}` is loaded into every partition"
    )
    ctx.basis.append(f"`{row.storage.name}` is an unchanged load of `{origin.storage.name}`")
    ctx.use(row, "broadcast")
    dims = storage_dims(origin) or ()
    wide_shape = (shape[0], *row.shape[1:]) if row.shape else shape
    wide = _wide(ctx, node, f"{row.storage.name}_bcast", wide_shape, row.dtype, target)
    unrowed = tuple(replace(d, terms=tuple(t for t in d.terms if t[0] != 0)) for d in dims)
    if origin.storage.mentions is None:
        base = home(ctx, origin.storage)
    else:
        base = origin.storage.flat_name or origin.storage.name
    assert origin.storage.shape is not None
    text = base + pattern(ctx, origin.storage, unrowed, origin.storage.shape, wide_shape)
    ctx.emit_call("dma_copy", [("dst", spell(ctx, wide)), ("src", text)])
    return wide


def _wide(
    ctx: Context,
    node: ast.AST,
    hint: str,
    shape: tuple[Sym, ...],
    dtype: DType,
    target: Target,
) -> Tensor:
    """The new tile, under the name that the statement binds if that is all it does."""
    if target.name is None or target.view is not None:
        return temporary(ctx, hint, shape, dtype, "sbuf", node)
    return destination(ctx, Result(node, target, dtype, hint=hint), shape)


def _reread(ctx: Context, row: Tensor) -> Tensor | None:
    """The access in HBM that the row is an unchanged load of, if it can be repeated here."""
    origin = row.storage.loaded_from
    if origin is None or row.dims is not None or origin.storage.gather is not None:
        return None
    if origin.shape is None or origin.storage.shape is None or storage_dims(origin) is None:
        return None
    return origin if ctx.still_valid(origin.storage.mentions or frozenset()) else None


_ONE = Sym.number(1)


def repeat_row(
    ctx: Context, node: ast.AST, row: Tensor, count: Sym, target: Target = NOWHERE
) -> Tensor:
    """The row in `count` partitions of a new tile."""
    name = row.storage.name
    if row.buffer not in {"sbuf", "psum"} or row.shape is None or storage_dims(row) is None:
        raise Cannot(Reason.PARTITION_BROADCAST, f"`{name}` is not known to be a row on chip", node)
    ctx.report(Reason.PARTITION_BROADCAST, node, f"`{name}` is shuffled into every partition")
    limits = {axis: size for axis, size in valid_limits(ctx, row).items() if axis > 0}
    row = _in_first_partition(ctx, node, row, limits)
    shape = (count, *row.shape[1:])  # type: ignore[index]
    hint = f"{name}_bcast" if name.isidentifier() else "bcast"
    wide = _wide(ctx, node, hint, shape, own_dtype(ctx, row), target)
    ctx.use(row, "op")
    if count.value is not None and count.value <= QUADRANT:
        _shuffle(ctx, wide, row, limits, 0)
    else:
        start = Sym(Poly.atom(variable := ctx.fresh_name("quadrant")), variable)
        ctx.emit(f"for {variable} in range(0, {ctx.spell(count)}, {QUADRANT}):")
        _shuffle(ctx, _part(ctx, wide, start, count), row, limits, 1)
    return _written(ctx, wide, limits)


def _written(ctx: Context, tile: Tensor, limits: Limits) -> Tensor:
    ctx.wrote(tile.storage, "other")
    tile.storage.written, tile.storage.valid = True, dict(limits)
    return tile


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


def _shuffle(ctx: Context, wide: Tensor, row: Tensor, limits: Limits, depth: int) -> None:
    arguments = [
        ("dst", spell(ctx, wide, limits)),
        ("src", spell(ctx, row, limits)),
        ("shuffle_mask", f"[0] * {QUADRANT}"),
    ]
    name = f"{ctx.alias('nisa')}.nc_stream_shuffle"
    ctx.emit(call_text(name, arguments, ctx.width - 4 * depth), depth)


def _in_first_partition(ctx: Context, node: ast.AST, row: Tensor, limits: Limits) -> Tensor:
    """The row itself, or a copy of it where it starts at another partition."""
    dims = storage_dims(row)
    assert dims is not None and row.shape is not None
    if dims[row.storage.blocks].offset.value == 0:
        return row
    if row.buffer != "sbuf":
        raise Cannot(
            Reason.PARTITION_BROADCAST,
            f"a row of `{row.storage.name}`, in PSUM, other than 0",
            node,
        )
    first = temporary(ctx, "row", (_ONE, *row.shape[1:]), own_dtype(ctx, row), "sbuf", node)
    ctx.use(row, "op")
    arguments = [("dst", spell(ctx, first, limits)), ("src", spell(ctx, row, limits))]
    ctx.emit_call("dma_copy", arguments)
    return _written(ctx, first, limits)
