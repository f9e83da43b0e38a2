"""A search: a space, a strategy, a budget; the best program and its cost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random, SystemRandom
from typing import Generic

from nkigym.search.budget import Budget, BudgetSpent, Constraints, Meter, Settings
from nkigym.search.errors import ConstraintError, SearchError
from nkigym.search.explorer import Explorer, Latencies, Node, Watcher
from nkigym.search.protocol import SearchSpace, State, Step
from nkigym.search.report import Report
from nkigym.search.strategies import STRATEGIES, exhaustive


@dataclass(frozen=True, slots=True)
class Plan:
    """How to search. A negative `seed` draws one; the report contains it."""

    strategy: str = "random"
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    constraints: Constraints = field(default_factory=Constraints)
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ConstraintError(
                f"{self.strategy!r} is not a strategy", expected=" or ".join(STRATEGIES)
            )
        if self.settings.num_targets < inf and self.strategy != "random":
            raise ConstraintError(
                f"{self.strategy} search has no num_targets", expected="random",
                hint="say how much it may try by its budget",
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome(Generic[State, Step]):
    """The root, the fastest candidate that qualifies, and the figures."""

    root: Node[State, Step]
    best: Node[State, Step]
    report: Report


def used_seed(seed: int) -> int:
    """The seed, or one that is drawn where it is negative."""
    return seed if seed >= 0 else SystemRandom().randrange(2**31)


def search(
    space: SearchSpace[State, Step],
    plan: Plan,
    latencies: Latencies | None = None,
    found: Callable[[Node[State, Step]], None] | None = None,
    watcher: Watcher | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome[State, Step]:
    """Look for the fastest program of a space.

    latencies: known latencies by digest, extended by the search. found: told of every candidate
    that the timeline has estimated. watcher: told of every candidate. Ctrl-C ends the search, not
    what it has found.

    Without a step at the root it is the only candidate.

    Raises SearchError for a root that cannot run and where nothing that was found qualifies.
    """
    seed = used_seed(plan.seed)
    meter = Meter(plan.budget, clock)
    known = {} if latencies is None else latencies
    explorer = Explorer(space, meter, plan.constraints, known, found, watcher)
    opportunities = len(space.steps(explorer.root.state))
    strategy = STRATEGIES[plan.strategy] if opportunities else exhaustive
    try:
        stopped = strategy(explorer, Random(seed), plan.settings)
    except BudgetSpent as spent:
        stopped = spent.why
    except KeyboardInterrupt:
        stopped = "interrupted"
    if explorer.best is None:
        raise SearchError(
            f"none of {len(explorer.nodes):,} programs qualifies",
            expected=f"one that is {plan.constraints.min_depth} steps or more from the root",
            hint="search longer, or ask for less depth",
        )
    report = _report(explorer, plan, seed, opportunities, stopped)
    return Outcome(explorer.root, explorer.best, report)


def _report(explorer: Explorer, plan: Plan, seed: int, opportunities: int, stopped: str) -> Report:
    assert explorer.best is not None
    nodes = [node for node in explorer.nodes.values() if node is not None]
    depths = Counter(node.depth for node in nodes)
    return Report(
        space=explorer.space.name,
        strategy=plan.strategy,
        seed=seed,
        root_statements=explorer.space.statements(explorer.root.state),
        root_opportunities=opportunities,
        unique=len(nodes),
        visited=explorer.transitions + 1,
        duplicates=explorer.duplicates,
        qualifying=explorer.qualifying,
        candidates=explorer.meter.candidates,
        estimated=explorer.estimated,
        cached=explorer.cached,
        depths=tuple(depths[depth] for depth in range(max(depths) + 1)),
        funnel={gate: dict(reasons) for gate, reasons in explorer.rejected.items() if reasons},
        stopped=stopped,
        root_ns=explorer.root.value_ns,
        best_ns=explorer.best.value_ns,
        seconds=round(explorer.meter.seconds, 3),
        curve=tuple(explorer.curve),
    )
