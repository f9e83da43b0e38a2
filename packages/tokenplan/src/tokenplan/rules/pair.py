"""Two accesses whose order is in question, and the answers there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tokenplan.footprints import Level, levels_of
from tokenplan.footprints.levels import Trips
from tokenplan.graph import Distance
from tokenplan.model import PLAIN, Access, Buffer, Mode, Op, shared_loops

WRAP_AT = 2**31


@dataclass(frozen=True, slots=True)
class Removed:
    """The accesses share no byte in iterations of the order in question."""

    assumes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """They do (or might), `distance` iterations apart and never fewer.

    Where the byte is known, so are the iterations of all loops around either end.
    """

    distance: Distance
    byte: int | None = None
    source: Mapping[str, int] = field(default_factory=dict)
    sink: Mapping[str, int] = field(default_factory=dict)


Answer = Removed | Conflict | None
"""None: this rule does not know."""


@dataclass(frozen=True)
class Pair:
    """Access `a` of `source`, then access `b` of `sink`.

    `later`: the sink's iteration of the shared loops is a later one; else the same or a later one.
    `trips`: of the loops around either.
    """

    source: Op
    a: Access
    sink: Op
    b: Access
    buffers: Mapping[str, Buffer]
    trips: Trips
    later: bool

    @cached_property
    def shared(self) -> tuple[str, ...]:
        return shared_loops(self.source, self.sink)

    @cached_property
    def fixed(self) -> int:
        """How many of the shared loops have one iteration for both: those that make the buffer."""
        return len(self.buffers[self.a.buffer].scope)

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
    def levels(self) -> tuple[tuple[Level, Level], ...]:
        """Both accesses digit by digit."""
        a, b = (self.a, self.b) if self.is_exact else (_blurred(self.a), _blurred(self.b))
        return levels_of(self.buffers[self.a.buffer], a, b, self.trips)

    def _elements(self, access: Access) -> int:
        buffer = self.buffers[access.buffer]
        return buffer.num_bytes // buffer.itemsize

    @property
    def is_exact(self) -> bool:
        """Whether digits decide: a swizzle moves bytes, but the same one moves all alike."""
        return self.a.swizzle == self.b.swizzle

    def byte(self, found: int) -> int | None:
        """Where a byte that the digits share lies in memory."""
        return self.a.swizzle(found) if self.is_exact else None

    @cached_property
    def assumes(self) -> tuple[str, ...]:
        """What a proof from the numbers rests on."""
        ends = ((self.source, self.a), (self.sink, self.b))
        wide = {op.id for op, access in ends if self._elements(access) > WRAP_AT}
        found = tuple(f"an index of {op}, which reaches 2^31, does not wrap" for op in sorted(wide))
        if self.a.opaque or self.b.opaque:
            found += (INDEX_IN_BOUNDS,)
        return found


def _blurred(access: Access) -> Access:
    """With every byte to which the swizzle could move one of its bytes."""
    by = (1 << access.swizzle.width) - 1
    offset, width = access.offset - by, access.width + 2 * by
    return replace(access, offset=offset, width=width, swizzle=PLAIN)


INDEX_IN_BOUNDS = "indices that are read on the device stay inside their tensors"


def kind_of(a: Mode, b: Mode) -> str:
    """What an order between two modes is called: RAW, WAR, WAW or accumulate."""
    if Mode.accumulate in (a, b):
        return "accumulate"
    return {(Mode.write, Mode.read): "RAW", (Mode.read, Mode.write): "WAR"}.get((a, b), "WAW")
