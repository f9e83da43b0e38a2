"""The explored part of a search space.

A candidate is one step that is tried. It passes, in this order: the step's own precondition, what
is known already, legality, capacity, the bound, the timeline. What is rejected is counted with its
reason. A candidate that cannot win by its bound is not estimated; its steps may still be taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Generic, NamedTuple

from nkigym.search.budget import Constraints, Meter
from nkigym.search.errors import SearchError
from nkigym.search.protocol import RejectedStepError, SearchSpace, State, Step
from nkigym.search.report import GATES

NO_BETTER = "at best as long as the best so far"


@dataclass(slots=True, eq=False)
class Node(Generic[State, Step]):
    """A state that was reached: from which, by which step, how many steps from the root."""

    state: State
    number: int
    """In order of discovery."""
    depth: int
    bound_ns: float
    latency_ns: float | None = None
    was_considered: bool = False
    """Whether it was estimated, or found not to matter."""
    parent: Node[State, Step] | None = None
    step: Step | None = None
    singles: Sequence[Any] = ()
    """What that step is made of."""
    steps: Sequence[Step] | None = None

    @property
    def value_ns(self) -> float:
        """Its latency, or its bound where it was not estimated."""
        return self.bound_ns if self.latency_ns is None else self.latency_ns

    @property
    def rank(self) -> tuple[float, int]:
        """Smaller is better; of equals, the one that was found first."""
        return self.value_ns, self.number

    def path(self) -> list[Node[State, Step]]:
        """The nodes that lead to it from behind the root."""
        nodes: list[Node[State, Step]] = []
        node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def steps_taken(self) -> list[Step]:
        """The steps that lead to it, as they were offered."""
        return [node.step for node in self.path() if node.step is not None]

    def schedule(self) -> list[Any]:
        """The single steps that lead to it from the root."""
        return [single for node in self.path() for single in node.singles]


class Attempt(NamedTuple, Generic[State, Step]):
    """The result of a candidate: None where it was rejected, now or before."""

    node: Node[State, Step] | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """The progress that the watcher of a search receives."""

    candidates: int
    best_ns: float
    bound_ns: float
    """The best candidate's roofline."""
    seconds: float
    state: Any = None
    """The best candidate."""


Watcher = Callable[[SearchProgress], None]
Latencies = MutableMapping[str, float]
"""Known latencies by digest."""


@dataclass(slots=True)
class Explorer(Generic[State, Step]):
    """Tries steps, remembers what was found, counts what was rejected."""

    space: SearchSpace[State, Step]
    meter: Meter
    constraints: Constraints = field(default_factory=Constraints)
    latencies: Latencies = field(default_factory=dict)
    found: Callable[[Node[State, Step]], None] | None = None
    """Called with every candidate that the timeline has estimated."""
    watcher: Watcher | None = None
    root: Node[State, Step] = field(init=False)
    best: Node[State, Step] | None = field(init=False, default=None)
    """The best qualifying node."""
    nodes: dict[Hashable, Node[State, Step] | None] = field(init=False, default_factory=dict)
    rejected: dict[str, Counter[str]] = field(init=False, default_factory=dict)
    curve: list[tuple[int, float, float]] = field(init=False, default_factory=list)
    """Where the best became better: candidates, seconds, latency (ns)."""
    transitions: int = field(init=False, default=0)
    duplicates: int = field(init=False, default=0)
    qualifying: int = field(init=False, default=0)
    estimated: int = field(init=False, default=0)
    cached: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.rejected = {gate: Counter() for gate in GATES}
        state = self.space.root
        wrong = self.space.illegal(state) or self.space.over_capacity(state)
        if wrong:
            raise SearchError(
                f"the program to begin with cannot run: {wrong}",
                hint="begin with one that the machine takes: every step keeps what it computes",
            )
        self.root = Node(state, 0, 0, self.space.bound_ns(state))
        self.nodes[self.space.key(state)] = self.root
        self.qualifying += self.constraints.min_depth == 0
        self.estimate(self.root)

    def steps(self, node: Node[State, Step]) -> Sequence[Step]:
        """Steps to try from a node; none where it is as deep as it may be."""
        if node.steps is None:
            deeper = node.depth < self.constraints.max_depth
            node.steps = self.space.steps(node.state) if deeper else ()
        return node.steps

    def by_kind(self, node: Node[State, Step]) -> dict[str, list[Step]]:
        """The steps of a node by kind."""
        found: dict[str, list[Step]] = {}
        for step in self.steps(node):
            found.setdefault(self.space.kind(step), []).append(step)
        return found

    def attempt(
        self, node: Node[State, Step], step: Step, estimated: bool = True
    ) -> Attempt[State, Step]:
        """One candidate; one that is only on the way to others need not be estimated. Raises Spent
        where the budget is.
        """
        self.meter.take()
        tried = self._attempt(node, step)
        if estimated and tried.node is not None:
            self.estimate(tried.node)
        if self.watcher is not None:
            best = self.best or self.root
            seen = SearchProgress(
                self.meter.candidates,
                best.value_ns,
                best.bound_ns,
                self.meter.seconds,
                best.state,
            )
            self.watcher(seen)
        return tried

    def _attempt(self, node: Node[State, Step], step: Step) -> Attempt[State, Step]:
        try:
            state, singles = self.space.apply(node.state, step)
        except RejectedStepError as rejected:
            self.rejected["step"][str(rejected)] += 1
            return Attempt(None, False)
        self.transitions += 1
        key = self.space.key(state)
        if key in self.nodes:
            self.duplicates += 1
            return Attempt(self.nodes[key], False)
        self.nodes[key] = None
        if self._rejects("legality", self.space.illegal(state)):
            return Attempt(None, True)
        if self._rejects("capacity", self.space.over_capacity(state)):
            return Attempt(None, True)
        number, depth = len(self.nodes) - 1, node.depth + 1
        child = Node(state, number, depth, self.space.bound_ns(state))
        child.parent, child.step, child.singles = node, step, singles
        self.nodes[key] = child
        self.qualifying += child.depth >= self.constraints.min_depth
        return Attempt(child, True)

    def estimate(self, node: Node[State, Step], even_if_hopeless: bool = False) -> None:
        """Estimate the latency, unless that is done or the bound is above the best."""
        if node.was_considered and not (even_if_hopeless and node.latency_ns is None):
            return
        node.was_considered = True
        best_ns = inf if even_if_hopeless or self.best is None else self.best.value_ns
        hopeless = node.bound_ns >= best_ns
        if not self._rejects("bound", NO_BETTER if hopeless else None):
            self._estimate(node)

    def _rejects(self, gate: str, reason: str | None) -> bool:
        if reason is None:
            return False
        self.rejected[gate][reason] += 1
        return True

    def _estimate(self, node: Node[State, Step]) -> None:
        digest = self.space.digest(node.state)
        known = self.latencies.get(digest)
        self.estimated += 1
        if known is not None:
            self.cached += 1
            node.latency_ns = known
        else:
            node.latency_ns = self.latencies[digest] = self.space.latency_ns(node.state)
            if self.found is not None:
                self.found(node)
        qualifies = node.depth >= self.constraints.min_depth
        if qualifies and (self.best is None or node.rank < self.best.rank):
            self.best = node
            moment = self.meter.candidates, round(self.meter.seconds, 3), node.value_ns
            self.curve.append(moment)
