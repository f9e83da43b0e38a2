"""From a function or a kernel to its fastest schedule under a budget, proved and as source."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import inf, isclose
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from neuroncore.findings import ShownAsHtml
from neuroncore.program import Program, emit
from nkigym.analysis.roofline import Rooflines
from nkigym.runners.background import Candidate, CandidateSink, Measured
from nkigym.search import (
    Budget,
    Constraints,
    Node,
    Outcome,
    Plan,
    Report,
    SearchProgress,
    Settings,
    parse_budget,
    search,
)
from nkigym.search.explorer import Watcher
from nkigym.store import (
    Problem,
    Recorder,
    Result,
    Store,
    StoreCorruptError,
    Stored,
    StoreError,
)
from nkigym.tiles import TileProgram
from nkigym.tuning.task import BOTH, STARTS, TuningTask, tuning_task
from nkigym.tuning.verification import Check


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
    start: str = "generated",
    settings: Settings | None = None,
    compare: Sequence[str] = (),
    store: str | Path | ResultStore | None = None,
    watcher: Watcher | None = None,
    candidates: CandidateSink | None = None,
) -> Tuned:
    """The fastest schedule of a kernel program, of a tile program, or of a NumPy function or an
    `@nki.jit` kernel for arguments like `specs`.

    start: what the search of a function begins with: its "generated" kernel, its "baseline" kernel
    (of these two, the other where one does not exist), the "best", the faster of the two, or
    "both", a search from each with half of the budget.
    budget: time ("60s") or candidates (1000). With candidates the search finds the same each time;
    with a time, `report.candidates` is the number that finds the same. Proving the winner comes on
    top. compare: strategies that search with the same budget beside it, for their curves in the
    report. store: a file that keeps results, and whose latencies are reused; or an open store.
    candidates: receives the start and each new best while the search goes on, to measure them.

    Raises BudgetError, ConstraintError, StoreError; what the generator raises for
    functions without either kernel; VerificationError, which is a bug of nkigym.
    """
    made, tasks, plans = prepared(
        function, specs, target, nki, budget, strategy, seed, min_depth, max_depth, engines, start,
        settings, compare,
    )  # fmt: skip
    found = [_searched(task, plans[0], store, watcher, candidates) for task in tasks]
    best, *beside = sorted(found, key=lambda one: one.outcome.report.best_ns)
    task, outcome = best.task, best.outcome
    compared = {
        p.strategy: search(made(task.start or start).space, p).report.curve for p in plans[1:]
    }
    space = task.space
    schedule = tuple(space.write_step(step) for step in outcome.best.schedule())
    winner = task.kernel(outcome.best.state)
    rooflines = Rooflines(task.root.target, task.root.nki)
    return Tuned(
        task.root,
        winner,
        emit(winner),
        schedule,
        replace(outcome.report, compared=compared),
        task.verify_winner(outcome.best.state, schedule),
        rooflines.of(winner),
        rooflines.of(task.root),
        best.trouble,
        best.stored_ns,
        task.baseline_ns(),
        task.start,
        tuple((one.task.start, one.outcome.report) for one in beside),
    )


class Prepared(NamedTuple):
    """What makes a task, the tasks, and the plans of their searches."""

    made: Callable[[str], TuningTask]
    tasks: list[TuningTask]
    plans: list[Plan]


def prepared(
    function: Program | TileProgram | Callable[..., Any], specs: Sequence[Any], target: str | None,
    nki: str | None, budget: str | int | Budget, strategy: str, seed: int, min_depth: int,
    max_depth: float, engines: Sequence[str] | None, start: str, settings: Settings | None,
    compare: Sequence[str],
) -> Prepared:  # fmt: skip
    """Before a search, of the arguments of `tune`, which raises what this raises."""
    spent = budget if isinstance(budget, Budget) else parse_budget(str(budget))
    constraints = Constraints(min_depth, max_depth)
    plan = Plan(strategy, spent, seed, constraints, settings or Settings())
    others = [Plan(name, spent, seed, constraints) for name in compare]
    made = partial(tuning_task, function, specs, target, nki, engines)
    tasks = _tasks(made, start)
    plans = [replace(p, budget=spent.shared(len(tasks))) for p in (plan, *others)]
    return Prepared(made, tasks, plans)


def _tasks(made: Callable[[str], TuningTask], start: str) -> list[TuningTask]:
    """A task for each start; one, where a kernel is both."""
    tasks: dict[str, TuningTask] = {}
    for name in STARTS[BOTH] if start == BOTH else (start,):
        task = made(name)
        tasks.setdefault(task.known().key, task)
    return list(tasks.values())


class _Searched(NamedTuple):
    """A task, what its search has found, and what its store says."""

    task: TuningTask
    outcome: Outcome
    trouble: StoreError | None = None
    stored_ns: float | None = None


def _searched(
    task: TuningTask, plan: Plan, store: str | Path | ResultStore | None,
    watcher: Watcher | None, candidates: CandidateSink | None,
) -> _Searched:  # fmt: skip
    """The search, whose start and best candidates are handed on."""
    if candidates is None:
        return _unmeasured(task, plan, store, watcher)
    problem, best_ns = task.known(), task.space.latency_ns(task.space.root)
    candidates.add(Candidate(problem, task.root, task.root, best_ns))

    def watch(seen: SearchProgress) -> None:
        nonlocal best_ns
        if watcher is not None:
            watcher(seen)
        if seen.best_ns < best_ns:
            best_ns = seen.best_ns
            candidates.add(Candidate(problem, task.root, task.kernel(seen.state), best_ns))
        candidates.step()

    return _unmeasured(task, plan, store, watch)


def _unmeasured(
    task: TuningTask, plan: Plan, store: str | Path | ResultStore | None, watcher: Watcher | None
) -> _Searched:
    space = task.space
    if store is None:
        return _Searched(task, search(space, plan, watcher=watcher))
    with _opened(store) as opened:
        kept = _Kept(opened, task)
        try:
            outcome = search(space, plan, kept.latencies, kept.found, watcher)
        finally:
            kept.recorder.flush()
        _check_latency(opened.path, space.latency_ns(outcome.best.state), outcome.report.best_ns)
        kept.close(outcome.report)
    return _Searched(task, outcome, kept.recorder.trouble, kept.faster_ns)


class ResultStore(Protocol):
    """Where results go: `nkigym.store.Store`, or what forwards them to one."""

    @property
    def path(self) -> Path: ...

    def latencies(self, problem: str) -> dict[str, float]: ...

    def add(self, problem: Problem, results: Iterable[Result] = ()) -> None: ...

    def add_run(self, problem: Problem, report: Mapping[str, Any]) -> object: ...

    def best(self, problem: str, number: int = 1) -> list[Stored]: ...


def _opened(store: str | Path | ResultStore) -> AbstractContextManager[ResultStore]:
    return Store(store) if isinstance(store, (str, Path)) else nullcontext(store)


def _check_latency(store: Path, latency_ns: float, stored_ns: float) -> None:
    """Raise StoreCorruptError where what was taken from a store is not what the winner takes."""
    if not isclose(latency_ns, stored_ns):
        raise StoreCorruptError(
            f"{store} says that a kernel takes {stored_ns / 1e3:,.2f} µs",
            expected=f"{latency_ns / 1e3:,.2f} µs, as the timeline has it",
            hint="name another file",
        )  # fmt: skip


class _Kept:
    """A search's way to its store."""

    def __init__(self, store: ResultStore, task: TuningTask) -> None:
        self.problem = task.known()
        self.latencies = store.latencies(self.problem.key)
        self.recorder = Recorder(store, self.problem)
        self.faster_ns: float | None = None
        self._space, self._store = task.space, store

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


# -- the result ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tuned(ShownAsHtml):
    """The winner: its program, its source, the schedule that makes it of the root (as JSON), what
    was required of it, and the figures of the search. Rooflines are ns by resource.
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
    """Why the store does not contain every result."""
    stored_ns: float | None = None
    """The latency of the store's fastest program, where it is below that of this search."""
    baseline_ns: float | None = None
    """The latency of the function's baseline kernel, where there is one."""
    start: str = ""
    """Which kernel of a function the root is."""
    beside: tuple[tuple[str, Report], ...] = ()
    """The searches from other kernels of the function, which were not faster."""
    measured: Measured | None = None
    """What a runner has measured of the candidates."""

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
        """How many times faster it is than the generated kernel, where a search began with that,
        or than the kernel that this one began with.
        """
        generated = dict(self.beside).get("generated", self.report)
        return generated.root_ns / self.report.best_ns

    @property
    def root_ratio(self) -> float:
        """The start's time against what its binding resource needs at least."""
        return self.report.root_ns / max(self.root_rooflines.values())

    @property
    def gap_removed(self) -> float | None:
        """The share of the time above the start's roofline that the search has removed; above 1
        where the winner needs less of the binding resource. None of a start at its roofline.
        """
        gap_ns = self.report.root_ns - max(self.root_rooflines.values())
        return (self.report.root_ns - self.report.best_ns) / gap_ns if gap_ns > 0 else None

    @property
    def options(self) -> str:
        """Of the command that finds the same."""
        report = self.report
        begun = f" --start {self.start}" if self.start == "baseline" else ""
        budget = max(1, report.candidates)
        return f"--strategy {report.strategy} --seed {report.seed} --budget {budget}{begun}"

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
            "baseline_ns": self.baseline_ns,
            "gap_removed": self.gap_removed,
            "rooflines_ns": dict(self.rooflines),
            "checks": [str(check) for check in self.checks],
            "schedule": list(self.schedule),
            "source": self.source,
            "measured": None if self.measured is None else asdict(self.measured),
        }


def text(tuned: Tuned) -> str:
    """Times and rooflines before and after, figures, checks, schedule, source."""
    return "\n".join([*_table(tuned), "", *_found(tuned), "", *_schedule(tuned), *_source(tuned)])


def _table(tuned: Tuned) -> Iterator[str]:
    """Times, and what resources need at least, before and after."""
    report = tuned.report
    yield f"{tuned.root.name} on {tuned.root.target}, NKI {tuned.root.nki}, as written"
    yield f"{'':10}{'begun with':>16}{'best':>16}"
    for name, found in (("time", report), *tuned.beside):
        times = f"{found.root_ns / report.best_ns:9.2f} times as fast"
        yield _row(name, found.root_ns, found.best_ns) + times
    if tuned.baseline_ns is not None:
        yield f"{'baseline':10}{tuned.baseline_ns / 1e3:13,.2f} µs"
    for name in dict.fromkeys((*tuned.rooflines, *tuned.root_rooflines)):
        row = _row(name, tuned.root_rooflines.get(name, 0.0), tuned.rooflines.get(name, 0.0))
        yield row + (f"{tuned.ratio:9.2f} x roofline" if name == tuned.binding else "")


def _row(name: str, before_ns: float, after_ns: float) -> str:
    return f"{name:10}{before_ns / 1e3:13,.2f} µs{after_ns / 1e3:13,.2f} µs"


def _found(tuned: Tuned) -> Iterator[str]:
    yield from tuned.report.lines()
    report = tuned.report
    if report.candidates:
        yield f"again: {tuned.options}"
    elif not report.root_opportunities:
        yield "no step can be taken from the start: it is the result"
    else:
        yield "the budget was spent before the first candidate: give it more"
    if tuned.stored_ns is not None:
        yield f"the store has one that takes {tuned.stored_ns / 1e3:,.2f} µs: nkigym best"
    yield from map(str, tuned.checks)
    if tuned.measured is not None:
        yield from tuned.measured.lines()


def _schedule(tuned: Tuned) -> Iterator[str]:
    yield f"schedule, {len(tuned.schedule)} steps"
    yield from (f"  {json.dumps(step)}" for step in tuned.schedule)


def _source(tuned: Tuned) -> Iterator[str]:
    if tuned.source:
        yield from ("", tuned.source.rstrip())
