"""A conflict that is found by looking at the first iterations."""

from __future__ import annotations

from tokenplan.rules.pair import Answer, Conflict, Pair

NAME = "trial"
SAYS = "the first iterations that could overlap do overlap"


def decide(pair: Pair) -> Answer:
    """A conflict at the least distance there is, where iteration 0 shows it; never Removed."""
    least = pair.least
    if least is None or not pair.is_exact or any(a.steps or b.steps for a, b in pair.levels):
        return None
    before, after = dict.fromkeys(pair.source.loops, 0), dict.fromkeys(pair.sink.loops, 0)
    after |= dict(zip(pair.shared, least, strict=True))
    byte = 0
    for a, b in pair.levels:
        one, other = a.offset.value(before), b.offset.value(after)
        if not -a.extent < one - other < b.extent:
            return None
        byte += a.radix * max(one, other)
    return Conflict(least, pair.byte(byte), before, after)
