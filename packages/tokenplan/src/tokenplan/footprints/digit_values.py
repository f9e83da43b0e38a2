"""The values of a digit that no loop moves, one by one: as the bits of an integer."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

from neuroncore.integers import Digit
from neuroncore.program import Affine
from tokenplan.footprints.digits import linear
from tokenplan.kernel.model import Access, Mode

MOST = 1_024
"""So many values of a digit are quicker to go through than a set of them is to ask."""

WIDEST = 2**20
"""So far may the first value be from the last one."""

Steps = tuple[tuple[int, int], ...]


class Values(NamedTuple):
    """first + [0, extent) + Σ coefficient · x, 0 <= x < count: all are from `first` to `end`."""

    radix: int
    first: int
    end: int
    extent: int
    steps: Steps
    size: int
    """The number of values, counted twice where two steps reach them; 1 without steps, as nothing
    is gone through.
    """
    bits: int
    """Bit n: first + n is one of them, up to `end`; without steps all bits are set."""

    def moved(self, by: int) -> Values:
        """The same values, each greater by so much."""
        radix, first, end, extent, steps, size, bits = self
        return Values(radix, first + by, end + by, extent, steps, size, bits)


def values_of(level: Digit) -> Values | None:
    """The values of a digit; None where a loop moves it or its steps take too many of them."""
    if level.offset.terms:
        return None
    first, end = level.bounds({})
    size = level.extent * prod(count for count, _ in level.steps) if level.steps else 1
    if size > MOST or (size > 1 and end - first > WIDEST):
        return None
    bits = _bits(level.extent, level.steps) if level.steps else -1
    return Values(level.radix, first, end, level.extent, level.steps, size, bits)


def least_common(a: Values, b: Values) -> int | None:
    """The least value that both take; None where there is none."""
    first = a.first if a.first > b.first else b.first
    end = a.end if a.end < b.end else b.end
    if first >= end:
        return None
    both = (a.bits >> first - a.first) & (b.bits >> first - b.first)
    least = first + (both & -both).bit_length() - 1
    return least if both and least < end else None


@lru_cache(maxsize=512)
def _bits(extent: int, steps: Steps) -> int:
    """Bit n: the value is n more than the first one."""
    bits = (1 << extent) - 1
    for count, coefficient in steps:
        once = bits
        for n in range(1, count):
            bits |= once << n * coefficient
    return bits


# -- digits that no loop moves ---------------------------------------------------------------------


Radices = tuple[int, ...]


class _Still(NamedTuple):
    """The access from its first byte on, as if it began at 0."""

    ahead: int
    """Where the first byte lies: negative where strides are."""
    digits: tuple[Digit, ...]
    values: tuple[Values, ...] | None
    """None where they are too many to go through."""
    most: tuple[int, ...]
    """For each radix, the last byte of a row that the rest of the access may begin at."""


def digits_at(access: Access, radices: Radices) -> tuple[Digit, ...] | None:
    """What `digits_of` finds, where no loop moves the access."""
    still = _still(access.shape, access.strides, access.width, radices)
    firsts = None if still is None else _firsts(still, access.offset.constant, radices)
    if still is None or firsts is None:
        return None
    found = zip(still.digits, firsts, strict=True)
    return tuple([Digit(d.radix, Affine(n), d.extent, d.steps) for d, n in found])


def values_at(access: Access, radices: Radices) -> tuple[Values, ...] | None:
    """The values of its digits; None where it crosses a row, or they are too many."""
    still = _still(access.shape, access.strides, access.width, radices)
    if still is None or still.values is None:
        return None
    firsts = _firsts(still, access.offset.constant, radices)
    if firsts is None:
        return None
    return tuple([v.moved(n) if n else v for v, n in zip(still.values, firsts, strict=True)])


def _firsts(still: _Still, offset: int, radices: Radices) -> list[int] | None:
    """The first value of each digit; None where the access crosses a row."""
    rest, found = offset + still.ahead, []
    for radix, most in zip(radices, still.most, strict=True):
        up, rest = divmod(rest, radix)
        if rest > most:
            return None
        found.append(up)
    found.append(rest)
    return found


@lru_cache(maxsize=4_096)
def _still(
    shape: tuple[int, ...], strides: tuple[int, ...], width: int, radices: Radices
) -> _Still | None:
    """None where it crosses a row wherever it begins."""
    rest = linear(Access("", Mode.read, Affine(), shape, strides, width))
    ahead, rest = rest.offset.constant, replace(rest, offset=Affine())
    digits, most = [], []
    for radix in radices:
        both = rest.split(radix, {})
        if both is None:
            return None
        digit, rest = both
        digits.append(digit)
        most.append(radix - rest.bounds({})[1])
    digits.append(rest)
    values = tuple([v for v in map(values_of, digits) if v is not None])
    few = values if len(values) == len(digits) else None
    return _Still(ahead, tuple(digits), few, tuple(most))
