"""Footprints as integer sets: iterations of both ends, their distance, and where they overlap."""

from __future__ import annotations

from collections.abc import Sequence

from neuroncore.integers import Digit
from neuroncore.integers.digits import Ranges as Trips
from neuroncore.program import Affine


class ExhaustedError(Exception):
    """A question took more operations than its budget allows, or the library cannot answer it."""


def first_point(variables: int, constraints: Sequence[str], budget: int) -> list[int] | None:
    """The lexicographically least integer point x0, x1, … of the constraints; None if there is
    none.

    `budget`: operations of the integer set library, which count work and not time. Raises
    ExhaustedError beyond it, and where the library fails.
    """
    import islpy

    context = islpy.Context()
    names = ", ".join(f"x{n}" for n in range(variables))
    text = f"{{ [{names}] : {' and '.join(constraints) or 'true'} }}"
    try:
        question = islpy.BasicSet(text, context)
        context.reset_operations()
        context.set_max_operations(budget)
        least = question.lexmin()
        if least.is_empty():
            return None
        point = least.sample_point()
        context.set_max_operations(0)  # found: reading it off is not counted
        return [
            point.get_coordinate_val(islpy.dim_type.set, n).to_python() for n in range(variables)
        ]
    except islpy.Error:  # the budget is used, or an error of the library
        raise ExhaustedError from None


class System:
    """Constraints on variables x0, x1, … that are collected one by one."""

    def __init__(self) -> None:
        self.variables = 0
        self.constraints: list[str] = []

    def variable(self, low: int, high: int) -> str:
        """A new variable from `low` to `high` inclusive."""
        name = f"x{self.variables}"
        self.variables += 1
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
