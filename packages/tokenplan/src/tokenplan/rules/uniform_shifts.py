"""Accesses that move alike: only the distance of their iterations counts."""

from __future__ import annotations

from neuroncore.integers import Digit
from tokenplan.rules.pair import Answer, Conflict, Pair, Removed

NAME = "shifts"
SAYS = "both move alike, and no distance between iterations brings them together"

Interval = tuple[int, int]


def decide(pair: Pair) -> Answer:
    """The least distance or Removed, where each digit of both moves with one and the same loop.

    Such a digit overlaps for the distances of one interval; loops that no digit moves with have
    any.
    """
    if not pair.is_exact or any(_differ(a, b, pair.shared) for a, b in pair.levels):
        return None
    within = {name: (-pair.trips[name][1], pair.trips[name][1]) for name in pair.shared}
    within |= dict.fromkeys(pair.shared[: pair.fixed], (0, 0))
    for a, b in pair.levels:
        ahead = a.offset.constant - b.offset.constant
        if not a.offset.terms:
            if not -a.extent < ahead < b.extent:
                return Removed(pair.assumes)
            continue
        ((loop, step),) = a.offset.terms
        low, high = _distances(ahead, step, a.extent, b.extent)
        within[loop] = max(low, within[loop][0]), min(high, within[loop][1])
    distance = _nearest(list(within.values()), pair.later)
    return Removed(pair.assumes) if distance is None else _conflict(pair, distance)


def _differ(a: Digit, b: Digit, shared: tuple[str, ...]) -> bool:
    terms = a.offset.terms
    if a.steps or b.steps or terms != b.offset.terms or len(terms) > 1:
        return True
    return any(name not in shared for name, _ in terms)


def _distances(ahead: int, step: int, extent: int, other: int) -> Interval:
    """Where -extent < ahead - step · distance < other."""
    low, high = ahead - other + 1, ahead + extent - 1  # of step · distance
    if step < 0:
        low, high, step = -high, -low, -step
    return -(-low // step), high // step


def _nearest(within: list[Interval], later: bool) -> tuple[int, ...] | None:
    """The lexicographically least point from 0 on (beyond it if `later`) of these intervals."""
    if any(low > high for low, high in within):
        return None
    zeros = next((n for n, (low, high) in enumerate(within) if low > 0 or high < 0), len(within))
    if zeros == len(within) and not later:
        return (0,) * zeros
    for at in reversed(range(min(zeros + 1, len(within)))):
        if within[at][1] >= 1:
            behind = (low for low, _ in within[at + 1 :])
            return (*(0,) * at, max(1, within[at][0]), *behind)
    return None


def _conflict(pair: Pair, distance: tuple[int, ...]) -> Conflict:
    before, after = dict.fromkeys(pair.source.loops, 0), dict.fromkeys(pair.sink.loops, 0)
    for loop, d in zip(pair.shared, distance, strict=True):
        before[loop], after[loop] = max(0, -d), max(0, d)
    byte = sum(a.radix * max(a.offset.value(before), b.offset.value(after)) for a, b in pair.levels)
    return Conflict(distance, pair.byte(byte), before, after)
