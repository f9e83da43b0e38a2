"""Integers as digits of a mixed radix, each digit affine in variables.

A number is split by radices wherever its lower digit stays below the radix for all values of the
variables. Two sets of numbers then overlap where they overlap in every digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuroncore.integers.affine import Affine

Ranges = Mapping[str, tuple[int, int]]
"""First and last value of each variable."""
Steps = tuple[tuple[int, int], ...]
"""(count, coefficient) of each step."""


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of a set of integers: offset + Σ coefficient · x + [0, extent), 0 <= x < count."""

    radix: int
    """The weight of the digit: its value counts multiples of `radix`."""
    offset: Affine
    extent: int
    steps: Steps = ()
    """(count, coefficient) of the steps that are not contiguous, coefficients positive."""

    def bounds(self, ranges: Ranges) -> tuple[int, int]:
        """The least value and one past the greatest, over all values of the variables."""
        constant = self.offset.constant
        low, high = self.offset.bounds(ranges) if self.offset.terms else (constant, constant)
        return low, high + sum([(n - 1) * c for n, c in self.steps]) + self.extent

    def value(self, at: Mapping[str, int], steps: Sequence[int]) -> int:
        """The first value for these values of the variables, at these positions of its steps."""
        moved = sum(c * x for (_, c), x in zip(self.steps, steps, strict=True))
        return self.offset.value(at) + moved

    def split(self, radix: int, ranges: Ranges) -> tuple[Digit, Digit] | None:
        """The digits above and below `radix`; None where the lower one would carry."""
        if any(c >= radix and c % radix for _, c in self.steps):
            return None
        if not self.offset.terms:
            return self._split_constant(radix)
        above, below = _split_terms(self.offset, radix)
        steps = tuple(s for s in self.steps if s[1] < radix)
        upper = tuple((n, c // radix) for n, c in self.steps if c >= radix)
        low, high = Affine(0, below).bounds(ranges) if below else (0, 0)
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
            digit(self.radix * radix, Affine(base, above), up, upper),
            digit(self.radix, Affine(rest, below), extent, steps),
        )

    def _split_constant(self, radix: int) -> tuple[Digit, Digit] | None:
        """The same for a constant offset."""
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
            digit(self.radix * radix, Affine(up), count, upper),
            digit(self.radix, Affine(first), extent, steps),
        )


Terms = tuple[tuple[str, int], ...]


def _split_terms(offset: Affine, radix: int) -> tuple[Terms, Terms]:
    """The terms in whole multiples of the radix, counted in it, and their remainders."""
    if not offset.terms:
        return (), ()
    above = tuple((name, _toward_zero(c, radix)) for name, c in offset.terms)
    below = tuple((n, c - q * radix) for (n, c), (_, q) in zip(offset.terms, above, strict=True))
    return tuple(term for term in above if term[1]), tuple(term for term in below if term[1])


def _toward_zero(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


def digit(radix: int, offset: Affine, extent: int, steps: Steps) -> Digit:
    """A digit whose contiguous steps are part of its extent."""
    if not steps:
        return Digit(radix, offset, extent)
    left = []
    for count, coefficient in sorted(steps, key=lambda step: step[1]):
        if coefficient <= extent:
            extent += (count - 1) * coefficient
        else:
            left.append((count, coefficient))
    return Digit(radix, offset, extent, tuple(left))
