"""Two accesses whose order is in question, and the answers there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from neuroncore.integers import Digit
from tokenplan.footprints import blurred, levels_of
from tokenplan.graph.token_graph import Distance
from tokenplan.kernel.model import Mode, shared_loops
from tokenplan.rules.candidate_orders import Place

WRAP_AT = 2**31
_READ, _WRITE, _ACCUMULATE = Mode.read, Mode.write, Mode.accumulate


@dataclass(frozen=True, slots=True)
class Removed:
    """The accesses share no byte in iterations of the order in question."""

    assumes: tuple[str, ...] = ()


_NOWHERE: Mapping[str, int] = {}


class Conflict(NamedTuple):
    """They do (or might), at a distance of `distance` iterations and never fewer.

    Where the byte is known, so are the iterations of all loops around either end.
    """

    distance: Distance
    byte: int | None = None
    source: Mapping[str, int] = _NOWHERE
    sink: Mapping[str, int] = _NOWHERE


Answer = Removed | Conflict | None
"""None: this rule does not know."""


class Pair:
    """The access of `before`, then that of `after`.

    `later`: the sink's iteration of the shared loops is a later one; else the same or a later one.
    """

    def __init__(self, before: Place, after: Place, later: bool) -> None:
        self.before, self.after, self.later = before, after, later
        self.source, self.sink = before.op, after.op
        self.a, self.b = before.access, after.access
        self.trips = before.trips

    @cached_property
    def shared(self) -> tuple[str, ...]:
        return shared_loops(self.source, self.sink)

    @cached_property
    def fixed(self) -> int:
        """How many of the shared loops have one iteration for both: the loops that allocate the
        buffer.
        """
        return len(self.before.buffer.scope)

    @cached_property
    def least(self) -> Distance | None:
        """The least distance of this order; None where no two iterations have it."""
        zero = (0,) * len(self.shared)
        if not self.later:
            return zero
        for at in reversed(range(self.fixed, len(zero))):
            if self.trips[self.shared[at]][1] > 0:
                return (*zero[:at], 1, *zero[at + 1 :])
        return None

    @property
    def nominal(self) -> Distance:
        """The least distance, or the next iteration where there is none."""
        return self.least or (*(0,) * (len(self.shared) - self.later), *(1,) * self.later)

    @cached_property
    def levels(self) -> tuple[tuple[Digit, Digit], ...]:
        """Both accesses digit by digit."""
        if not self.is_exact:
            a, b = blurred(self.a), blurred(self.b)
            return levels_of(self.before.buffer, a, b, self.trips)
        one, other = self.before.part.digits, self.after.part.digits
        if one is not None and other is not None:
            return tuple(zip(one, other, strict=True))
        return levels_of(self.before.buffer, self.a, self.b, self.trips)

    @cached_property
    def assumes(self) -> tuple[str, ...]:
        """Assumptions of a proof from the numbers."""
        return assumptions_of(self.before, self.after)

    @property
    def is_exact(self) -> bool:
        """Whether digits decide: a swizzle moves bytes, but the same one moves all alike."""
        return self.a.swizzle == self.b.swizzle

    def byte(self, found: int) -> int | None:
        """The position in memory of a byte that the digits share."""
        return self.a.swizzle(found) if self.is_exact else None


def assumptions(place: Place) -> Iterator[str]:
    """Assumptions of any proof that this access is disjoint from another."""
    if place.access.opaque:
        yield INDEX_IN_BOUNDS
    if place.part.reach > WRAP_AT:
        yield f"an index of {place.op.id}, which reaches 2^31, does not wrap"


def assumptions_of(*places: Place) -> tuple[str, ...]:
    """The same of several accesses, each text once."""
    return tuple(sorted({text for place in places for text in assumptions(place)}))


INDEX_IN_BOUNDS = "indices that are read on the device stay inside their tensors"


def kind_of(a: Mode, b: Mode) -> str:
    """The kind of an order between two modes: RAW, WAR, WAW or accumulate."""
    if a is _ACCUMULATE or b is _ACCUMULATE:
        return "accumulate"
    if a is _READ:
        return "WAR" if b is _WRITE else "WAW"
    return "RAW" if b is _READ else "WAW"
