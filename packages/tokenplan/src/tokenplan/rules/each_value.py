"""Accesses outside of loops: every value of each digit, one by one."""

from __future__ import annotations

from collections.abc import Sequence

from tokenplan.footprints import Values, least_common, values_of
from tokenplan.order import Part
from tokenplan.rules.pair import Answer, Conflict, Pair, Removed

Both = Sequence[tuple[Values, Values]]
"""The values of either access, digit by digit."""


def decide(pair: Pair, budget: int) -> Answer:
    """Removed or a byte that both touch; None inside of loops and where there are many values."""
    if pair.source.loops or pair.sink.loops or not pair.is_exact:
        return None
    known = []
    for a, b in pair.levels:
        one, other = values_of(a), values_of(b)
        if one is None or other is None or max(one.size, other.size) > budget:
            return None
        known.append((one, other))
    byte = least_byte(known)
    return Removed(pair.assumes) if byte is None else Conflict((), pair.byte(byte))


def values_of_both(one: Part, other: Part, budget: int) -> Both | None:
    """What `least_byte` takes; None where that is more work than the budget allows."""
    if one.values is None or other.values is None or one.access.swizzle != other.access.swizzle:
        return None
    return (
        None
        if max(one.size, other.size) > budget
        else [*zip(one.values, other.values, strict=True)]
    )


def least_byte(both: Both) -> int | None:
    """The least byte whose digits both accesses have, before any swizzle."""
    byte = 0
    for a, b in both:
        least = least_common(a, b)
        if least is None:
            return None
        byte += a.radix * least
    return byte
