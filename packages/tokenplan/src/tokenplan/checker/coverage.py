"""Accesses of a function that were executed, and every two of them whose order matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, product
from typing import Any

from tokenplan.checker.tile_accesses import ACQUIRES, RELEASES, TileAccess
from tokenplan.checker.tile_control_flow import BOUNDS, LEAVES

_BRANCHES = (0, 1)
_FIXED = ("make_token", "constant")
"""Operations without operands whose result is the same in all executions."""


@dataclass(frozen=True, slots=True)
class Place:
    """Of an access in a function; operations as their `id`."""

    loops: frozenset[int] = frozenset()
    """Around it."""
    varied: frozenset[int] = frozenset()
    """Of these, whose iterations depend on sizes, the place in the grid or what is loaded."""
    branches: dict[int, int] = field(default_factory=dict)
    """By `if` around it, the branch."""
    changes: dict[int, frozenset[int]] = field(default_factory=dict)
    """By `if`, the loops that may change its condition."""

    def excludes(self, other: Place) -> bool:
        """Whether one execution has either this or the other."""
        shared = self.loops & other.loops
        return any(other.branches.get(op, n) != n and not shared & self.changes[op]
                   for op, n in self.branches.items())  # fmt: skip


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
        return self.places[one].varied & self.places[other].varied

    def missing(self) -> str:
        """The first that no execution contains, in words."""
        one, other = (*next(self.absent(), ()), "", "")[:2]
        if not other:
            return one
        both = one if one == other else f"{one} and {other} together"
        return f"{both} in two iterations" if self.around(one, other) else both

    def absent(self) -> Iterator[tuple[str, ...]]:
        """Each access, and each two of others, that no execution contains; the order of two weak
        loads is none."""
        for name in self.places:
            if name not in self.owners and name not in self.outside:
                yield (name,)
        for pair in self.every_two({*self.owners}):
            if pair not in self.pairs and self.matters(*pair):
                yield pair

    def choices(self, absent: tuple[str, ...]) -> dict[int, tuple[int, ...]]:
        """By `if`, the branches to execute, cyclically, for what no execution contains."""
        found: dict[int, dict[int, None]] = {}
        for name in absent:
            for op, n in self.places[name].branches.items():
                found.setdefault(op, {})[n] = None
        return {op: (*branches,) for op, branches in found.items()}

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
    return dict(_Places(names, varied).of(function.body, Place()))


@dataclass
class _Places:
    names: Mapping[Any, str]
    varied: set[Any]
    """What depends on sizes, on the place in the grid or on what is loaded."""
    changes: dict[Any, frozenset[int]] = field(default_factory=dict)
    """By value, the loops in whose iterations it may differ; absent: none."""

    def of(self, block: Any, place: Place) -> Iterator[tuple[str, Place]]:
        for op in block.operations:
            yield from self.within(op, place)
            if op.results and op.results[-1] in self.names:
                yield self.names[op.results[-1]], place
            left = list(_left(op))
            if len([n for other, n in left if other is op]) == len(_BRANCHES):
                return  # what follows is not executed
            for other, n in left:
                place = self.inside(place, other, 1 - n, False)

    def within(self, op: Any, place: Place) -> Iterator[tuple[str, Place]]:
        """The accesses in its regions; what its results depend on is known then."""
        is_varied = op.name == "loop" or _is_varied(op, self.varied)
        for n, region in enumerate(op.regions):
            inside = self.inside(place, op, n, is_varied)
            self.varied.update(region.arguments[not is_varied :])
            self.changes.update(dict.fromkeys(region.arguments, inside.loops))
            yield from self.of(region, inside)
        has_effect = bool(op.regions) or op.name.endswith("_tko")
        self.varied.update(op.results if is_varied or has_effect else ())
        found = place.loops if has_effect else self.changing(op)
        self.changes.update(dict.fromkeys(op.results, found))

    def changing(self, op: Any) -> frozenset[int]:
        return frozenset().union(*(self.changes.get(v, frozenset()) for v in op.inputs))

    def inside(self, place: Place, op: Any, region: int, is_varied: bool) -> Place:
        if op.name == "if":
            return replace(place, branches=place.branches | {id(op): region},
                           changes=place.changes | {id(op): self.changing(op)})  # fmt: skip
        return replace(place, loops=place.loops | {id(op)},
                       varied=place.varied | ({id(op)} if is_varied else set()))  # fmt: skip


def _left(op: Any, ends: Sequence[str] = LEAVES) -> Iterator[tuple[Any, int]]:
    """Each `if`, and its branch behind which nothing of the block with the operation follows."""
    for n, region in enumerate(op.regions):
        for inner in region.operations:
            yield from _left(inner, ends if op.name == "if" else ("return",))
        if op.name == "if" and region.operations[-1].name in ends:
            yield op, n


def _is_varied(op: Any, varied: set[Any]) -> bool:
    """Whether its results are, or the number of its iterations."""
    operands = [op.operands[n] for n in BOUNDS] if op.name == "for" else op.operands.values()
    inputs = [value for values in operands for value in values]
    return not varied.isdisjoint(inputs) if inputs else op.name not in _FIXED
