"""Tiles of a layout as tiles of a strided tensor, with the index arithmetic.

A tile view is a tensor with one stride per dimension that is cut into tiles of powers of two; it
has no XOR. Dimensions that are tiled in memory become several dimensions. A swizzle whose sources
and targets are bits of tile indices becomes XOR of indices; one that permutes whole rows of a
dimension becomes a list of rows. Any other one needs an address per element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from neuroncore.layout.canonical import IndexBit, split_bits
from neuroncore.layout.factors import FactoredMap, Factors, cut, merged

PARTITION, GATHER, POINTERS = "partition_view", "gather_scatter_view", "pointer_tile"


@dataclass(frozen=True, slots=True)
class ViewDim:
    """One dimension of the tensor: extent, stride, extent of a tile, and its index.

    The index is digit (i // divisor) % modulus of the tile index i of dimension `dim` of the
    layout; modulus 0: without a remainder. Dimensions inside a tile have index 0 (modulus 1).
    """

    size: int
    stride: int
    tile: int
    dim: int
    divisor: int = 1
    modulus: int = 0


@dataclass(frozen=True, slots=True)
class Flip:
    """`mask` is flipped in the index of view dimension `target` where the source bit is set.

    The source is bit `bit` of the tile index of dimension `dim` or, where `is_local`, of the
    position inside the tile. In a list of rows the mask counts rows, else tiles.
    """

    target: int
    mask: int
    dim: int
    bit: int
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class TileView:
    """How the tiles of a layout are accessed; `reason` says why as pointers."""

    kind: str
    tile: tuple[int, ...]
    dims: tuple[ViewDim, ...] = ()
    offset: int = 0
    flips: tuple[Flip, ...] = ()
    rows: int | None = None
    """The view dimension that a list of rows indexes."""
    reason: str | None = None

    @property
    def is_view(self) -> bool:
        return self.kind != POINTERS

    def __str__(self) -> str:
        if self.reason:
            return f"pointer tile: {self.reason}"
        extra = f" with {len(self.flips)} XOR of index bits" if self.flips else ""
        return f"{self.kind} of {len(self.dims)} dimensions{extra}"


def lower(layout: FactoredMap, tile: Sequence[int]) -> TileView:
    """The view of a layout for tiles of these extents, aligned to multiples of them.

    >>> from neuroncore.layout import Layout, Swizzle
    >>> print(lower(Layout.of((128, 64)), (64, 64)))
    partition_view of 2 dimensions
    >>> print(lower(Layout.of((2, 2), swizzle=Swizzle.xor(1, 0, 1)), (2, 2)))
    pointer tile: address bit 0, inside the tile, is flipped by bit 0 of dimension 0

    Raises ValueError for extents that are not powers of two, one per dimension.
    """
    extents = tuple(tile)
    _check_tile(layout, extents)
    try:
        dims = tuple(
            found
            for dim, (factors, extent) in enumerate(zip(layout.dims, extents, strict=True))
            for found in _dims(dim, merged(factors), extent)
        )
    except ValueError as wrong:
        return TileView(POINTERS, extents, reason=str(wrong))
    found = TileView(PARTITION, extents, dims, layout.offset)
    bad = next((at for at in dims if at.stride < 1 < at.size), None)
    if bad is not None:
        reason = f"dimension {bad.dim} has stride {bad.stride}, and strides of a view are positive"
        return _pointers(found, reason)
    return _swizzled(layout, found) if layout.swizzle else found


def _check_tile(layout: FactoredMap, extents: tuple[int, ...]) -> None:
    if len(extents) != len(layout.dims) or not all(n > 0 and n.bit_count() == 1 for n in extents):
        raise ValueError(
            f"a tile has a power of two for each of the {len(layout.dims)} dimensions; "
            f"got {extents}"
        )


def _dims(dim: int, factors: Factors, extent: int) -> Iterator[ViewDim]:
    """The view dimensions of one dimension, outermost first."""
    if len(factors) < 2:
        size, stride = factors[0] if factors else (1, 1)
        yield ViewDim(size, stride, extent, dim)
        return
    outer, inner = cut(factors, extent)
    divisor, digits = 1, []
    for at, (size, stride) in reversed(list(enumerate(outer))):
        digits.append(ViewDim(size, stride, 1, dim, divisor, size if at else 0))
        divisor *= size
    if digits and inner and digits[0].stride == inner[0][0] * inner[0][1]:  # one factor, cut
        (size, stride), last = inner[0], digits[0]
        digits[0] = replace(last, size=last.size * size, stride=stride, tile=size)
        inner = inner[1:]
    yield from reversed(digits)
    yield from (ViewDim(size, stride, size, dim, 1, 1) for size, stride in inner)


# -- swizzles --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Mixed:
    """An index bit that flips an address bit beside its own, which is that of another."""

    source: IndexBit
    target: IndexBit
    address_bit: int


def _swizzled(layout: FactoredMap, view: TileView) -> TileView:
    parts = split_bits(layout)
    if layout.swizzle.constant or layout.offset % (1 << parts.width):
        return _pointers(view, "the swizzle flips bits of every address")
    owners = {bit.step: bit for bit in parts.bits}
    mixed = []
    for bit, at in ((b, at) for b in parts.bits for at in _others(b, parts.width)):
        if 1 << at not in owners:
            return _pointers(view, f"address bit {at} is not the step of an index bit")
        mixed.append(_Mixed(bit, owners[1 << at], at))
    return _with_flips(view, mixed)


def _with_flips(view: TileView, mixed: Sequence[_Mixed]) -> TileView:
    inside = [m for m in mixed if _is_local(view, m.target) or _is_local(view, m.source)]
    if not inside:
        return replace(view, flips=tuple(_flip(view, m) for m in mixed))
    return _rows(view, mixed) or _pointers(view, _blocking(inside, view))


def _others(bit: IndexBit, width: int) -> list[int]:
    """The address bits that an index bit flips beside its own."""
    others = bit.flips ^ bit.step if bit.step < 1 << width else bit.flips
    return [at for at in range(others.bit_length()) if others >> at & 1]


def _pointers(view: TileView, reason: str) -> TileView:
    return TileView(POINTERS, view.tile, reason=reason)


def _is_local(view: TileView, bit: IndexBit) -> bool:
    return 1 << bit.bit < view.tile[bit.dim]


def _blocking(inside: Sequence[_Mixed], view: TileView) -> str:
    said = [
        f"address bit {m.address_bit}{', inside the tile,' if _is_local(view, m.target) else ''} "
        f"is flipped by bit {m.source.bit} of dimension {m.source.dim}"
        for m in sorted(inside, key=lambda m: -m.address_bit)
    ]
    return "; ".join(said)


def _flip(view: TileView, mixed: _Mixed, rows: int | None = None) -> Flip:
    """The flip of a view dimension's index by one index bit."""
    step, source = mixed.target.step, mixed.source
    is_local = _is_local(view, source)
    bit = source.bit if is_local else source.bit - view.tile[source.dim].bit_length() + 1
    for at, dim in enumerate(view.dims):
        unit = dim.stride if at == rows else dim.stride * dim.tile
        if dim.dim == mixed.target.dim and dim.stride <= step < dim.stride * dim.size:
            return Flip(at, step // unit, source.dim, bit, is_local)
    raise AssertionError("an index bit steps over a view dimension")


def _rows(view: TileView, mixed: Sequence[_Mixed]) -> TileView | None:
    """The view whose rows of one dimension are listed, where the swizzle permutes only these."""
    for at, dim in enumerate(view.dims):
        alone = sum(other.dim == dim.dim for other in view.dims) == 1
        if alone and dim.tile > 1 and all(_is_of_rows(view, m, dim.dim) for m in mixed):
            flips = tuple(_flip(view, m, at) for m in mixed)
            return replace(view, kind=GATHER, flips=flips, rows=at)
    return None


def _is_of_rows(view: TileView, mixed: _Mixed, dim: int) -> bool:
    """Whether a bit of the rows of `dim` is flipped by another one, or by a tile index."""
    is_known = mixed.source.dim == dim or not _is_local(view, mixed.source)
    return mixed.target.dim == dim and is_known
