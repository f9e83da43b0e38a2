"""The rules in order: the least expensive proof that removes an order or needs it comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tokenplan.footprints.integer_sets import ExhaustedError
from tokenplan.rules import (
    commuting,
    cosets,
    disjoint_boxes,
    distinct_buffers,
    empty_order,
    first_iterations,
    integer_sets,
    loop_instances,
    residues,
    uniform_shifts,
)
from tokenplan.rules.pair import (
    Answer,
    Conflict,
    Pair,
    Removed,
)

BUDGET = 200_000
"""Operations of the integer set library per question: about 10 ms."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One proof: its name in plans, and what it says in plain words."""

    name: str
    says: str
    decide: Callable[[Pair], Answer]


LADDER = tuple(
    Rule(module.NAME, module.SAYS, module.decide)
    for module in (
        empty_order,
        distinct_buffers,
        commuting,
        loop_instances,
        disjoint_boxes,
        first_iterations,
        residues,
        uniform_shifts,
        cosets,
    )
)
"""In order; the search with integer sets, which alone has a budget, comes after all."""

NAMES = (*(rule.name for rule in LADDER), integer_sets.NAME, integer_sets.BUDGET)
"""Every rule that an edge can name, the cheapest first."""


class Verdict(NamedTuple):
    """The answer on a pair, and the rule that gave it."""

    rule: str
    answer: Removed | Conflict


def decide(pair: Pair, budget: int = BUDGET) -> Verdict:
    """The first rule's answer; a pair that exhausts the budget is kept at its least distance."""
    for rule in LADDER:
        answer = rule.decide(pair)
        if answer is not None:
            return Verdict(rule.name, answer)
    try:
        answer = integer_sets.decide(pair, budget)
    except integer_sets.OutOfBudgetError as given_up:
        return Verdict(integer_sets.BUDGET, Conflict(given_up.distance))
    assert answer is not None
    return Verdict(integer_sets.NAME, answer)


def carried_by(pair: Pair, loop: str, budget: int = BUDGET) -> Conflict | None:
    """The nearest conflict of iterations of `loop` whose outer loops are in one iteration.

    Where the budget does not suffice, a conflict without a byte at the least distance.
    """
    outer = pair.shared.index(loop)
    if outer < pair.fixed or not pair.trips[loop][1]:
        return None
    for rule in LADDER:
        if isinstance(rule.decide(pair), Removed):
            return None
    try:
        return integer_sets.carried_by(pair, outer, budget)
    except ExhaustedError:
        return Conflict(tuple(int(at == outer) for at in range(len(pair.shared))))


def says(rule: str) -> str:
    """The meaning of a rule's name, in plain words."""
    known = {entry.name: entry.says for entry in LADDER}
    known |= {
        integer_sets.NAME: integer_sets.SAYS,
        integer_sets.BUDGET: integer_sets.BUDGET_SAYS,
    }
    return known[rule]
