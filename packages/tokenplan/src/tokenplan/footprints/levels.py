"""Bytes as digits: row, column, byte inside an element, each affine in the iterations.

A byte address is split by the strides of its buffer wherever an access stays inside a row while its
loops run. Two accesses then meet where they meet in every digit, which is decided digit by digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from neuroncore.program import Affine
from tokenplan.model import PLAIN, Access, Buffer

Trips = Mapping[str, tuple[int, int]]
"""First and last iteration of each loop."""


@dataclass(frozen=True, slots=True)
class Level:
    """One digit of an access: offset + Σ coefficient · x + [0, extent), 0 <= x < count."""

    radix: int
    """Bytes that one step of the digit is."""
    offset: Affine
    extent: int
    steps: tuple[tuple[int, int], ...] = ()
    """(count, coefficient) of what is not contiguous, coefficients positive."""

    def bounds(self, trips: Trips) -> tuple[int, int]:
        """The least value and one past the greatest, over all iterations."""
        constant = self.offset.constant
        low, high = self.offset.bounds(trips) if self.offset.terms else (constant, constant)
        return low, high + sum([(n - 1) * c for n, c in self.steps]) + self.extent

    def value(self, at: Mapping[str, int], steps: Sequence[int]) -> int:
        """The first value in these iterations, at these positions of its steps."""
        moved = sum(c * x for (_, c), x in zip(self.steps, steps, strict=True))
        return self.offset.value(at) + moved

    def split(self, radix: int, trips: Trips) -> tuple[Level, Level] | None:
        """A digit above `radix` bytes and one below; None where the access crosses multiples."""
        if any(c >= radix and c % radix for _, c in self.steps):
            return None
        if not self.offset.terms:
            return self._split_still(radix)
        above, below = _split_terms(self.offset, radix)
        steps = tuple(s for s in self.steps if s[1] < radix)
        upper = tuple((n, c // radix) for n, c in self.steps if c >= radix)
        low, high = Affine(0, below).bounds(trips) if below else (0, 0)
        reach = high - low + sum((n - 1) * c for n, c in steps)
        first = (self.offset.constant + low) % radix
        if first + reach + self.extent <= radix:
            rest, extent, up = first - low, self.extent, 1
        elif not (reach or first or self.extent % radix):
            rest, extent, up = -low, radix, self.extent // radix
        else:
            return None
        base = (self.offset.constant - rest) // radix
        return (
            _merged(self.radix * radix, Affine(base, above), up, upper),
            _merged(self.radix, Affine(rest, below), extent, steps),
        )

    def _split_still(self, radix: int) -> tuple[Level, Level] | None:
        """The same where no loop moves it."""
        up, first = divmod(self.offset.constant, radix)
        count, extent, upper, steps = 1, self.extent, self.steps, self.steps
        if steps:
            upper = tuple([(n, c // radix) for n, c in steps if c >= radix])
            steps = tuple([step for step in steps if step[1] < radix])
        reach = sum([(n - 1) * c for n, c in steps])
        if first + reach + extent > radix:
            if reach or first or extent % radix:
                return None
            count, extent = extent // radix, radix
        return (
            _merged(self.radix * radix, Affine(up), count, upper),
            _merged(self.radix, Affine(first), extent, steps),
        )


Terms = tuple[tuple[str, int], ...]


def _split_terms(offset: Affine, radix: int) -> tuple[Terms, Terms]:
    """The terms in whole multiples of the radix (counted in it), and what is left of them."""
    if not offset.terms:
        return (), ()
    above = tuple((name, _toward_zero(c, radix)) for name, c in offset.terms)
    below = tuple((n, c - q * radix) for (n, c), (_, q) in zip(offset.terms, above, strict=True))
    return tuple(term for term in above if term[1]), tuple(term for term in below if term[1])


def _toward_zero(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


def _merged(radix: int, offset: Affine, extent: int, steps: tuple[tuple[int, int], ...]) -> Level:
    """A level whose contiguous steps are part of its extent."""
    if not steps:
        return Level(radix, offset, extent)
    left = []
    for count, coefficient in sorted(steps, key=lambda step: step[1]):
        if coefficient <= extent:
            extent += (count - 1) * coefficient
        else:
            left.append((count, coefficient))
    return Level(radix, offset, extent, tuple(left))


def linear(access: Access) -> Level:
    """All of an access as one digit that counts bytes."""
    offset, steps = access.offset, []
    for count, stride in zip(access.shape, access.strides, strict=True):
        if count > 1 and stride:
            offset = offset if stride > 0 else offset + stride * (count - 1)
            steps.append((count, abs(stride)))
    return _merged(1, offset, access.width, tuple(steps))


def blurred(access: Access) -> Access:
    """With every byte to which the swizzle could move one of its bytes."""
    if not access.swizzle:
        return access
    by = (1 << access.swizzle.width) - 1
    return replace(access, offset=access.offset - by, width=access.width + 2 * by, swizzle=PLAIN)


def levels_of(
    buffer: Buffer, a: Access, b: Access, trips: Trips
) -> tuple[tuple[Level, Level], ...]:
    """The digits of both accesses, the most significant first."""
    rest, found = (linear(a), linear(b)), []
    for radix in radices(buffer):
        one, other = (level.split(radix, trips) for level in rest)
        if one is None or other is None:
            continue
        found.append((one[0], other[0]))
        rest = one[1], other[1]
    return (*found, rest)


def digits_of(access: Access, buffer: Buffer, trips: Trips) -> tuple[Level, ...] | None:
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
