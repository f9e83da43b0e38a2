"""Rules that remove an order or show that it is needed, the least expensive proof first."""

from tokenplan.rules.ladder import (
    BUDGET,
    LADDER,
    NAMES,
    Rule,
    Verdict,
    carried_by,
    decide,
    says,
)
from tokenplan.rules.pair import Conflict, Pair, Removed, assumptions, kind_of

__all__ = [
    "BUDGET",
    "LADDER",
    "NAMES",
    "Conflict",
    "Pair",
    "Removed",
    "Rule",
    "Verdict",
    "assumptions",
    "carried_by",
    "decide",
    "kind_of",
    "says",
]
