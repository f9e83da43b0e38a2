"""Steps that never bring two accesses together: 2k and 2k + 1."""

from __future__ import annotations

from math import gcd

from tokenplan.footprints import Level
from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "residues"
SAYS = "their steps have a common divisor that keeps them apart"


def decide(pair: Pair) -> Answer:
    """Removed where, in one digit, the difference of the two is bound to residues that miss.

    The difference is constant + g · (any integer), g the divisor of every step; digits of extents
    m and n meet where it lies strictly between -m and n.
    """
    fixed = pair.shared[: pair.fixed]
    if any(_apart(a, b, fixed) for a, b in pair.levels):
        return Removed(pair.assumes)
    return None


def _apart(a: Level, b: Level, fixed: tuple[str, ...]) -> bool:
    together = a.offset - b.offset
    divisor = gcd(
        *(c for name, c in together.terms if name in fixed),
        *(c for level in (a, b) for name, c in level.offset.terms if name not in fixed),
        *(c for level in (a, b) for _, c in level.steps),
    )
    least = 1 - a.extent
    if not divisor:
        return not least <= together.constant < b.extent
    return least + (together.constant - least) % divisor >= b.extent
