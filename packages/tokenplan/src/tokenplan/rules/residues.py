"""Steps that never bring two accesses together: 2k and 2k + 1."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from neuroncore.integers import Digit, reaches
from tokenplan.footprints import Values
from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "residues"
SAYS = "their steps have a common divisor that makes them disjoint"


def decide(pair: Pair) -> Answer:
    """Removed where, in one digit, the difference of the two is bound to residues that miss.

    The difference is constant + g · (any integer), g the divisor of every step; digits of extents
    m and n overlap where it is strictly between -m and n.
    """
    fixed = pair.shared[: pair.fixed]
    if any(_differ_by_residue(a, b, fixed) for a, b in pair.levels):
        return Removed(pair.assumes)
    return None


def _differ_by_residue(a: Digit, b: Digit, fixed: tuple[str, ...]) -> bool:
    together = a.offset - b.offset
    divisor = gcd(
        *(c for name, c in together.terms if name in fixed),
        *(c for level in (a, b) for name, c in level.offset.terms if name not in fixed),
        _divisor(a.steps, b.steps),
    )
    return _miss(together.constant, divisor, a, b)


def _divisor(*steps: Sequence[tuple[int, int]]) -> int:
    return gcd(*[c for each in steps for _, c in each])


def _miss(constant: int, divisor: int, a: Digit | Values, b: Digit | Values) -> bool:
    """Whether constant + divisor · (any integer) is never strictly between both extents."""
    return not reaches(constant, divisor, 1 - a.extent, b.extent)
