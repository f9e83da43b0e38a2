"""Accesses outside of loops: every value of each digit, one by one."""

from __future__ import annotations

from collections.abc import Sequence

from tokenplan.footprints import Values, least_common, values_of
from tokenplan.rules.pair import Answer, Conflict, Pair, Removed

Digits = Sequence[Values]
"""The values of an access, digit by digit."""


def decide(pair: Pair, budget: int) -> Answer:
    """Removed or a byte that both access; None inside of loops and where there are many values."""
    if pair.source.loops or pair.sink.loops or not pair.is_exact:
        return None
    known: tuple[list[Values], list[Values]] = [], []
    for levels in pair.levels:
        for found, level in zip(known, levels, strict=True):
            values = values_of(level)
            if values is None or values.size > budget:
                return None
            found.append(values)
    byte = least_byte(*known)
    return Removed(pair.assumes) if byte is None else Conflict((), pair.byte(byte))


def least_byte(one: Digits, other: Digits) -> int | None:
    """The least byte whose digits both accesses have, before any swizzle."""
    byte = 0
    for a, b in zip(one, other, strict=True):
        least = least_common(a, b)
        if least is None:
            return None
        byte += a.radix * least
    return byte
