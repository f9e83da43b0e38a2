"""The question itself: is there an integer point in conflict ∩ order, and which is the nearest?"""

from __future__ import annotations

from tokenplan.footprints.integer_sets import ExhaustedError, System
from tokenplan.graph.token_graph import Distance
from tokenplan.rules import byte_enumeration, cosets, value_enumeration
from tokenplan.rules.pair import Answer, Conflict, Pair, Removed

NAME = "isl"
SAYS = "an exact search over all iterations"
BUDGET = "budget"
BUDGET_SAYS = "the exact search ran out of its budget, so the order is kept"


class OutOfBudgetError(Exception):
    """The search was given up; no conflict is nearer than `distance`."""

    def __init__(self, distance: Distance) -> None:
        super().__init__(distance)
        self.distance = distance


def decide(pair: Pair, budget: int) -> Answer:
    """Removed or the least distance with a witness; raises OutOfBudgetError.

    The order is tried nearest first: the same iteration, then a later one of the innermost loop,
    then of the loop around it.
    """
    known = value_enumeration.decide(pair, budget)
    if known is not None:
        return known
    depth = len(pair.shared)
    for outer in range(depth, pair.fixed - 1, -1):  # the loop that is a later one; depth: none
        if outer == depth and pair.later:
            continue
        if outer < depth and not pair.trips[pair.shared[outer]][1]:
            continue
        try:
            found = carried_by(pair, outer, budget)
        except ExhaustedError:
            raise OutOfBudgetError(_least(pair, outer)) from None
        if found is not None:
            return found
    return Removed(pair.assumes)


def _least(pair: Pair, outer: int) -> Distance:
    """The least distance with a later iteration of shared loop `outer` (none: the same)."""
    return tuple(low for low, _ in _distances(pair, outer))


def _distances(pair: Pair, outer: int) -> list[tuple[int, int]]:
    """The least and the greatest distance in each shared loop."""
    last = [pair.trips[loop][1] for loop in pair.shared]
    return [
        (0, 0) if at < outer else (1, n) if at == outer else (-n, n) for at, n in enumerate(last)
    ]


def carried_by(pair: Pair, outer: int, budget: int) -> Conflict | None:
    """The least distance with a later iteration of shared loop `outer`, those around it being the
    same (outer = number of shared loops: all the same). Raises ExhaustedError.

    Accesses that are swizzled in two ways are first distinguished by address bits; then the set
    gives where they might overlap, and where it is not empty their bytes are compared.
    """
    if not pair.is_exact and cosets.are_disjoint(pair, outer):
        return None
    found = _in_sets(pair, outer, budget)
    return (
        found if found is None or pair.is_exact else byte_enumeration.nearest(pair, outer, budget)
    )


def _bounds(pair: Pair, outer: int) -> tuple[list[tuple[int, int]], dict[str, tuple[int, int]]]:
    """Least and greatest distance of each shared loop, and iteration of each loop; where neither
    access moves, the distance and the iteration of the least point, which need no search."""
    distances, trips = _distances(pair, outer), dict(pair.trips)
    used = {name for level in pair.levels for digit in level for name, _ in digit.offset.terms}
    for at, loop in enumerate(pair.shared):
        low, high = distances[at]
        if loop not in used and low <= high and trips[loop][1] >= 0:
            distances[at], trips[loop] = (low, low), (max(0, -low), max(0, -low))
    for loop in {*pair.source.loops, *pair.sink.loops} - used - {*pair.shared}:
        trips[loop] = (0, min(0, trips[loop][1]))
    return distances, trips


def _in_sets(pair: Pair, outer: int, budget: int) -> Conflict | None:
    system = System()
    distances, trips = _bounds(pair, outer)
    distance = [system.variable(*ends) for ends in distances]
    before = system.iterations(pair.source.loops, trips)
    after = {loop: before[loop] + d for loop, d in zip(pair.shared, distance, strict=True)}
    for loop in pair.shared[outer:]:
        system.limit(after[loop], 0, pair.trips[loop][1])
    private = pair.sink.loops[len(pair.shared) :]
    after |= system.iterations(private, trips)
    ends = []  # how many variables there are after each digit
    for a, b in pair.levels:
        system.overlap(a, before, b, after)
        ends.append(len(system.variables))
    point = system.first_point(budget)
    if point is None:
        return None
    depth, loops = len(distance), pair.source.loops
    source = dict(zip(loops, point[depth:], strict=False))
    sink = {loop: source[loop] + d for loop, d in zip(pair.shared, point, strict=False)}
    sink |= dict(zip(private, point[depth + len(loops) :], strict=False))
    byte = 0
    for (a, b), end in zip(pair.levels, ends, strict=True):
        middle = end - len(b.steps)
        one = a.value(source, point[middle - len(a.steps) : middle])
        byte += a.radix * max(one, b.value(sink, point[middle:end]))
    return Conflict(tuple(point[:depth]), pair.byte(byte), source, sink)
