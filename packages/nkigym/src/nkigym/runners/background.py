"""Cases that are measured in other processes while this one goes on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol, Self

from neuroncore.executors import Failed
from neuroncore.executors.workers import WorkerExecutor
from neuroncore.program import Program
from nkigym.runners.protocol import Case, Measurement, case_of

POLL_S = 0.02
"""How long each pool waits for messages in its turn."""
STEP_S = 0.05
"""How often a search receives results."""
NEWEST = 4
"""So many candidates wait at most: each is better than the ones before."""

Watch = Callable[[Measurement], None]


class Run:
    """Measurements by pools of processes, whose context it is; a subclass submits their jobs."""

    def __init__(self, watch: Watch, *pools: WorkerExecutor) -> None:
        self.watch, self.pools, self._opened = watch, pools, ExitStack()
        self.cases: dict[str, Case] = {}
        self.spent_s: dict[str, float] = {}
        self._waited_s = 0.0

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            for pool in self.pools:
                opened.enter_context(pool)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def has_jobs(self) -> bool:
        """Whether a case is not measured yet."""
        return any(pool.has_jobs for pool in self.pools)

    @property
    def hidden_s(self) -> float:
        """Seconds of work during which this process did not wait or other work went on."""
        return max(0.0, sum(self.spent_s.values()) - self._waited_s)

    def submit(self, case: Case) -> None:
        """Measure it after the ones before."""
        raise NotImplementedError

    def step(self, wait_s: float) -> None:
        """Handle what has come, or comes in `wait_s` seconds for each pool."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait for every case."""
        began = time.monotonic()
        while self.has_jobs:
            self.step(POLL_S)
        self._waited_s += time.monotonic() - began


class BackgroundRunner(Protocol):
    """A runner that measures while a search goes on."""

    @property
    def name(self) -> str: ...

    def begin(self, watch: Watch) -> Run: ...


@dataclass(slots=True)
class Measured:
    """The start of a search and its best candidates, measured while it goes on, the best first."""

    runner: str
    results: list[Measurement] = field(default_factory=list)
    hidden_s: float = 0.0
    spent_s: float = 0.0

    def lines(self) -> list[str]:
        """Predicted beside measured, in the order of the predictions."""
        rows = [f"{'measured':10}{'predicted':>16}{'p50':>16}  by the {self.runner} runner"]
        for each in sorted(self.results, key=lambda one: -(one.predicted_ns or 0.0)):
            figures = "".join(_us(ns) for ns in (each.predicted_ns, each.p50_ns))
            rows.append(
                f"{each.key:10}{figures}  {each.status}" + f": {each.what}" * bool(each.what)
            )
        work = "compiled" if self.runner == "neuron" else "executed"
        return [*rows, f"{work} in {self.spent_s:.1f} s, {self.hidden_s:.1f} s hidden"]


def _us(ns: float | None) -> str:
    return f"{'none':>16}" if ns is None else f"{ns / 1e3:13,.2f} µs"


class Background:
    """Hands the best candidates of a search to a run: the newest first, as it is the best."""

    def __init__(self, runner: BackgroundRunner, root: Program, root_ns: float) -> None:
        self.measured = Measured(runner.name)
        self._run = runner.begin(self.measured.results.append)
        self._start = case_of("start", root, root, root_ns)
        self._waiting = deque([self._start], NEWEST)
        self._best_ns, self._next_s, self._number = root_ns, -inf, 0

    def __enter__(self) -> Self:
        self._run.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._run.__exit__()

    def watch(self, best_ns: float, program: Callable[[], Program]) -> None:
        """The search has tried a candidate; `program` is its best one."""
        if best_ns < self._best_ns:
            self._best_ns, self._number = best_ns, self._number + 1
            key = f"best {self._number}"
            self._waiting.append(
                replace(self._start, key=key, program=program(), predicted_ns=best_ns)
            )
        if (now := time.monotonic()) >= self._next_s:
            self._next_s = now + STEP_S
            self._step()

    def _step(self) -> None:
        self._run.step(0.0)
        if self._waiting and not self._run.pools[0].has_jobs:
            self._run.submit(self._waiting.pop())

    def finish(self) -> None:
        """Wait for the ones that remain."""
        while self._waiting:
            self._run.submit(self._waiting.pop())
        self._run.finish()
        self.measured.hidden_s = self._run.hidden_s
        self.measured.spent_s = sum(self._run.spent_s.values())


def failure(failed: Failed, where: str) -> Measurement:
    """The result for a job that has failed."""
    return Measurement(failed.key, failed.kind, f"{where}: {failed.what}", failed.log)
