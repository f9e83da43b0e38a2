"""Bytes as digits: row, column, byte inside an element, each affine in the iterations.

A byte address is split by the strides of its buffer wherever an access stays inside a row while its
loops run. Two accesses overlap where they overlap in every digit, which is decided digit by digit.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from neuroncore.integers import Digit, digit
from neuroncore.integers.digits import Ranges as Trips
from tokenplan.kernel.model import PLAIN, Access, Buffer


def linear(access: Access) -> Digit:
    """All of an access as one digit that counts bytes."""
    offset, steps = access.offset, []
    for count, stride in zip(access.shape, access.strides, strict=True):
        if count > 1 and stride:
            offset = offset if stride > 0 else offset + stride * (count - 1)
            steps.append((count, abs(stride)))
    return digit(1, offset, access.width, tuple(steps))


def blurred(access: Access) -> Access:
    """With every byte to which the swizzle could move one of its bytes."""
    if not access.swizzle:
        return access
    by = (1 << access.swizzle.width) - 1
    return replace(access, offset=access.offset - by, width=access.width + 2 * by, swizzle=PLAIN)


def levels_of(
    buffer: Buffer, a: Access, b: Access, trips: Trips
) -> tuple[tuple[Digit, Digit], ...]:
    """The digits of both accesses, the most significant first."""
    rest, found = (linear(a), linear(b)), []
    for radix in radices(buffer):
        one, other = (level.split(radix, trips) for level in rest)
        if one is None or other is None:
            continue
        found.append((one[0], other[0]))
        rest = one[1], other[1]
    return (*found, rest)


def digits_of(access: Access, buffer: Buffer, trips: Trips) -> tuple[Digit, ...] | None:
    """The digits of one access; None where it crosses a row of any dimension."""
    rest, found = linear(access), []
    for radix in radices(buffer):
        both = rest.split(radix, trips)
        if both is None:
            return None
        found.append(both[0])
        rest = both[1]
    return (*found, rest)


def radices(buffer: Buffer) -> list[int]:
    """Bytes of a row of each dimension but the first, outermost first."""
    shape = buffer.shape
    found = [prod(shape[d:]) * buffer.itemsize for d in range(1, len(shape))]
    return [r for r in dict.fromkeys(found) if r > 1]
