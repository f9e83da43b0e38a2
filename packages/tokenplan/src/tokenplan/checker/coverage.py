"""Accesses of a function that were executed, and every two of them whose order matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, product
from typing import Any

from tokenplan.checker.tile_accesses import ACQUIRES, RELEASES, TileAccess
from tokenplan.checker.tile_control_flow import BOUNDS, LEAVES

_FIXED = ("make_token", "constant")
"""Operations without operands whose result is the same in all executions."""


@dataclass(frozen=True, slots=True)
class Place:
    """Of an access in a function; operations as their `id`."""

    loops: frozenset[int] = frozenset()
    """Around it, whose iterations depend on sizes, the place in the grid or what is loaded."""
    branches: dict[int, int] = field(default_factory=dict)
    """By `if` around it, the branch."""

    def excludes(self, other: Place) -> bool:
        """Whether one execution has either this or the other."""
        is_other = any(other.branches.get(op, n) != n for op, n in self.branches.items())
        return is_other and not self.loops & other.loops


@dataclass
class Coverage:
    """What several executions contain, of accesses that have bytes."""

    places: Mapping[str, Place]
    """Of the accesses, in program order."""
    aliases: Sequence[tuple[int, int]] = ()
    outside: set[str] = field(default_factory=set)
    """Accesses that have no bytes at any size."""
    owners: dict[str, set[int]] = field(default_factory=dict)
    examples: dict[str, TileAccess] = field(default_factory=dict)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    """Executed together, in two iterations or more of each such loop around both."""
    executed: int = 0
    reason: str = ""
    """Why an execution ended."""

    def add(self, accesses: Iterable[TileAccess], repeated: set[int]) -> None:
        """One execution; `repeated`: its loops of two iterations or more."""
        self.executed += 1
        found = {access.name: access for access in accesses if len(access.runs)}
        for access in (access for access in accesses if len(access.runs)):
            self.owners.setdefault(access.name, set()).update(access.owners)
        self.examples.update(found)
        self.pairs.update(pair for pair in self.every_two(found) if self.around(*pair) <= repeated)

    def every_two(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """In program order, and each with itself."""
        return combinations_with_replacement(filter(set(names).__contains__, self.places), 2)

    def around(self, one: str, other: str) -> frozenset[int]:
        return self.places[one].loops & self.places[other].loops

    def missing(self) -> str:
        """An access, or two, that no execution contains; the order of two weak loads is none."""
        for name in self.places:
            if name not in self.owners and name not in self.outside:
                return name
        for one, other in self.every_two(self.owners):
            if (one, other) not in self.pairs and self.matters(one, other):
                both = one if one == other else f"{one} and {other} together"
                return f"{both} in two iterations" if self.around(one, other) else both
        return ""

    def matters(self, one: str, other: str) -> bool:
        """Whether their order does, of which a loop around both has the reverse, too."""
        if self.places[one].excludes(self.places[other]):
            return False
        first, second = self.examples[one], self.examples[other]
        pairs = [(first, second), (second, first)][: 1 + bool(self.around(one, other))]
        if any(a.order in ACQUIRES or b.order in RELEASES for a, b in pairs):
            return True
        shared = {frozenset(pair) for pair in self.aliases}
        owners = product(self.owners[one], self.owners[other])
        return (first.needs_order or second.needs_order) and any(
            a == b or frozenset((a, b)) in shared for a, b in owners
        )


def places_of(function: Any, names: Mapping[Any, str]) -> dict[str, Place]:
    """By access, in program order."""
    varied = {value for value in function.body.arguments if value.type["element"].kind != "ptr"}
    return dict(_places(function.body, names, varied, Place()))


def _places(
    block: Any, names: Mapping[Any, str], varied: set[Any], place: Place
) -> Iterator[tuple[str, Place]]:
    """varied: what depends on sizes, on the place in the grid or on what is loaded."""
    for op in block.operations:
        is_varied = op.name == "loop" or _is_varied(op, varied)
        for n, region in enumerate(op.regions):
            varied.update(region.arguments[not is_varied :])
            yield from _places(region, names, varied, _inside(place, op, n, is_varied))
        if is_varied or op.regions or op.name.endswith("_tko"):
            varied.update(op.results)
        if op.results and op.results[-1] in names:
            yield names[op.results[-1]], place
        place = _behind(place, op)


def _behind(place: Place, op: Any) -> Place:
    """The place of what follows: in the other branch, where one leaves."""
    for n, region in enumerate(op.regions if op.name == "if" else ()):
        if region.operations[-1].name in LEAVES:
            place = _inside(place, op, 1 - n, False)
    return place


def _is_varied(op: Any, varied: set[Any]) -> bool:
    """Whether its results are, or the number of its iterations."""
    operands = [op.operands[n] for n in BOUNDS] if op.name == "for" else op.operands.values()
    inputs = [value for values in operands for value in values]
    return not varied.isdisjoint(inputs) if inputs else op.name not in _FIXED


def _inside(place: Place, op: Any, region: int, is_varied: bool) -> Place:
    if op.name == "if":
        return replace(place, branches=place.branches | {id(op): region})
    return replace(place, loops=place.loops | ({id(op)} if is_varied else set()))
