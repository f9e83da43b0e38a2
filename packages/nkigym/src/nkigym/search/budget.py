"""The limits and settings of a search: budget, constraints on the winner, numbers of strategies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from neuroncore.commands.parser import duration
from nkigym.search.errors import BudgetError, ConstraintError

FORM = "a number of candidates, such as 1000, or a time, such as 60s, 1.5min or 200ms"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `candidates` steps are tried, and none begins after `seconds`.

    A search with a budget of candidates alone finds the same each time. One with a time is stopped
    somewhere in the same sequence of candidates, and says after how many.
    """

    candidates: float = inf
    seconds: float = inf

    def __post_init__(self) -> None:
        if not (self.candidates >= 1 and self.seconds > 0):
            raise BudgetError(
                "a budget that allows nothing", expected=FORM, got=str(self),
                hint="at least one candidate has to be tried",
            )  # fmt: skip

    def __str__(self) -> str:
        parts = [f"{self.candidates:,} candidates"] if self.candidates < inf else []
        parts += [f"{self.seconds:g} s"] if self.seconds < inf else []
        return " or ".join(parts) or "no limit"

    def shared(self, searches: int) -> Budget:
        """The part of each of so many searches."""
        each = inf if self.candidates == inf else max(1, self.candidates // searches)
        return Budget(each, self.seconds / searches)

    def check_below(self, limit_s: float, what: str) -> None:
        """Raises BudgetError where the budget allows as many seconds as a job, or more."""
        if limit_s <= self.seconds < inf:
            raise BudgetError(
                f"the budget of {what} contradicts the limit of a job",
                expected=f"a budget below {limit_s:g} s", got=str(self),
            )  # fmt: skip


def parse_budget(text: str) -> Budget:
    """The budget of a text such as `1000`, `60s` or `2min`. Raises BudgetError."""
    text = text.strip()
    if text.isdecimal():
        return Budget(candidates=int(text))
    seconds = duration(text)
    if seconds is None:
        raise BudgetError(f"{text!r} is not a budget", expected=FORM)
    return Budget(seconds=seconds)


class BudgetSpent(Exception):  # noqa: N818 - not an error: how a strategy is stopped
    """The budget is spent; `why` is "candidates" or "time"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class Meter:
    """A budget being spent."""

    budget: Budget
    clock: Callable[[], float]
    """Seconds, from any beginning."""
    began: float = 0.0
    candidates: int = 0

    def __post_init__(self) -> None:
        self.began = self.clock()

    def take(self) -> None:
        """One candidate more. Raises Spent where there is none left."""
        if self.candidates >= self.budget.candidates:
            raise BudgetSpent("candidates")
        if self.seconds >= self.budget.seconds:
            raise BudgetSpent("time")
        self.candidates += 1

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self.clock() - self.began


# -- constraints -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constraints:
    """`min_depth` and `max_depth`: how many steps from the root a candidate may be.

    Raises ConstraintError where no number above 0 is between them.
    """

    min_depth: int = 0
    max_depth: float = inf

    def __post_init__(self) -> None:
        if self.min_depth < 0 or self.max_depth < 0:
            raise ConstraintError(
                "a depth is a number of steps", expected="0 or more",
                got=f"{min(self.min_depth, self.max_depth)}",
            )  # fmt: skip
        if self.max_depth < 1:
            raise ConstraintError(
                f"a greatest depth of {self.max_depth:g} leaves nothing to search",
                expected="1 or more",
            )
        if self.min_depth > self.max_depth:
            raise ConstraintError(
                "no candidate can meet these constraints",
                expected="a greatest depth that is not below the least",
                got=f"min_depth {self.min_depth}, max_depth {self.max_depth:g}",
                hint="give --max-depth more, or --min-depth less",
            )


# -- settings --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a strategy. Raises ConstraintError for a number below 1.

    `num_targets` (random): stop once so many unique programs qualify. `width` (beam): how many
    programs of a depth go on. `population` (evolutionary, descent): how many programs survive a
    generation.
    """

    num_targets: float = inf
    width: int = 8
    population: int = 24

    def __post_init__(self) -> None:
        for name in ("num_targets", "width", "population"):
            if not getattr(self, name) >= 1:
                raise ConstraintError(
                    f"{name} {getattr(self, name)} leaves nothing to search", expected="1 or more"
                )
