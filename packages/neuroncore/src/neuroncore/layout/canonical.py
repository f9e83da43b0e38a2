"""Canonical form and inverse of a layout, by its index bits.

A layout is taken apart into index bits, which a swizzle mixes, and digits above, which it does not.
With w the width of the swizzle, address = 2**w · (high) + swizzle(low), where low is the XOR of one
column per index bit and of a constant, and high an ordinary sum. For this, steps below 2**w must be
powers of two in number and must not carry: that is what "restricted" means here.

Bits of an index change the address by XOR below some bit W and by a sum above. The smallest such W
is a property of the function, and so are the bits that each index bit flips and the sums above;
these are written as strides that are powers of two (the highest flipped bit below W) and a swizzle
that adds the others. Two layouts of one shape are the same function exactly where these agree.
W is 0, and the swizzle gone, exactly where no address bit is flipped by two index bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from neuroncore.layout.factors import FactoredMap, Factors, merged
from neuroncore.layout.swizzle import Swizzle


@dataclass(frozen=True, slots=True)
class IndexBit:
    """One bit of the index of a dimension: its step before the swizzle; what it flips after it."""

    dim: int
    bit: int
    step: int
    flips: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Index bits in ascending order, and per dimension the factors above its bits."""

    width: int
    bits: tuple[IndexBit, ...]
    above: tuple[Factors, ...]
    start: int
    """The swizzled low part of the offset."""
    high: int
    """The offset without its low part."""


def split_bits(layout: FactoredMap) -> Parts:
    """The parts of `layout`; raises ValueError where its swizzle is not restricted as above."""
    width = layout.swizzle.width
    low = (1 << width) - 1
    bits: list[IndexBit] = []
    above: list[Factors] = []
    taken, owner = layout.offset & low, "the offset"
    owners = {taken: owner}
    for dim, factors in enumerate(layout.dims):
        steps, rest = _split(factors, width, dim)
        above.append(rest)
        for bit, step in enumerate(steps):
            carried = step & low & taken
            if carried:
                _reject_carry(dim, bit, carried, owners)
            taken |= step & low
            owners[step & low] = f"bit {bit} of dimension {dim}"
            bits.append(IndexBit(dim, bit, step, layout.swizzle.linear(step & low)))
    start = layout.swizzle(layout.offset & low)
    return Parts(width, tuple(bits), tuple(above), start, layout.offset & ~low)


def _split(factors: Factors, width: int, dim: int) -> tuple[list[int], Factors]:
    """The steps of a dimension's low index bits, lowest first, and the factors above them.

    All bits up to the last one whose step is not a multiple of 2**width.
    """
    digits = list(_at_periods(factors, width))  # fastest first
    low = [at for at, (_, stride) in enumerate(digits) if stride % (1 << width)]
    if not low:
        return [], factors
    steps: list[int] = []
    for size, stride in digits[: low[-1] + 1]:
        if size & size - 1:
            raise ValueError(
                f"dimension {dim} has {size} steps of {stride} below bit {width}, the width of "
                "the swizzle; expected a power of two of them there (tiles and slices aligned to "
                "powers of two)"
            )
        steps += [stride << bit for bit in range(size.bit_length() - 1)]
    return steps, tuple(reversed(digits[low[-1] + 1 :]))


def _at_periods(factors: Factors, width: int) -> Iterator[tuple[int, int]]:
    """Factors cut where their step becomes a multiple of 2**width, fastest first."""
    for size, stride in reversed(factors):
        period = (1 << width) // gcd(stride, 1 << width)
        if 1 < period < size and size % period == 0:
            yield period, stride
            yield size // period, stride * period
        else:
            yield size, stride


def _reject_carry(dim: int, bit: int, carried: int, owners: dict[int, str]) -> None:
    other = next(name for column, name in owners.items() if column & carried)
    raise ValueError(
        f"bit {bit} of dimension {dim} and {other} both step over address bit "
        f"{carried.bit_length() - 1}, which the swizzle uses; expected steps that share no address "
        "bit there"
    )


def from_parts(dims: int, bits: list[tuple[int, int]], above: tuple[Factors, ...]) -> list[Factors]:
    """Factors per dimension, from (dimension, step) of each bit, lowest first, and those above."""
    steps: list[list[tuple[int, int]]] = [[] for _ in range(dims)]
    for dim, step in bits:
        steps[dim].insert(0, (2, step))
    return [(*above[dim], *steps[dim]) for dim in range(dims)]


# -- canonical form -------------------------------------------------------------------------------


def normal_form(layout: FactoredMap) -> tuple[tuple[Factors, ...], int, Swizzle]:
    """Factors, offset and swizzle of the canonical layout."""
    if not layout.swizzle:
        return tuple(map(merged, layout.dims)), layout.offset, layout.swizzle
    parts = split_bits(layout)
    width = needed_width(parts)
    low = (1 << width) - 1
    columns = [1 << bit for bit in range(width)]
    bits = []
    for bit in parts.bits:
        flipped = bit.flips & low
        leading = 1 << flipped.bit_length() - 1 if flipped else 0
        if flipped:
            columns[flipped.bit_length() - 1] = flipped
        bits.append((bit.dim, leading + _sum_above(parts, bit.step, bit.flips, width)))
    dims = from_parts(len(layout.dims), bits, parts.above)
    offset = parts.high + (parts.start & ~low)
    return tuple(map(merged, dims)), offset, Swizzle(tuple(columns), parts.start & low)


def _sum_above(parts: Parts, step: int, flips: int, width: int) -> int:
    """By how much a bit changes the address in bits `width` and up, where it flips its own bits."""
    low = (1 << width) - 1
    flipped = (parts.start ^ flips) & ~low
    return (step >> parts.width << parts.width) + flipped - (parts.start & ~low)


def shared_bits(parts: Parts) -> int:
    """The address bits that two or more index bits flip."""
    seen = shared = 0
    for bit in parts.bits:
        shared |= seen & bit.flips
        seen |= bit.flips
    return shared


def needed_width(parts: Parts) -> int:
    """The smallest W from which on index bits only add, with distinct leading bits below it."""
    width = shared_bits(parts).bit_length()
    while width and not _leads_differ(parts, width):
        width += 1
    return width


def _leads_differ(parts: Parts, width: int) -> bool:
    low = (1 << width) - 1
    leads = [(bit.flips & low).bit_length() for bit in parts.bits if bit.flips & low]
    return len(leads) == len(set(leads))


# -- inverse --------------------------------------------------------------------------------------


def inverse_of(layout: FactoredMap) -> tuple[tuple[Factors, ...], int, Swizzle]:
    """Factors, offset and swizzle of the inverse of a canonical layout; see Layout.inverse."""
    digits = _digits(layout)
    expected, lowest = 1, layout.offset
    for _, stride, size, _ in digits:
        if abs(stride) != expected:
            raise _no_bijection(layout)
        expected *= size
        lowest += min(0, (size - 1) * stride)
    if lowest:
        raise _no_bijection(layout)
    factors = tuple((n, w if s > 0 else -w) for _, s, n, w in reversed(digits))
    offset = sum((n - 1) * w for _, s, n, w in digits if s < 0)
    swizzle = _through(layout.swizzle.inverse(), digits) if layout.swizzle else layout.swizzle
    return (factors,), offset, swizzle


def _digits(layout: FactoredMap) -> list[tuple[int, int, int, int]]:
    """(|stride|, stride, size, weight in the row-major index) of each factor, by rising stride."""
    found, weight = [], 1
    for factors in reversed(layout.dims):
        for size, stride in reversed(factors):
            found.append((abs(stride), stride, size, weight))
            weight *= size
    return sorted(found)


def _no_bijection(layout: FactoredMap) -> ValueError:
    return ValueError(
        f"only a layout that takes each of 0 to {layout.size - 1} once has an inverse; got {layout}"
    )


def _through(swizzle: Swizzle, digits: list[tuple[int, int, int, int]]) -> Swizzle:
    """The swizzle of addresses as one of indices: bit k of an address is a bit of the index."""
    images = [_image(1 << bit, digits) for bit in range(swizzle.width)]
    columns: dict[int, int] = {}
    for bit in range(swizzle.width):
        moved = swizzle.linear(1 << bit)
        columns[images[bit].bit_length() - 1] = _move(moved, images)
    height = max(columns, default=-1) + 1
    try:
        found = tuple(columns.get(bit, 1 << bit) for bit in range(height))
        return Swizzle(found, _move(swizzle.constant, images))
    except ValueError as wrong:
        raise ValueError(
            "the inverse would mix lower bits of the index into higher ones, which a restricted "
            "swizzle does not express"
        ) from wrong


def _move(bits: int, images: list[int]) -> int:
    return sum(image for bit, image in enumerate(images) if bits >> bit & 1)


def _image(address: int, digits: list[tuple[int, int, int, int]]) -> int:
    """The row-major index of a power-of-two address before the swizzle."""
    for _, stride, size, weight in digits:
        if stride <= address < stride * size:
            image = address // stride * weight
            if address % stride == 0 and image & image - 1 == 0:
                return image
    raise ValueError(
        f"address bit {address.bit_length() - 1}, which the swizzle uses, is not a bit of the "
        "row-major index"
    )
