"""Occupancy of SBUF and PSUM: bytes per partition of SBUF, whole banks of PSUM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from neuroncore.enums import MemorySpace
from neuroncore.errors import CapacityError, Violation

if TYPE_CHECKING:
    from neuroncore.targets import Target

SHOWN = 6  # holders named in a message
_UNITS = {MemorySpace.sbuf: "bytes per partition", MemorySpace.psum: "banks"}


def units_held(space: MemorySpace, target: Target, free_bytes: int) -> int:
    """The occupancy of a tensor of so many bytes per partition."""
    return -(-free_bytes // _unit_bytes(space, target))


def units_between(
    space: MemorySpace, target: Target, first: int, free_bytes: int
) -> tuple[int, int]:
    """The units under a tensor at byte `first` of each partition: the first, one past the last."""
    unit = _unit_bytes(space, target)
    return first // unit, -(-(first + free_bytes) // unit)


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """How much lies under at least one of these spans."""
    total, reached = 0, 0
    for low, high in sorted(spans):
        total += max(0, high - max(low, reached))
        reached = max(reached, high)
    return total


def over_capacity(
    space: MemorySpace, target: Target, held: int, usable_sbuf: int, holders: list[str]
) -> Violation | None:
    """The violation of storing so much at once, `holders` being the largest first."""
    limit = target.psum_banks if space is MemorySpace.psum else usable_sbuf
    if held <= limit:
        return None
    more = f" and {len(holders) - SHOWN} more" if len(holders) > SHOWN else ""
    return Violation(
        CapacityError,
        f"{held} {_UNITS[space]} of {space.name.upper()} are held at once",
        expected=f"at most {limit} {_UNITS[space]} on {target.name}",
        got=", ".join(holders[:SHOWN]) + more,
        hint="use tiles one after the other, make them smaller, or keep them in HBM",
        rule=f"NKI architecture guide: {space.name.upper()} size",
    )


def _unit_bytes(space: MemorySpace, target: Target) -> int:
    return target.psum_bank_bytes if space is MemorySpace.psum else 1
