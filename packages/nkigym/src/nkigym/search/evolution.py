"""Evolution: schedules that change and mix, of which the fastest survive."""

from __future__ import annotations

from random import Random

from nkigym.search.budget import Settings
from nkigym.search.explorer import Explorer, Node
from nkigym.search.protocol import State, Step

STALE = 64
"""Generations without a program that is new, after which evolution has come to its end."""
TRIES = 8
"""Steps that are rejected before a child stays without."""


def evolutionary(explorer: Explorer[State, Step], random: Random, settings: Settings) -> str:
    """A population of schedules. A child is a parent's schedule with steps appended, with one of
    its steps changed or left out, or with another's tail; what no longer applies is left out too.
    The fastest survive, one of each latency.
    """
    population = [explorer.root]
    stale = 0
    while stale < STALE:
        known = len(explorer.nodes)
        population = next_generation(
            explorer, random, population, settings.population, settings.population
        )
        stale = stale + 1 if len(explorer.nodes) == known else 0
    return "converged"


def next_generation(
    explorer: Explorer[State, Step], random: Random, population: list[Node],
    children: int, survivors: int,
) -> list[Node]:  # fmt: skip
    """The fastest of a population and its children, one of each latency."""
    born = [_child(explorer, random, population) for _ in range(children)]
    fastest: dict[float, Node] = {}
    for node in sorted((*population, *born), key=lambda node: node.rank):
        fastest.setdefault(node.value_ns, node)
    return list(fastest.values())[:survivors]


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
        node = appended(explorer, random, node)
    explorer.estimate(node)
    return node


def _alike(explorer: Explorer[State, Step], node: Node, step: Step) -> list[Step]:
    """The steps of a node that differ from one of them in numbers at most."""
    family = explorer.space.family(step)
    return [each for each in explorer.steps(node) if explorer.space.family(each) == family]


def appended(explorer: Explorer[State, Step], random: Random, node: Node) -> Node:
    """Any step more that can be taken, if there is one among some."""
    possible = explorer.steps(node)
    for _ in range(TRIES if possible else 0):
        child = explorer.attempt(node, random.choice(possible), estimated=False).node
        if child is not None:
            return child
    return node


def _chosen(random: Random, population: list[Node]) -> Node:
    """The better of two."""
    return min(random.choice(population), random.choice(population), key=lambda node: node.rank)


def _replayed(explorer: Explorer[State, Step], node: Node, steps: list[Step]) -> Node:
    """The node after the steps that can be taken, from a node."""
    for step in steps:
        if node.depth < explorer.constraints.max_depth and step in explorer.steps(node):
            node = explorer.attempt(node, step, estimated=False).node or node
    explorer.estimate(node)
    return node
