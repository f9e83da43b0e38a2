"""From a function or a kernel to its fastest schedule under a budget, proved and as source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose
from pathlib import Path
from typing import Any

from neuroncore.program import Program, emit
from nkigym.search import (
    Budget,
    Constraints,
    Node,
    Plan,
    Report,
    Rooflines,
    Settings,
    parse_budget,
    search,
)
from nkigym.search.explorer import Watcher
from nkigym.store import Recorder, Result, Store, StoreCorruptError, StoreError
from nkigym.tiles import TileProgram
from nkigym.tuning.proof import Check
from nkigym.tuning.subject import Subject, subject
from nkigym.tuning.text import text


@dataclass(frozen=True, slots=True)
class Tuned:
    """The winner: its program, its source, the schedule that makes it of the root (as JSON), what
    was asked of it, and the figures of the search. Rooflines are ns by resource.
    """

    root: Program
    program: Program
    source: str
    schedule: tuple[Any, ...]
    report: Report
    checks: tuple[Check, ...]
    rooflines: Mapping[str, float]
    root_rooflines: Mapping[str, float]
    trouble: StoreError | None = None
    """Why the store does not have everything."""
    stored_ns: float | None = None
    """What a store's fastest takes, where that is less than this search has found."""

    @property
    def binding(self) -> str:
        """The resource that needs longest."""
        return max(self.rooflines, key=lambda name: self.rooflines[name])

    @property
    def ratio(self) -> float:
        """The winner's time against what that resource needs at least."""
        return self.report.best_ns / self.rooflines[self.binding]

    @property
    def speedup(self) -> float:
        """How many times faster it is than the kernel it began with."""
        return self.report.root_ns / self.report.best_ns

    def __str__(self) -> str:
        return text(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "name": self.root.name,
            "target": self.root.target,
            "nki": self.root.nki,
            "report": self.report.to_json(),
            "binding": self.binding,
            "ratio": self.ratio,
            "rooflines_ns": dict(self.rooflines),
            "checks": [str(check) for check in self.checks],
            "schedule": list(self.schedule),
            "source": self.source,
        }


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
    top. store: a file that keeps what is found, and whose prices are not asked for again.

    Raises BudgetError, ConstraintError, EmptySpaceError, StoreError; what `nkigym.naive` raises for
    functions without a naive kernel; ProofError, which is a mistake of ours.
    """
    spent = budget if isinstance(budget, Budget) else parse_budget(str(budget))
    constraints = Constraints(min_depth, max_depth)
    plan = Plan(strategy, spent, seed, constraints, settings or Settings())
    asked = subject(function, specs, target, nki, engines)
    space = asked.space
    if store is None:
        outcome, kept = search(space, plan, watcher=watcher), None
    else:
        with Store(store) as opened:
            kept = _Kept(opened, asked)
            try:
                outcome = search(space, plan, kept.prices, kept.found, watcher)
            finally:
                kept.recorder.flush()
            _check_price(store, space.price_ns(outcome.best.state), outcome.report.best_ns)
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
        asked.prove(outcome.best.state, schedule),
        rooflines.of(winner),
        rooflines.of(asked.root),
        kept.recorder.trouble if kept else None,
        kept.faster_ns if kept else None,
    )


def _check_price(store: str | Path, price_ns: float, stored_ns: float) -> None:
    """Raise StoreCorruptError where what was taken from a store is not what the winner takes."""
    if not isclose(price_ns, stored_ns):
        raise StoreCorruptError(
            f"{store} says that a kernel takes {stored_ns / 1e3:,.2f} µs",
            expected=f"{price_ns / 1e3:,.2f} µs, as the timeline has it", hint="name another file",
        )  # fmt: skip


class _Kept:
    """A search's way to its store."""

    def __init__(self, store: Store, asked: Subject) -> None:
        self.problem = asked.known()
        self.prices = store.prices(self.problem.key)
        self.recorder = Recorder(store, self.problem)
        self.faster_ns: float | None = None
        self._space, self._store = asked.space, store

    def found(self, node: Node) -> None:
        """A candidate was priced."""
        assert node.price_ns is not None
        schedule = tuple(self._space.write_step(step) for step in node.schedule())
        digest = self._space.digest(node.state)
        self.recorder.add(Result(digest, node.price_ns, node.bound_ns, schedule))

    def close(self, report: Report) -> None:
        """The end of the search; what the store has that cannot be read is its trouble."""
        try:
            best = self._store.best(self.problem.key)
        except StoreError as wrong:
            self.recorder.trouble = self.recorder.trouble or wrong
            return
        self.recorder.close(report.to_json())
        if best and best[0].price_ns < report.best_ns:
            self.faster_ns = best[0].price_ns
