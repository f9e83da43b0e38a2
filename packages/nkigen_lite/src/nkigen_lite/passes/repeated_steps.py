"""Repeated steps in the nodes of a graph: the unrolled iterations of a loop over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from nkigen_lite.ir import Graph, Node
from nkigen_lite.passes.steps import Operand, Steps, key_of

LEAST_STEPS = 16
"""Steps from which on a loop is one: fewer are scheduled better as they are."""

WINDOW = 3
"""Nodes in a row that identify the distance between two steps."""

PERIODS = 8
"""Distances that are tried."""


def find_steps(graph: Graph) -> Steps | None:
    """The longest repeated steps that carry values from one to the next; None without any."""
    places = {n.name: number for number, n in enumerate(graph.nodes)}
    for start, period, length in _repetitions(_keys(graph)):
        found = _first_valid(graph, start, period, length, places)
        if found is not None:
            return _with_step_before(found)
    return None


def why_unrolled(graph: Graph) -> str:
    """Why the longest repeated steps are unrolled; empty without any."""
    places = {n.name: number for number, n in enumerate(graph.nodes)}
    for start, period, length in _repetitions(_keys(graph))[:1]:
        steps = Steps(graph, start, period, length // period)
        origin = graph.nodes[start].origin
        at = f"{steps.count} steps of {period} operations" + (
            f" at line {origin.line}" if origin else ""
        )
        operands = _operands(steps, 1, places)
        if operands is not None and not replace(steps, operands=operands).carried:
            return f"{at} carry no value from one to the next"
        return f"{at} take their operands from different places"
    return ""


def _keys(graph: Graph) -> list[int]:
    known: dict[Any, int] = {}
    return [known.setdefault(key_of(node), len(known)) for node in graph.nodes]


def _repetitions(keys: Sequence[int]) -> list[tuple[int, int, int]]:
    """(first node, period, nodes) of repeated sequences, the longest first."""
    votes, last = Counter[int](), dict[tuple[int, ...], int]()
    for number in range(len(keys) - WINDOW + 1):
        window = tuple(keys[number : number + WINDOW])
        if window in last:
            votes[number - last[window]] += 1
        last[window] = number
    found = [_longest(keys, period) for period, _ in votes.most_common(PERIODS)]
    found = [f for f in found if f[2] // f[1] >= LEAST_STEPS]
    return sorted(found, key=lambda f: (-f[2], f[1]))


def _longest(keys: Sequence[int], period: int) -> tuple[int, int, int]:
    best = start = 0
    streak = 0
    for number in range(len(keys) - period):
        streak = streak + 1 if keys[number] == keys[number + period] else 0
        if streak > best:
            best, start = streak, number - streak + 1
    return start, period, best + period


def _first_valid(
    graph: Graph, start: int, period: int, length: int, places: Mapping[str, int]
) -> Steps | None:  # fmt: skip
    """The steps, begun where the fewest values are carried, if possible so that the last one is
    complete; without the first if that differs."""
    every: list[Steps] = []
    for phase in range(period):
        steps = Steps(graph, start + phase, period, (length - phase) // period)
        operands = _operands(steps, 1, places)
        if operands is not None:
            every.append(replace(steps, operands=operands))
    every.sort(key=lambda s: (len(s.carried), start + length - s.end))
    if not every or not every[0].carried:
        return None
    for steps in every[:2]:
        later = replace(steps, start=steps.start + period, count=steps.count - 1)
        for each in (steps, later):
            found = _checked(each, places) if each.count > 1 else None
            if found is not None and found.count >= LEAST_STEPS - 2:
                return found
    return None


def _operands(
    steps: Steps, step: int, places: Mapping[str, int]
) -> tuple[tuple[Operand, ...], ...] | None:  # fmt: skip
    """Where a step's operands come from; None where some come from two steps before."""
    found = []
    for place in range(steps.period):
        mine = [_operand(steps, step, o, places) for o in steps.node(step, place).operands]
        if any(kind == "earlier" for kind, _ in mine):
            return None
        found.append(tuple(mine))
    return tuple(found)


def _operand(steps: Steps, step: int, value: str, places: Mapping[str, int]) -> Operand:
    number = places.get(value, -1)
    if not steps.start <= number < steps.end:
        return "outside", value
    of, place = divmod(number - steps.start, steps.period)
    kinds = {step: "inside", step - 1: "carried"}
    return kinds.get(of, "earlier"), place


def _checked(steps: Steps, places: Mapping[str, int]) -> Steps | None:
    """The steps with their first values and moves, if all are alike."""
    if any(_operands(steps, s, places) != steps.operands for s in range(1, steps.count)):
        return None
    initial = _initial(steps, places)
    moves = {p: _move(steps, p) for p in range(steps.period) if "starts" in steps.node(0, p).attrs}
    if initial is None or None in moves.values():
        return None
    moved = {place: by for place, by in moves.items() if by is not None and any(by)}
    found = replace(steps, initial=initial, moves=moved)
    return found if all(_may_move(found, place) for place in moved) else None


def _initial(steps: Steps, places: Mapping[str, int]) -> dict[int, str] | None:
    """The value in place of each carried one in the first step; None where the step differs."""
    first: dict[int, str] = {}
    specs = steps.graph.specs
    for place, operands in enumerate(steps.operands):
        for value, (kind, expected) in zip(steps.node(0, place).operands, operands, strict=True):
            found = _operand(steps, 0, value, places)
            if kind == "carried":
                same = specs[value] == steps.node(0, expected).spec
                if not same or first.setdefault(expected, value) != value or found[0] != "outside":
                    return None
            elif found != (kind, expected):
                return None
    return first


def _move(steps: Steps, place: int) -> tuple[int, ...] | None:
    """How far the beginning moves in every step; None where steps differ."""
    starts = [steps.node(s, place).attrs["starts"] for s in range(steps.count)]
    by = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(starts)]
    return by[0] if all(b == by[0] for b in by) else None


def _may_move(steps: Steps, place: int) -> bool:
    """Whether one place of one axis of an array from outside, or of a collector, moves."""
    node, (axis, *more) = steps.node(0, place), [d for d, n in enumerate(steps.moves[place]) if n]
    if more:
        return False
    if node.op == "slice":
        return node.attrs["sizes"][axis] == 1 and steps.operands[place][0][0] == "outside"
    part = steps.graph.specs[node.operands[1]].shape
    return part[axis] == 1 and _is_only_written(steps, place)


def _is_only_written(steps: Steps, place: int) -> bool:
    """Whether the update's array is used by the same update of the next step alone."""
    users = [
        p for p, of in enumerate(steps.operands) if {("carried", place), ("inside", place)} & {*of}
    ]
    return users == [place] and steps.operands[place][0] == ("carried", place)


# ------------------------------------------------------- the step before the first


def _with_step_before(steps: Steps) -> Steps:
    """One more step, if what leads to the first step's values is one in another order: values that
    all steps share are made in the first."""
    unify = _Unifier(steps)
    carried = all(unify.same(place, name) for place, name in steps.initial.items())
    wanted = [p for p in _used_later(steps) if p not in unify.found]
    if not carried or not all(any(unify.attempts(place)) for place in wanted):
        return steps
    if unify.initial.keys() != steps.initial.keys():
        return steps
    return replace(steps, initial=unify.initial, before=unify.found)


def _used_later(steps: Steps) -> set[int]:
    """The places whose values are used behind the steps."""
    later = {o for n in steps.graph.nodes[steps.end :] for o in n.operands}
    later |= set(steps.graph.results)
    return {place for name, (_, place) in steps.values.items() if name in later}


@dataclass(slots=True)
class _Unifier:
    """Compares the nodes of a step with what leads to a value before the first step."""

    steps: Steps
    found: dict[int, str] = field(default_factory=dict)
    initial: dict[int, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(init=False)

    def __post_init__(self) -> None:
        steps = self.steps
        self.nodes = {n.name: n for n in steps.graph.nodes[: steps.start]}

    def same(self, place: int, value: str) -> bool:
        """Whether the value is what the place of a step makes."""
        if place in self.found:
            return self.found[place] == value
        node, model = self.nodes.get(value), self.steps.node(0, place)
        if node is None or key_of(node) != key_of(model) or not self.begins(place, node):
            return False
        self.found[place] = value
        pairs = zip(self.steps.operands[place], node.operands, strict=True)
        return all(self.operand(kind, where, o) for (kind, where), o in pairs)

    def begins(self, place: int, node: Node) -> bool:
        """Whether a slice begins one step before that of the first step."""
        starts, by = self.steps.node(0, place).attrs.get("starts"), self.steps.moves.get(place)
        if by is None or starts is None:
            return node.attrs.get("starts") == starts
        return node.attrs["starts"] == tuple(a - b for a, b in zip(starts, by, strict=True))

    def operand(self, kind: str, where: Any, value: str) -> bool:
        if kind == "outside":
            return value == where
        if kind == "carried":
            return self.initial.setdefault(where, value) == value
        return self.same(where, value)

    def attempts(self, place: int) -> Iterator[bool]:
        """Every node before the first step, the last first, as the one that makes the place."""
        kept = dict(self.found), dict(self.initial)
        for value in reversed(self.nodes):
            if key_of(self.nodes[value]) == key_of(self.steps.node(0, place)):
                yield self.same(place, value)
                self.found, self.initial = dict(kept[0]), dict(kept[1])
