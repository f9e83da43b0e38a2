"""What a strategy can be told."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from nkigym.search.errors import ConstraintError


@dataclass(frozen=True, slots=True)
class Settings:
    """What a strategy can be told. Raises ConstraintError for a number below 1.

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
