"""Numbers that depend affinely on the iterations of loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokenplan.checker.json_values import Value


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient · iteration of a loop."""

    constant: int
    terms: Mapping[str, int]

    def at(self, iterations: Mapping[str, Any]) -> Any:
        """The number, or the array of numbers, for these iterations."""
        value: Any = self.constant
        for loop, coefficient in self.terms.items():
            value = value + coefficient * iterations[loop]
        return value


def affine(given: Value, loops: tuple[str, ...]) -> Affine:
    """The affine expression of `loops` that a plan file writes as constant and terms."""
    made = given.fields("constant terms")
    terms = made["terms"].members()
    for loop, value in terms.items():
        if loop not in loops:
            raise value.wrong(f"{loop} is none of the loops it may depend on, {list(loops)}")
    numbers = {loop: value.integer() for loop, value in terms.items()}
    return Affine(made["constant"].integer(), numbers)
