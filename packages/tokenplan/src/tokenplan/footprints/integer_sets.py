"""Footprints as integer sets: iterations of both ends, their distance, and where they overlap."""

from __future__ import annotations

from collections.abc import Sequence

from neuroncore.integers import Digit
from neuroncore.integers.digits import Ranges as Trips
from neuroncore.program import Affine


class ExhaustedError(Exception):
    """A question took more operations than its budget allows, or the library cannot answer it."""


def first_point(
    variables: Sequence[str], constraints: Sequence[str], budget: int
) -> list[int] | None:
    """The lexicographically least integer point of the constraints; None if there is none.

    `variables`: names and fixed numbers, in this order in the point. `budget`: operations of the
    integer set library, which count work and not time. Raises ExhaustedError beyond it, and where
    the library fails.
    """
    import islpy

    context = islpy.Context()
    free = [name for name in variables if name.startswith("x")]
    text = f"{{ [{', '.join(free)}] : {' and '.join(constraints) or 'true'} }}"
    try:
        question = islpy.BasicSet(text, context)
        context.reset_operations()
        context.set_max_operations(budget)
        least = question.lexmin()
        if least.is_empty():
            return None
        point = least.sample_point()
        context.set_max_operations(0)  # found: reading it off is not counted
        found = {
            name: point.get_coordinate_val(islpy.dim_type.set, n).to_python()
            for n, name in enumerate(free)
        }
    except islpy.Error:  # the budget is used, or an error of the library
        raise ExhaustedError from None
    return [found[name] if name in found else int(name) for name in variables]


class System:
    """Constraints on variables that are collected one by one."""

    def __init__(self) -> None:
        self.variables: list[str] = []
        """By number: its name, or the only value that it may have."""
        self.constraints: list[str] = []

    def variable(self, low: int, high: int) -> str:
        """A new variable from `low` to `high` inclusive."""
        name = str(low) if low == high else f"x{len(self.variables)}"
        self.variables.append(name)
        if low != high:
            self.constraints.append(f"{low} <= {name} <= {high}")
        return name

    def iterations(self, loops: Sequence[str], trips: Trips) -> dict[str, str]:
        """A variable per loop."""
        return {loop: self.variable(*trips[loop]) for loop in loops}

    def value(self, level: Digit, at: dict[str, str]) -> str:
        """The digit's first value; its steps are new variables."""
        steps = [f"{c}*{self.variable(0, n - 1)}" for n, c in level.steps]
        return " + ".join([affine(level.offset, at), *steps])

    def overlap(self, a: Digit, at_a: dict[str, str], b: Digit, at_b: dict[str, str]) -> None:
        """Both digits share a value."""
        one, other = self.value(a, at_a), self.value(b, at_b)
        self.constraints.append(f"{1 - a.extent} <= {one} - ({other}) <= {b.extent - 1}")


def affine(expression: Affine, at: dict[str, str]) -> str:
    """An affine expression of iterations, in the variables that represent them."""
    return " + ".join([str(expression.constant), *(f"{c}*({at[n]})" for n, c in expression.terms)])
