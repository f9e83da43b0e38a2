"""Accesses outside of loops: every value of each digit, one by one."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from tokenplan.footprints import Level
from tokenplan.rules.pair import Answer, Conflict, Pair, Removed

MOST = 1_024
"""So many values of a digit are quicker to go through than a set of them is to ask."""


def decide(pair: Pair, budget: int) -> Answer:
    """Removed or a byte that both touch; None inside of loops and where there are many values."""
    if pair.source.loops or pair.sink.loops or not pair.is_exact:
        return None
    most = min(MOST, budget)
    if any(_size(level) > most for both in pair.levels for level in both):
        return None
    byte = 0
    for a, b in pair.levels:
        both = _values(a) & _values(b)
        if not both:
            return Removed(pair.assumes)
        byte += a.radix * min(both)
    return Conflict((), pair.byte(byte))


def _size(level: Level) -> int:
    return level.extent * prod(count for count, _ in level.steps)


@lru_cache(maxsize=4_096)
def _values(level: Level) -> frozenset[int]:
    firsts = [level.offset.constant]
    for count, coefficient in level.steps:
        firsts = [first + n * coefficient for first in firsts for n in range(count)]
    return frozenset(first + n for first in firsts for n in range(level.extent))
