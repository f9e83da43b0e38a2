"""Footprints as integer sets: iterations of both ends, their distance, and where they overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from neuroncore.integers import Digit
from neuroncore.integers.digits import Ranges as Trips
from neuroncore.program import Affine

if TYPE_CHECKING:
    from islpy import BasicSet, Context


class ExhaustedError(Exception):
    """A question took more operations than its budget allows, or the library cannot answer it."""


class System:
    """Constraints on variables x0, x1, … that are collected one by one."""

    def __init__(self) -> None:
        self.variables: list[Affine] = []
        """Each by its number: itself, or the only value that it may have."""
        self.positive: list[Affine] = []
        """What may not be negative."""

    def variable(self, low: int, high: int) -> Affine:
        """A new variable from `low` to `high` inclusive."""
        name = f"x{len(self.variables)}"
        found = Affine(low) if low == high else Affine.variable(name)
        self.variables.append(found)
        self.limit(found, low, high)
        return found

    def limit(self, value: Affine, low: int, high: int) -> None:
        """Constrains an expression to numbers from `low` to `high` inclusive."""
        for rest in (value + -low, value * -1 + high):
            if rest.terms or rest.constant < 0:
                self.positive.append(rest)

    def iterations(self, loops: Sequence[str], trips: Trips) -> dict[str, Affine]:
        """A variable per loop."""
        return {loop: self.variable(*trips[loop]) for loop in loops}

    def value(self, level: Digit, at: Mapping[str, Affine]) -> Affine:
        """The digit's first value; its steps are new variables."""
        found = level.offset.substitute(at)
        for n, c in level.steps:
            found += self.variable(0, n - 1) * c
        return found

    def overlap(
        self, a: Digit, at_a: Mapping[str, Affine], b: Digit, at_b: Mapping[str, Affine]
    ) -> None:
        """Both digits share a value."""
        one, other = self.value(a, at_a), self.value(b, at_b)
        self.limit(one + other * -1, 1 - a.extent, b.extent - 1)

    def first_point(self, budget: int) -> list[int] | None:
        """The lexicographically least integer point; None if there is none.

        `budget`: operations of the integer set library, which count work and not time. Raises
        ExhaustedError beyond it, and where the library fails.
        """
        if any(not rest.terms for rest in self.positive):
            return None
        import islpy

        free = [found.terms[0][0] for found in self.variables if found.terms]
        context = islpy.Context()
        try:
            question = _question(context, free, self.positive)
            context.reset_operations()
            context.set_max_operations(budget)
            least = question.lexmin()
            if least.is_empty():
                return None
            point = least.sample_point()
            context.set_max_operations(0)  # found: reading it off is not counted
            values = {
                name: point.get_coordinate_val(islpy.dim_type.set, n).to_python()
                for n, name in enumerate(free)
            }
        except islpy.Error:  # the budget is used, or an error of the library
            raise ExhaustedError from None
        return [found.value(values) for found in self.variables]


def _question(context: Context, free: Sequence[str], positive: Sequence[Affine]) -> BasicSet:
    """The set of these variables, as a matrix: to parse its text takes most of the time."""
    import islpy

    column = {name: n for n, name in enumerate(free, 1)}
    empty = islpy.Mat.alloc(context, 0, 1 + len(free))
    rows = empty.add_zero_rows(len(positive))
    for row, rest in enumerate(positive):
        for at, number in ((0, rest.constant), *((column[name], c) for name, c in rest.terms)):
            rows = rows.set_element_val(row, at, islpy.Val.read_from_str(context, str(number)))
    space, kinds = islpy.Space.set_alloc(context, 0, len(free)), islpy.dim_type
    order = kinds.cst, kinds.param, kinds.set, kinds.div
    return islpy.BasicSet.from_constraint_matrices(space, empty, rows, *order)
