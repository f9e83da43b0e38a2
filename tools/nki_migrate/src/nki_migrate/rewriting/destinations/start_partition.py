"""Start partitions of views on chip: 0, 32, 64 or 96 [NKI architecture guide].

0.1 took views from any partition on. What is read is copied to the first partitions by way of
HBM; a result has no such form, and is left to a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuroncore.targets import PARTITIONS, QUADRANT
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Dim, Part, Slice, Sym, Tensor
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.destinations.allocation import temporary
from nki_migrate.rewriting.inference.observations import seen_maximum
from nki_migrate.rewriting.views.tensors import hint_of, own_dtype
from nki_migrate.rewriting.views.view_text import spell

_ONE, _ZERO = Sym.number(1), Sym.number(0)
_STARTS = "start at 0, 32, 64 or 96"


def starts_legally(start: Sym, size: Sym) -> bool:
    """Whether so many partitions may start there."""
    if start.value is None or size.value is None:
        return start.value == 0
    return start.value % _step(size) == 0


def check_mask_start(part: Part | None) -> None:
    """Raise Cannot where a mask has an instruction start where it may not."""
    if isinstance(part, Slice) and not starts_legally(part.start, part.extent):
        text = f"a mask from partition `{part.start.text}` on: {_STARTS}"
        raise Cannot(Reason.OTHER_MASK, text)


def reject_start(ctx: Context, dst: Tensor) -> None:
    """Raise Cannot where a result starts at a partition that it may not start at."""
    if (start := _wrong_start(ctx, dst)) is not None:
        text = f"a result in `{dst.storage.name}` from partition `{start.text}` on: {_STARTS}"
        raise Cannot(Reason.PERMUTED_AXES, text)


def from_first_partition(ctx: Context, tensor: Tensor) -> Tensor:
    """The view, or a copy of it in the first partitions where it starts as none may."""
    placed = readable(ctx, tensor)
    if placed is tensor:
        return tensor
    assert placed.shape is not None
    rows = _temporary(ctx, tensor, "rows", placed.shape)
    _copy(ctx, rows, placed)
    dims = tuple(_whole_axis(d) for d in (tensor.dims or ())[tensor.storage.blocks :])
    return replace(rows, shape=tensor.shape, dims=None if dims == _every(placed.shape) else dims)


def readable(ctx: Context, tensor: Tensor, *, is_cut: bool = False) -> Tensor:
    """The view, or a part of a copy of its tile in HBM where it starts as none may: for DMA.

    `is_cut`: a mask leaves part of its axes.
    """
    start = _wrong_start(ctx, tensor)
    if start is None:
        return tensor
    storage, dims = tensor.storage, (tensor.dims or ())[tensor.storage.blocks :]
    counts = {len(d.terms) for d in dims}
    if tensor.buffer != "sbuf" or not counts <= ({1} if is_cut else {0, 1}):
        text = f"`{storage.name}` from partition `{start.text}` on: {_STARTS}"
        raise Cannot(Reason.PERMUTED_AXES, text)
    if storage.shape is None or tensor.shape is None:
        raise Cannot(Reason.UNKNOWN_RANK, f"the shape of `{storage.name}` is not known")
    return _in_hbm(ctx, tensor, [_extent(d, tensor.shape) for d in dims])


def _in_hbm(ctx: Context, view: Tensor, sizes: Sequence[Sym]) -> Tensor:
    """What a view is, of a copy of its tile in HBM, with an axis for each dimension."""
    storage, blocks, dims = view.storage, view.storage.blocks, view.dims or ()
    tile = Tensor(storage, shape := (storage.shape or ())[blocks:])
    if blocks:
        tile = replace(tile, dims=(*dims[:blocks], *_every(shape)))
    copy = _temporary(ctx, view, "hbm", shape)
    _copy(ctx, copy, tile)
    steps = [d.terms[0][1] if d.terms else _ONE for d in dims[blocks:]]
    picked = [Dim(d.offset, ((k, steps[k]),)) for k, d in enumerate(dims[blocks:])]
    return Tensor(copy.storage, tuple(sizes), tuple(picked))


def _extent(dim: Dim, shape: tuple[Sym, ...]) -> Sym:
    return shape[dim.terms[0][0]] if dim.terms else _ONE


def _whole_axis(dim: Dim) -> Dim:
    return Dim(_ZERO, tuple((axis, _ONE) for axis, _ in dim.terms))


def _every(sizes: Sequence[Sym]) -> tuple[Dim, ...]:
    return tuple(Dim(_ZERO, ((axis, _ONE),)) for axis in range(len(sizes)))


def _temporary(ctx: Context, view: Tensor, word: str, sizes: tuple[Sym, ...]) -> Tensor:
    assert ctx.statement is not None
    buffer = "hbm" if word == "hbm" else "sbuf"
    own = own_dtype(ctx, view)
    return temporary(ctx, hint_of(view, word), sizes, own, buffer, ctx.statement)


def _copy(ctx: Context, dst: Tensor, src: Tensor) -> None:
    ctx.emit_call("dma_copy", [("dst", spell(ctx, dst)), ("src", spell(ctx, src))])


def _wrong_start(ctx: Context, tensor: Tensor) -> Sym | None:
    """The partition that a view on chip starts at, where no instruction may access it."""
    blocks = tensor.storage.blocks
    if tensor.buffer not in {"sbuf", "psum"} or tensor.dims is None or len(tensor.dims) <= blocks:
        return None
    first = tensor.dims[blocks]
    sizes = tensor.shape or ()
    size = sizes[first.terms[0][0]] if first.terms and sizes else _ONE
    return None if _may_start(ctx, first.offset.poly, _step(size)) else first.offset


def _step(size: Sym) -> int:
    """Starts of so many partitions are multiples of this."""
    count = size.value or 1
    return next((n for n in (QUADRANT, 2 * QUADRANT) if count <= n), PARTITIONS)


def _may_start(ctx: Context, start: Poly, step: int) -> bool:
    """Whether a view may start there: by the source, by the runs, or as no loop counts it."""
    start = ctx.facts.reduced(start)
    rest = Poly.of({m: c for m, c in start.terms if c % step})
    if rest.constant:
        return False
    if ctx.facts.divides(step, rest) or ctx.facts.proves_at_least(Poly.number(0) - start, 0):
        return True  # the latter in a loop of one iteration
    if seen := ctx.numbers.get(rest.single_atom or ""):
        return all(number % step == 0 for number in seen)
    largest = seen_maximum(ctx, start)
    if largest is not None:
        return largest % step == 0
    return not rest.atoms() & ctx.facts.ranges.keys()
