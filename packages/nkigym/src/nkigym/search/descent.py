"""Descents: from the root, and from programs on the way to the best, step by step to faster ones.

A step is kept where it gains. While a program is not unrolled, the gain is in latency times bound:
a schedule with less work for an engine pays off only once the waits that hide it are gone. After
that, it is in latency alone. Kinds of step that have gained before are tried more often. The
results of descents are a population that evolves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random
from typing import Generic

from nkigym.search.budget import Settings
from nkigym.search.evolution import STALE, appended, next_generation
from nkigym.search.explorer import Explorer, Node
from nkigym.search.protocol import State, Step

PATIENCE = 60
"""Programs in a row that gain nothing, after which a descent goes on to its next part."""
HASTE = 30
"""The same at its end, where programs are long and their estimates expensive."""
GAIN = 0.995
"""What is gained if anything is; less is left to the end."""
EQUAL = 1.0001
COMPACT, MORE = 1.1, 4
"""So many times as long as the root, and so many statements more, is a program not written out."""
SHARE = 4
"""Behind each descent, a child for every so many places of the population."""

Score = Callable[[Node], float]


def descent(explorer: Explorer[State, Step], random: Random, settings: Settings) -> str:
    """Descents one after the other, and some evolution between them."""
    descents = _Descents(explorer, random)
    start, best, population = explorer.root, explorer.root, [explorer.root]
    stale = 0
    while stale < STALE:
        known = len(explorer.nodes)
        middle, end = descents.take(start)
        if end.rank < best.rank:
            best, descents.way = end, [explorer.root, *middle.path()]
        population += [middle, end]
        size = settings.population
        population = next_generation(explorer, random, population, -(-size // SHARE), size)
        start = descents.elsewhere()
        stale = stale + 1 if len(explorer.nodes) == known else 0
    return "converged"


def _latency(node: Node) -> float:
    return node.value_ns


def _promise(node: Node) -> float:
    return node.value_ns * node.bound_ns


@dataclass(slots=True)
class _Descents(Generic[State, Step]):
    """Results of the descents so far."""

    explorer: Explorer[State, Step]
    random: Random
    gains: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Kind of step → how often it has gained, and how often it was tried."""
    way: list[Node[State, Step]] = field(default_factory=list)
    """What the best was, as long as it was not written out."""
    number: int = 0

    def __post_init__(self) -> None:
        self.way = [self.explorer.root]

    def take(self, start: Node) -> tuple[Node, Node]:
        """Where it leads as long as nothing is written out, and where at last."""
        kinds = self.explorer.space.kinds
        some = [kind for kind in kinds.some if self.number and self.random.random() < 0.5]
        self.number += 1
        self.explorer.estimate(start, even_if_hopeless=True)
        node = self._climb(start, _promise, kinds.first, is_free=True)
        middle = self._climb(node, _promise, (*kinds.first, *kinds.then, *some))
        offered = self.explorer.by_kind(middle)
        tried = [
            self.explorer.attempt(middle, step).node
            for kind in kinds.last
            for step in offered.get(kind, ())
        ]
        made = [node for node in tried if node is not None and node.latency_ns is not None]
        return middle, self._climb(min([middle, *made], key=lambda node: node.rank), _latency)

    def elsewhere(self) -> Node:
        """Where the next one begins: on the way to the best, some steps aside."""
        node = self.random.choice(self.way)
        for _ in range(self.random.randint(0, 3)):
            node = appended(self.explorer, self.random, node)
        return node if self._is_compact(node) else self.explorer.root

    def _climb(
        self, node: Node, score: Score, only: Collection[str] = (), is_free: bool = False
    ) -> Node:
        """The program after steps that gain; with `is_free`, also after steps that lose nothing.
        With `only`, steps of these kinds, while the program is not unrolled.
        """
        failed, untried = 0, self._untried(node, only)
        while untried and failed < (PATIENCE if only else HASTE):
            kind, step = self._drawn(untried)
            child, is_new = self.explorer.attempt(node, step, estimated=False)
            gained, tries = self.gains.get(kind, (0, 0.0))
            self.gains[kind] = gained, tries + (0.1 if child is None else 1)
            if child is None or child is node or (only and not self._is_compact(child)):
                continue
            self.explorer.estimate(child, even_if_hopeless=bool(only))
            if child.latency_ns is None:
                failed += 1
                continue
            before, after = score(node), score(child)
            self.gains[kind] = gained + (after < GAIN * before), tries + 1
            is_equal = is_new and after <= EQUAL * before
            if after < GAIN * before or (is_equal and (is_free or self._is_shorter(child, node))):
                node, failed, untried = child, 0, self._untried(child, only)
            else:
                failed += 1
        return node

    def _drawn(self, untried: dict[str, list[Step]]) -> tuple[str, Step]:
        """A kind, and one of its untried steps, which is removed."""
        kind = self._kind(untried)
        steps = untried[kind]
        step = steps.pop(self.random.randrange(len(steps)))
        if not steps:
            del untried[kind]
        return kind, step

    def _untried(self, node: Node, only: Collection[str]) -> dict[str, list[Step]]:
        kinds = self.explorer.by_kind(node).items()
        return {kind: steps for kind, steps in kinds if not only or kind in only}

    def _kind(self, untried: dict[str, list[Step]]) -> str:
        """A kind of which there are many, or that has often gained."""
        weights = []
        for kind, steps in untried.items():
            gained, tried = self.gains.get(kind, (0, 0.0))
            weights.append((gained + 1) / (tried + 2) * len(steps) ** 0.5)
        return self.random.choices(list(untried), weights)[0]

    def _is_compact(self, node: Node) -> bool:
        length = self.explorer.space.statements
        return length(node.state) <= COMPACT * length(self.explorer.root.state) + MORE

    def _is_shorter(self, node: Node, other: Node) -> bool:
        length = self.explorer.space.statements
        return length(node.state) < length(other.state)
