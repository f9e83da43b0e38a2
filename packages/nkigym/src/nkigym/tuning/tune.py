"""From a function or a kernel to its fastest schedule under a budget, proved and as source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isclose
from pathlib import Path
from typing import Any

from neuroncore.program import Program, emit
from nkigym.analysis.roofline import Rooflines
from nkigym.search import Budget, Constraints, Node, Plan, Report, Settings, parse_budget, search
from nkigym.search.explorer import Watcher
from nkigym.store import Recorder, Result, Store, StoreCorruptError, StoreError
from nkigym.tiles import TileProgram
from nkigym.tuning.task import TuningTask, tuning_task
from nkigym.tuning.tuned import Tuned


def tune(
    function: Program | TileProgram | Callable[..., Any],
    *specs: Any,
    target: str | None = None,
    nki: str | None = None,
    budget: str | int | Budget = "60s",
    strategy: str = "descent",
    seed: int = 0,
    min_depth: int = 0,
    max_depth: float = inf,
    engines: Sequence[str] | None = None,
    settings: Settings | None = None,
    store: str | Path | None = None,
    watcher: Watcher | None = None,
) -> Tuned:
    """The fastest schedule of a kernel program, of a tile program, or of a NumPy function or an
    `@nki.jit` kernel for arguments like `specs`.

    budget: time ("60s") or candidates (1000). With candidates the search finds the same each time;
    with a time, `report.candidates` is the number that finds the same. Proving the winner comes on
    top. store: a file that keeps results, and whose latencies are reused.

    Raises BudgetError, ConstraintError, EmptySpaceError, StoreError; what `nkigym.baseline` raises
    for functions without a baseline kernel; VerificationError, which is a bug of nkigym.
    """
    spent = budget if isinstance(budget, Budget) else parse_budget(str(budget))
    constraints = Constraints(min_depth, max_depth)
    plan = Plan(strategy, spent, seed, constraints, settings or Settings())
    asked = tuning_task(function, specs, target, nki, engines)
    space = asked.space
    if store is None:
        outcome, kept = search(space, plan, watcher=watcher), None
    else:
        with Store(store) as opened:
            kept = _Kept(opened, asked)
            try:
                outcome = search(space, plan, kept.latencies, kept.found, watcher)
            finally:
                kept.recorder.flush()
            _check_latency(store, space.latency_ns(outcome.best.state), outcome.report.best_ns)
            kept.close(outcome.report)
    schedule = tuple(space.write_step(step) for step in outcome.best.schedule())
    winner = asked.kernel(outcome.best.state)
    rooflines = Rooflines(asked.root.target, asked.root.nki)
    return Tuned(
        asked.root,
        winner,
        emit(winner),
        schedule,
        outcome.report,
        asked.verify_winner(outcome.best.state, schedule),
        rooflines.of(winner),
        rooflines.of(asked.root),
        kept.recorder.trouble if kept else None,
        kept.faster_ns if kept else None,
    )


def _check_latency(store: str | Path, latency_ns: float, stored_ns: float) -> None:
    """Raise StoreCorruptError where what was taken from a store is not what the winner takes."""
    if not isclose(latency_ns, stored_ns):
        raise StoreCorruptError(
            f"{store} says that a kernel takes {stored_ns / 1e3:,.2f} µs",
            expected=f"{latency_ns / 1e3:,.2f} µs, as the timeline has it",
            hint="name another file",
        )  # fmt: skip


class _Kept:
    """A search's way to its store."""

    def __init__(self, store: Store, asked: TuningTask) -> None:
        self.problem = asked.known()
        self.latencies = store.latencies(self.problem.key)
        self.recorder = Recorder(store, self.problem)
        self.faster_ns: float | None = None
        self._space, self._store = asked.space, store

    def found(self, node: Node) -> None:
        """Record a candidate with its latency."""
        assert node.latency_ns is not None
        schedule = tuple(self._space.write_step(step) for step in node.schedule())
        digest = self._space.digest(node.state)
        self.recorder.add(Result(digest, node.latency_ns, node.bound_ns, schedule))

    def close(self, report: Report) -> None:
        """The end of the search; what the store has that cannot be read is its trouble."""
        try:
            best = self._store.best(self.problem.key)
        except StoreError as wrong:
            self.recorder.trouble = self.recorder.trouble or wrong
            return
        self.recorder.close(report.to_json())
        if best and best[0].latency_ns < report.best_ns:
            self.faster_ns = best[0].latency_ns
