"""A sweep's run: which tasks are done, the jobs of the others, rows as they come."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

from neuroncore.program import parse_program
from nkigym.runners.background import Candidate, CandidateSink
from nkigym.store import Problem, Result, Store, Stored
from nkigym.sweeps.tasks import SweepTask
from nkigym.tuning import Tuned, tune
from nkigym.tuning.loading import load_kernel
from tokenplan.executors import (
    Event,
    Executor,
    Failed,
    Finished,
    Job,
    Report,
    Reported,
    WorkerLost,
)

Row = dict[str, Any]
"""A task's result as plain values; `status` is "ok", or why there is not a result."""


@dataclass(slots=True)
class Sweep:
    """The tasks, a row of each that has ended, and figures of the run."""

    tasks: Mapping[str, SweepTask]
    """By key, in their order; a key is of the function's source as it was when the run began."""
    rows: dict[str, Row] = field(default_factory=dict)
    tuned: dict[str, Tuned] = field(default_factory=dict)
    """Winners that this run has found, by key."""
    resumes: bool = True
    """Whether the next run goes on from its reports; otherwise each run has its own."""
    is_interrupted: bool = False
    resumed: int = 0
    executor: str = ""
    startup_s: float = 0.0
    seconds: float = 0.0
    began: float = field(default_factory=time.monotonic)
    reported: set[tuple[str, str]] = field(default_factory=set)
    """Results that jobs have reported, as keys of problems and digests: a job that runs again, or
    that an interruption ends while it reports, reports some twice, as do searches of one problem.
    """
    best: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By key, the least latency of them, and its roofline."""
    shares: Counter[str] = field(default_factory=Counter)
    """Jobs that each worker has finished."""
    busy_s: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    """Why workers were lost."""
    logs: dict[str, str] = field(default_factory=dict)

    def add(self, key: str, problem: Problem, results: Sequence[Result]) -> None:
        """Count what a job reports; results of a problem are counted once for all of its seeds."""
        self.reported |= {(problem.key, r.digest) for r in results}
        found = [(r.latency_ns, r.bound_ns) for r in results if r.bound_ns]
        if known := [*found, *filter(None, [self.best.get(key)])]:
            self.best[key] = min(known)

    @property
    def results(self) -> int:
        """How many results jobs have reported."""
        return len(self.reported)

    @property
    def ordered(self) -> list[Row]:
        """The rows in the order of the tasks."""
        return [self.rows[key] for key in self.tasks if key in self.rows]

    @property
    def unfinished(self) -> list[Row]:
        """The best latency of each task that Ctrl-C has ended early, in the order of the tasks."""
        return [
            {**_named(task), "best_ns": self.tuned[key].report.best_ns}
            for key, task in self.tasks.items()
            if key in self.tuned and key not in self.rows
        ]

    @property
    def mean_speedup(self) -> float | None:
        """The geometric mean of the rows that have a result."""
        found = [row["speedup"] for row in self.ordered if row["status"] == "ok"]
        return geometric_mean(found) if found else None

    @property
    def is_complete(self) -> bool:
        return len(self.ordered) == len(self.tasks) and all(
            row["status"] == "ok" for row in self.ordered
        )


Watcher = Callable[[Sweep], None]


PRELOAD = __name__
"""What workers import before their first job."""
FUNCTION = f"{__name__}:tune_task"
"""A task's job: results are reported to the driver's store, the winner is its value."""


def run_sweep(
    tasks: Sequence[SweepTask], executor: Executor, store: Path, watcher: Watcher | None = None,
    resume: bool = True, candidates: CandidateSink | None = None,
) -> Sweep:  # fmt: skip
    """Tune every task, with `resume` the ones that the store has not finished; results are in the
    store when they are counted. `candidates` receives the starts and best candidates meanwhile.

    Raises StoreError where the store cannot take a result, and what the executor raises.
    """
    by_key = {task.key(): task for task in tasks}
    sweep = Sweep(by_key, resumes=resume, executor=executor.name)
    with Store(store) as opened:
        done = opened.finished() if resume else {}
        sweep.rows = {
            key: done[key]["row"] | _named(task) for key, task in by_key.items() if key in done
        }
        sweep.resumed = len(sweep.rows)
        todo = {key: task for key, task in by_key.items() if key not in done}
        if todo:
            executor.jobs = min(executor.jobs, len(todo))
            for key, task in todo.items():
                payload = TaskPayload(task, store.resolve(), candidates is not None)
                executor.submit(Job(key, FUNCTION, payload))
            try:
                with executor:
                    executor.run(
                        _Collector(sweep, opened, watcher, candidates),
                        None if candidates is None else candidates.step,
                    )
            except KeyboardInterrupt:
                sweep.is_interrupted = True
        sweep.startup_s, sweep.seconds = executor.startup_s, time.monotonic() - sweep.began
    return sweep


@dataclass(slots=True)
class _Collector:
    """Stores what jobs report, then counts it."""

    sweep: Sweep
    store: Store
    watcher: Watcher | None
    candidates: CandidateSink | None

    def __call__(self, event: Event) -> None:
        match event:
            case Reported(key, Results(problem, results)):
                self.store.add(problem, results)
                self.sweep.add(key, problem, results)
            case Reported(_, CandidateText() as text):
                assert self.candidates is not None
                self.candidates.add(text.parsed())
            case Finished(key, value, worker, seconds):
                self._finished(key, value)
                self._count(worker, seconds)
            case Failed(key, kind, what, log, worker, seconds):
                self.sweep.rows[key] = {
                    **_named(self.sweep.tasks[key]),
                    "status": f"{kind}: {what}",
                }
                self.sweep.logs[key] = log
                self._count(worker, seconds)
            case WorkerLost(key, what, worker):
                about = f", running {self.sweep.tasks[key].label}" if key else ""
                self.sweep.lost.append(f"{worker}: {what}{about}")
        if self.watcher is not None:
            self.watcher(self.sweep)

    def _finished(self, key: str, value: Value) -> None:
        tuned = self.sweep.tuned[key] = value.tuned
        if tuned.report.stopped == "interrupted":  # the next run tunes it again
            return
        row = {**_named(self.sweep.tasks[key]), **_figures(tuned), "status": "ok"}
        is_kept = self.sweep.resumes and self.sweep.tasks[key].has_key(key)
        job = {"job": key, "row": row} if is_kept else {}
        self.store.add_run(value.problem, tuned.report.to_json() | job)
        self.sweep.rows[key] = row

    def _count(self, worker: str, seconds: float) -> None:
        self.sweep.shares[worker] += 1
        self.sweep.busy_s[worker] += seconds  # pyrefly: ignore


def _named(task: SweepTask) -> Row:
    source, _, function = task.function.rpartition(":")
    return {
        "function": function, "source": source, "specs": list(task.specs),
        "target": task.target, "nki": task.nki, "strategy": task.strategy, "seed": task.seed,
    }  # fmt: skip


def _figures(tuned: Tuned) -> Row:
    report = tuned.report
    return {
        "baseline_ns": tuned.baseline_ns, "root_ns": report.root_ns, "best_ns": report.best_ns,
        "speedup": tuned.speedup, "binding": tuned.binding, "root_ratio": tuned.root_ratio,
        "ratio": tuned.ratio, "gap_removed": tuned.gap_removed, "candidates": report.candidates,
        "steps": len(tuned.schedule), "checks": [str(check) for check in tuned.checks],
    }  # fmt: skip


# -- the job ---------------------------------------------------------------------------------------


class TaskPayload(NamedTuple):
    """A task, and the store whose latencies it reuses where the worker's machine has it."""

    task: SweepTask
    store: Path
    reports_candidates: bool = False


class Results(NamedTuple):
    """Some results of a problem, as a job reports them."""

    problem: Problem
    results: tuple[Result, ...]


class CandidateText(NamedTuple):
    """A candidate as a job reports it."""

    problem: Problem
    root: str
    program: str
    latency_ns: float

    def parsed(self) -> Candidate:
        """Of the texts."""
        programs = parse_program(self.root), parse_program(self.program)
        return Candidate(self.problem, *programs, self.latency_ns)


class _ReportedCandidates:
    """Reports candidates to the driver, which measures them."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def add(self, candidate: Candidate) -> None:
        problem, root, program, latency_ns = candidate
        self._report(CandidateText(problem, str(root), str(program), latency_ns))

    def step(self) -> None:
        """The driver's part."""


class Value(NamedTuple):
    """The winner, and what it was searched from as a store has it."""

    problem: Problem
    tuned: Tuned


def tune_task(payload: TaskPayload, report: Report) -> Value:
    """Tune; results are reported in batches, the winner is returned."""
    task = payload.task
    kernel, specs = load_kernel(task.function, task.specs, task.target, task.nki)
    forwarded = _ForwardedStore(payload.store, report)
    tuned = tune(
        kernel, *specs, target=task.target, nki=task.nki, budget=task.budget,
        strategy=task.strategy, seed=task.seed, store=forwarded,
        candidates=_ReportedCandidates(report) if payload.reports_candidates else None,
        **(task.options or {}),
    )  # fmt: skip
    assert forwarded.problem is not None
    return Value(forwarded.problem, tuned)


@dataclass(slots=True)
class _ForwardedStore:
    """Reads latencies from the store's file, reports what is added."""

    path: Path
    report: Report
    problem: Problem | None = None
    """Of the search with the fastest end."""
    best_ns: float = inf

    def latencies(self, problem: str) -> dict[str, float]:
        if not self.path.exists():
            return {}
        with Store(self.path, create=False) as store:
            return store.latencies(problem)

    def add(self, problem: Problem, results: Iterable[Result] = ()) -> None:
        self.problem = self.problem or problem
        self.report(Results(problem, tuple(results)))

    def add_run(self, problem: Problem, report: Mapping[str, Any]) -> None:
        """The driver adds it, once, with the job's end."""
        if report["best_ns"] < self.best_ns:
            self.problem, self.best_ns = problem, report["best_ns"]

    def best(self, problem: str, number: int = 1) -> list[Stored]:
        return []
