"""The digits of accesses that no loop moves: found once for all that differ in where they begin."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from neuroncore.integers import Digit
from neuroncore.program import Affine
from tokenplan.footprints.digit_values import Values, values_of
from tokenplan.footprints.digits import linear
from tokenplan.kernel.model import Access, Mode

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
