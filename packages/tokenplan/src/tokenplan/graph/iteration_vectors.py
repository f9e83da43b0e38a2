"""Iteration vectors of nested loops in their order of execution, which is lexicographic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from tokenplan.graph.token_graph import Distance

Point = tuple[int, ...]


def next_point(at: Sequence[int], trips: Sequence[int]) -> Point | None:
    """The first iteration of loops with these trip counts that is not before `at`; None: none is.

    >>> next_point((0, 5), (2, 4)), next_point((1, -3), (2, 4)), next_point((1, 4), (2, 4))
    ((1, 0), (1, 0), None)
    """
    for level, value in enumerate(at):
        if value < 0:
            return (*at[:level], *(0,) * (len(at) - level))
        if value >= trips[level]:
            for outer in reversed(range(level)):
                if at[outer] + 1 < trips[outer]:
                    return (*at[:outer], at[outer] + 1, *(0,) * (len(at) - outer - 1))
            return None
    return tuple(at)


def moved(at: Sequence[int], distance: Distance, trips: Sequence[int]) -> Point | None:
    """The first iteration that is `distance` or more after `at`, over the loops it counts."""
    return next_point([i + d for i, d in zip(at, distance, strict=False)], trips[: len(distance)])


def representatives(trips: Iterable[int], low: int, high: int) -> Iterator[Point]:
    """Iterations that represent all, as long as no test goes further than `low` from the first or
    `high` from the last iteration of a loop."""
    ranges = [
        range(count) if count <= low + high + 1 else [*range(low + 1), *range(count - high, count)]
        for count in trips
    ]
    return product(*ranges)
