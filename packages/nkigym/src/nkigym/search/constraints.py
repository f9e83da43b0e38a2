"""What a winner has to be, besides fast."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from nkigym.search.errors import ConstraintError


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
