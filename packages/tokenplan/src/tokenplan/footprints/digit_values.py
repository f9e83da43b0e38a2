"""The values of a digit that no loop moves, one by one: as the bits of an integer."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from neuroncore.integers import Digit

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
