"""Intervals that touch, and pairs of what fits together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nkigym.tiles.program import Interval

Pair = tuple[int, int]


def adjacent(first: Interval, second: Interval) -> bool:
    """Whether one ends where the other starts."""
    return first[1] == second[0] or second[1] == first[0]


def union(first: Interval, second: Interval) -> Interval:
    """Of two that touch."""
    return min(first[0], second[0]), max(first[1], second[1])


def greedy_pairs(members: Sequence[int], fits: Callable[[int, int], bool]) -> tuple[Pair, ...]:
    """Each member with the first one behind it that fits, none in two pairs."""
    used: set[int] = set()
    pairs = []
    for at, first in enumerate(members):
        if first in used:
            continue
        for second in members[at + 1 :]:
            if second not in used and fits(first, second):
                pairs.append((first, second))
                used |= {first, second}
                break
    return tuple(pairs)
