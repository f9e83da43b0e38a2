"""Search strategies. Each tries steps until none remains or the budget is spent.

Strategies read no clock. What is tried next depends on the seed and on what was found, so a
search that time has stopped is the beginning of one that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from random import Random
from typing import TypeVar

from nkigym.search.budget import Settings
from nkigym.search.descent import descent
from nkigym.search.evolution import evolutionary
from nkigym.search.explorer import Explorer, Node
from nkigym.search.protocol import State, Step

Item = TypeVar("Item")


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


STRATEGIES: Mapping[str, Strategy] = {
    "exhaustive": exhaustive,
    "random": uniform,
    "beam": beam,
    "best-first": best_first,
    "evolutionary": evolutionary,
    "descent": descent,
}
"""By the names that users know."""
