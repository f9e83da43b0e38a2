"""The job of a sweep: one tuning, whose results are reported to the driver's store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nkigym.executors import Report
from nkigym.store import Problem, Result, Store, Stored
from nkigym.sweeps.tasks import SweepTask
from nkigym.tuning import Tuned, tune
from nkigym.tuning.loading import load_kernel

FUNCTION = "nkigym.sweeps.jobs:tune_task"


class TaskPayload(NamedTuple):
    """A task, and the store whose latencies it reuses where the worker's machine has it."""

    task: SweepTask
    store: Path


class Results(NamedTuple):
    """Some results of a problem, as a job reports them."""

    problem: Problem
    results: tuple[Result, ...]


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
        strategy=task.strategy, seed=task.seed, store=forwarded, **(task.options or {}),
    )  # fmt: skip
    assert forwarded.problem is not None
    return Value(forwarded.problem, tuned)


@dataclass(slots=True)
class _ForwardedStore:
    """Reads latencies from the store's file, reports what is added."""

    path: Path
    report: Report
    problem: Problem | None = None

    def latencies(self, problem: str) -> dict[str, float]:
        if not self.path.exists():
            return {}
        with Store(self.path, create=False) as store:
            return store.latencies(problem)

    def add(self, problem: Problem, results: Iterable[Result] = ()) -> None:
        self.problem = problem
        self.report(Results(problem, tuple(results)))

    def add_run(self, problem: Problem, report: Mapping[str, Any]) -> None:
        """The driver adds it, once, with the job's end."""

    def best(self, problem: str, number: int = 1) -> list[Stored]:
        return []
