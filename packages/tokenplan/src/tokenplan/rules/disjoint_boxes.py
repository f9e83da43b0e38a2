"""Rows, columns or bytes that are disjoint in every iteration."""

from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "boxes"
SAYS = "they access parts that are disjoint in every iteration"


def decide(pair: Pair) -> Answer:
    """Removed where the ranges of one digit, over all iterations, are disjoint."""
    for a, b in pair.levels:
        low, high = a.bounds(pair.trips)
        other_low, other_high = b.bounds(pair.trips)
        if high <= other_low or other_high <= low:
            return Removed(pair.assumes)
    return None
