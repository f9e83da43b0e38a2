"""Ways to walk through a space. Each is a generator of nothing: it tries steps until none is left.

Nothing here looks at a clock. What is tried next depends on the seed and on what was found, so a
search that time has stopped is the beginning of one that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import TypeVar

from nkigym.search.errors import ConstraintError
from nkigym.search.explorer import Explorer, Node
from nkigym.search.space import State, Step

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a strategy can be told. Raises ConstraintError for a number below 1.

    `num_targets` (random): stop once so many unique programs qualify. `width` (beam): how many
    programs of a depth go on. `population` (evolutionary): how many programs survive a generation.
    """

    num_targets: float = inf
    width: int = 8
    population: int = 24

    def __post_init__(self) -> None:
        for name in ("num_targets", "width", "population"):
            if not getattr(self, name) >= 1:
                raise ConstraintError(
                    f"{name} {getattr(self, name)} leaves nothing to search", expected="1 or more"
                )


Strategy = Callable[[Explorer, Random, Settings], str]
"""Tries steps; why it has stopped by itself."""


def exhaustive(explorer: Explorer[State, Step], random: Random, settings: Settings) -> str:
    """Every step of every program, breadth first."""
    todo = [explorer.root]
    for node in todo:
        for step in explorer.steps(node):
            child, is_new = explorer.attempt(node, step)
            if child is not None and is_new:
                todo.append(child)
    return "exhausted"


def uniform(explorer: Explorer[State, Step], random: Random, settings: Settings) -> str:
    """A program with untried opportunities, each as likely as any other; of these, any.

    As the public original of February 2026 grows its graph: frontier as a list, untried
    opportunities swapped to its end and removed.
    """
    frontier = _Frontier()
    frontier.add(explorer.root, len(explorer.steps(explorer.root)))
    while explorer.qualifying < settings.num_targets:
        if not frontier.nodes:
            return "exhausted"
        node, index = frontier.take(random)
        child, is_new = explorer.attempt(node, explorer.steps(node)[index])
        if child is not None and is_new:
            frontier.add(child, len(explorer.steps(child)))
    return "targets"


class _Frontier:
    """Nodes with untried opportunities; adding and taking cost the same however many there are."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Node, list[int]]] = []

    def add(self, node: Node, opportunities: int) -> None:
        if opportunities:
            self.nodes.append((node, list(range(opportunities))))

    def take(self, random: Random) -> tuple[Node, int]:
        """Any node, any of its untried opportunities, which then is tried."""
        at = random.randrange(len(self.nodes))
        node, untried = self.nodes[at]
        index = _removed(untried, random.randrange(len(untried)))
        if not untried:
            _removed(self.nodes, at)
        return node, index


def _removed(items: list[Item], at: int) -> Item:
    """Takes one out; the last takes its place."""
    items[at], items[-1] = items[-1], items[at]
    return items.pop()


def beam(explorer: Explorer[State, Step], random: Random, settings: Settings) -> str:
    """The best `width` programs of a depth lead to the next, also where these are slower."""
    level = [explorer.root]
    while level:
        children: list[Node[State, Step]] = []
        for node in level:
            for step in explorer.steps(node):
                child, is_new = explorer.attempt(node, step)
                if child is not None and is_new:
                    children.append(child)
        level = sorted(children, key=lambda node: node.rank)[: settings.width]
    return "converged"


def best_first(explorer: Explorer[State, Step], random: Random, settings: Settings) -> str:
    """Every step of the best program that has not been expanded. What its bound keeps from winning
    waits behind everything that is faster than that.
    """
    heap = [(explorer.root.rank, explorer.root)]
    while heap:
        _, node = heappop(heap)
        for step in explorer.steps(node):
            child, is_new = explorer.attempt(node, step)
            if child is not None and is_new:
                heappush(heap, (child.rank, child))
    return "exhausted"


STALE = 64
"""Generations without a program that is new, after which evolution has come to its end."""
TRIES = 8
"""Steps that are refused before a child stays without."""


def evolutionary(explorer: Explorer[State, Step], random: Random, settings: Settings) -> str:
    """A population of schedules. A child is a parent's schedule with steps appended, with one of
    its steps changed or left out, or with another's tail; what no longer applies is left out too.
    The fastest survive, one of each price.
    """
    population = [explorer.root]
    stale = 0
    while stale < STALE:
        known = len(explorer.nodes)
        children = [_child(explorer, random, population) for _ in range(settings.population)]
        fastest: dict[float, Node] = {}
        for node in sorted((*population, *children), key=lambda node: node.rank):
            fastest.setdefault(node.value_ns, node)
        population = list(fastest.values())[: settings.population]
        stale = stale + 1 if len(explorer.nodes) == known else 0
    return "converged"


KINDS = {"append": 8, "change": 2, "drop": 1, "cross": 1}
"""How a child comes about, and how often."""


def _child(explorer: Explorer[State, Step], random: Random, population: list[Node]) -> Node:
    parent, other = _chosen(random, population), _chosen(random, population)
    steps, others = parent.steps_taken(), other.steps_taken()
    at = random.randrange(len(steps)) if steps else 0
    match random.choices(list(KINDS), list(KINDS.values()))[0]:
        case "change" if steps:
            before = parent.path()[at].parent
            assert before is not None
            changed = random.choice(_alike(explorer, before, steps[at]))
            return _replayed(explorer, before, [changed, *steps[at + 1 :]])
        case "drop" if steps:
            before = parent.path()[at].parent
            assert before is not None
            return _replayed(explorer, before, steps[at + 1 :])
        case "cross" if steps and others:
            tail = random.randrange(len(others))
            return _replayed(explorer, parent.path()[at], others[tail:])
    node = parent
    for _ in range(random.randint(1, 3)):
        node = _appended(explorer, random, node)
    explorer.price(node)
    return node


def _alike(explorer: Explorer[State, Step], node: Node, step: Step) -> list[Step]:
    """The steps of a node that differ from one of them in numbers at most."""
    family = explorer.space.family(step)
    return [each for each in explorer.steps(node) if explorer.space.family(each) == family]


def _appended(explorer: Explorer[State, Step], random: Random, node: Node) -> Node:
    """Any step more that can be taken, if there is one among some."""
    possible = explorer.steps(node)
    for _ in range(TRIES if possible else 0):
        child = explorer.attempt(node, random.choice(possible), priced=False).node
        if child is not None:
            return child
    return node


def _chosen(random: Random, population: list[Node]) -> Node:
    """The better of two."""
    return min(random.choice(population), random.choice(population), key=lambda node: node.rank)


def _replayed(explorer: Explorer[State, Step], node: Node, steps: list[Step]) -> Node:
    """Where those of the steps lead from a node that can be taken."""
    for step in steps:
        if node.depth < explorer.constraints.max_depth and step in explorer.steps(node):
            node = explorer.attempt(node, step, priced=False).node or node
    explorer.price(node)
    return node


STRATEGIES: Mapping[str, Strategy] = {
    "exhaustive": exhaustive,
    "random": uniform,
    "beam": beam,
    "best-first": best_first,
    "evolutionary": evolutionary,
}
"""By the names that users know."""
