"""The one way to write what a layout means.

Bits of an index change the address by XOR below some bit W and by a sum above. The smallest such W
is a property of the function, and so are the bits that each index bit flips and the sums above;
these are written as strides that are powers of two (the highest flipped bit below W) and a swizzle
that adds the others. Two layouts of one shape are the same function exactly where these agree.
W is 0, and the swizzle gone, exactly where no address bit is flipped by two index bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroncore.layout._bits import Parts, from_parts, take_apart
from neuroncore.layout._factors import Factors, merged
from neuroncore.layout.swizzle import Swizzle

if TYPE_CHECKING:
    from neuroncore.layout.descriptor import Layout


def normal_form(layout: Layout) -> tuple[tuple[Factors, ...], int, Swizzle]:
    """Factors, offset and swizzle of the canonical layout."""
    if not layout.swizzle:
        return tuple(map(merged, layout.dims)), layout.offset, layout.swizzle
    parts = take_apart(layout)
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
